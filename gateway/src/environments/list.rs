//! Which environment files are there?

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use outgate_files::ReadError;
use outgate_policy::EnvironmentId;
use zeroize::Zeroizing;

use super::Problem;
use super::file::{self, File};
use super::made::Made;
use crate::config::{EnvironmentSource, KnownBy};

/// One file that the operator named, alone or by its folder.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listed {
    pub(super) path: PathBuf,
    pub(super) folder: Option<PathBuf>,
    pub(super) known_by: KnownBy,
    /// What it says, if it is no file at all.
    pub(super) made: Option<Made>,
}

impl Listed {
    /// One that was made through the API. Its place stands in messages.
    pub(super) fn made(made: Made) -> Listed {
        let known_by =
            KnownBy { source_addresses: made.source_addresses.clone(), ..KnownBy::default() };
        let path = made_place(&made.id);
        Listed { path, folder: None, known_by, made: Some(made) }
    }

    pub(super) fn is_made(&self) -> bool {
        self.made.is_some()
    }

    /// Its text as it is now, and the id it has if it says none.
    pub(super) fn read(&self) -> Result<Zeroizing<String>, ReadError> {
        match &self.made {
            Some(made) => Ok(Zeroizing::new(made.text())),
            None => file::read(&self.path),
        }
    }
}

/// Where an environment made through the API is, in messages.
pub(super) fn made_place(id: &EnvironmentId) -> PathBuf {
    PathBuf::from(format!("v1beta/environments/{id}"))
}

/// Every file that `sources` name, in their order. A folder that can't be read is as it was.
pub(super) fn list(sources: &[EnvironmentSource], before: &[File]) -> (Vec<Listed>, Vec<Problem>) {
    let (mut listed, mut problems) = (Vec::new(), Vec::new());
    for source in sources {
        match source {
            EnvironmentSource::File { path, known_by } => {
                let (path, known_by) = (path.clone(), known_by.clone());
                listed.push(Listed { path, folder: None, known_by, made: None });
            }
            EnvironmentSource::Directory(folder) => match json_files(folder) {
                Ok(files) => listed.extend(files.into_iter().map(|path| Listed {
                    path,
                    folder: Some(folder.clone()),
                    known_by: KnownBy::default(),
                    made: None,
                })),
                Err(error) => {
                    problems.push(Problem::unusable(folder, error.to_string()));
                    let of_folder = before.iter().map(|file| &file.listed);
                    let of_folder = of_folder.filter(|file| file.folder.as_ref() == Some(folder));
                    listed.extend(of_folder.cloned());
                }
            },
        }
    }
    (listed, problems)
}

/// Every `*.json` of a folder, by name.
fn json_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for found in fs::read_dir(folder)? {
        let path = found?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
