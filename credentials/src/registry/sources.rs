//! Where on this machine are values read from, and can they be?

use std::path::{Path, PathBuf};

use outgate_policy::{CredentialId, Denial};

use super::Credentials;
use super::refusal::{Refused, Why};
use crate::live::Live;
use crate::source::{Files, Source};

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
        let mut unreadable: Vec<_> =
            table.live.values().flat_map(|live| faults(live, &self.0.files)).collect();
        unreadable.sort_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
        unreadable
    }

    /// Why a request that needs these would be refused now, as far as is known without using one.
    pub fn foresee(&self, ids: &[CredentialId]) -> Result<(), Denial> {
        ids.iter().try_for_each(|id| {
            let why = match self.live(id) {
                None => Why::Missing,
                Some(live) if live.credential.is_variable() => Why::Variable,
                Some(live) if live.is_revoked() => Why::Revoked,
                Some(_) => return Ok(()),
            };
            Err(Refused(id, why).denial())
        })
    }

    /// The same, where values are read by this very process.
    pub fn foresee_values(&self, ids: &[CredentialId]) -> Result<(), Denial> {
        self.foresee(ids)?;
        let unreadable = self.unreadable();
        match ids.iter().find(|id| unreadable.iter().any(|one| one.id == **id)) {
            Some(id) => Err(Refused(id, Why::Unreadable).denial()),
            None => Ok(()),
        }
    }

    /// Every file that a value is read from: no sandbox may see them.
    pub fn files(&self) -> Vec<PathBuf> {
        let table = self.0.table.load();
        table.live.values().flat_map(|live| live.credential.files()).map(Into::into).collect()
    }
}

fn faults<'a>(live: &'a Live, files: &'a Files) -> impl Iterator<Item = Unreadable> + 'a {
    live.credential.sources().filter_map(|source| {
        let why = source.fault(files)?.to_string();
        let file = match source {
            Source::File(path) => Some(path.clone()),
            Source::Variable(_) | Source::Command(_) => None,
        };
        Some(Unreadable { id: live.id().clone(), file, why })
    })
}
