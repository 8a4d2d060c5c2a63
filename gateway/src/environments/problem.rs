//! What is wrong with an environment's files, for the log and for a probe?

use std::fmt;
use std::path::{Path, PathBuf};

use outgate_credentials::StoreError;
use outgate_policy::EnvironmentId;

use super::list::made_place;

/// A file or a folder that can't be used as it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    /// The file or the folder.
    pub(crate) place: PathBuf,
    /// What is wrong, each in a sentence that quotes no secret.
    pub(crate) details: Vec<String>,
    /// What is in force instead.
    pub(crate) instead: &'static str,
    /// Whether a gateway that is about to start had better not.
    pub(crate) refuses_start: bool,
}

/// Where environments made through the API are.
const STORE: &str = "the store";

/// In force where a good text was read once.
pub(super) const LAST: &str = "what it said last is in force";
/// And where none was.
pub(super) const NOTHING: &str = "everything is denied to its environment";
/// And where the environment is another file's.
pub(super) const WITHOUT_EFFECT: &str = "it has no effect";
/// And while a source is not where it should be.
const TRIED_AGAIN: &str = "it is tried again later, and the environment's policy is in force";

impl Problem {
    /// Of something that is not there or can't be read at all: the operator's mistake, not that of
    /// who wrote the file.
    pub(crate) fn unusable(place: &Path, detail: String) -> Problem {
        let (place, details) = (place.to_owned(), vec![detail]);
        Problem { place, details, instead: LAST, refuses_start: true }
    }

    /// Of a store that can't be read.
    pub(super) fn of_store(error: &StoreError) -> Problem {
        Problem::unusable(Path::new(STORE), error.to_string())
    }

    /// Whether it keeps what the store says of `id` out of force.
    pub(crate) fn is_of_made(&self, id: &EnvironmentId) -> bool {
        self.place == Path::new(STORE) || self.place == made_place(id)
    }

    /// Of a text that is wrong.
    pub(crate) fn of_text(place: &Path, details: Vec<String>) -> Problem {
        Problem { place: place.to_owned(), details, instead: NOTHING, refuses_start: false }
    }

    /// Of sources that are not in their places.
    pub(crate) fn of_sources(id: &EnvironmentId, details: Vec<String>) -> Problem {
        let place = PathBuf::from(format!("a source of {id}"));
        Problem { place, details, instead: TRIED_AGAIN, refuses_start: false }
    }

    /// Says it to the operator, with every detail.
    pub(crate) fn log(&self) {
        let file = self.place.display();
        for detail in &self.details {
            tracing::error!(%file, "{detail}");
        }
        tracing::error!(%file, "it can't be used: {}", self.instead);
    }

    /// One line for everybody who may ask a probe: neither folders nor contents.
    pub(crate) fn summary(&self) -> String {
        let name = self.place.file_name().unwrap_or(self.place.as_os_str()).to_string_lossy();
        format!("{name} can't be used: {}; the log says why", self.instead)
    }
}

/// One line.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place.display(), self.details.join("; "))
    }
}
