//! Where on this machine are values read from, and can they be?

use std::path::{Path, PathBuf};

use outgate_policy::CredentialId;

use super::Credentials;
use crate::live::Live;
use crate::source::Source;

/// A credential whose value can't be read.
#[derive(Debug)]
pub struct Unreadable {
    /// Which one.
    pub id: CredentialId,
    /// The file that it is read from, if it is one.
    pub file: Option<PathBuf>,
    /// What is wrong, with the file's name.
    pub why: String,
}

impl Credentials {
    /// Has `name_for` say by which name each file of a value is read; the first one stays.
    pub fn read_files_by(
        &self,
        name_for: impl Fn(&Path) -> Result<PathBuf, String> + Send + Sync + 'static,
    ) {
        self.0.files.settle(Box::new(name_for));
    }

    /// The credentials of which a value can't be read now, by a glance: no command is run for it.
    pub fn unreadable(&self) -> Vec<Unreadable> {
        let table = self.0.table.load();
        let mut unreadable: Vec<_> = table.live.values().flat_map(|live| faults(live)).collect();
        unreadable.sort_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
        unreadable
    }

    /// Every file that a value is read from: no sandbox may see them.
    pub fn files(&self) -> Vec<PathBuf> {
        let table = self.0.table.load();
        table.live.values().flat_map(|live| live.credential.files()).map(Into::into).collect()
    }
}

fn faults(live: &Live) -> impl Iterator<Item = Unreadable> {
    live.credential.sources().filter_map(|source| {
        let why = source.fault()?.to_string();
        let file = match source {
            Source::File(path) => Some(path.clone()),
            Source::Variable(_) | Source::Command(_) => None,
        };
        Some(Unreadable { id: live.id().clone(), file, why })
    })
}
