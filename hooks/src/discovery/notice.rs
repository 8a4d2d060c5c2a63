//! What has become of a file since the event before?

use outgate_policy::Problem;

/// Something about a file that was not so at the event before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Which file.
    pub file: String,
    /// What became of it.
    pub change: Change,
    /// What is wrong with it, or worth a look.
    pub problems: Vec<Problem>,
}

/// What became of a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is in force.
    Loaded,
    /// It can't be used; the last good one is in force.
    KeptBroken,
    /// It is gone; the last good one is in force.
    KeptVanished,
    /// It can't be used, and there is no good one: it fails on every event.
    Broken,
    /// It has changed, and is not used: hooks are pinned.
    Pinned,
}

impl Notice {
    /// Says it in the log.
    pub(super) fn log(&self) {
        let file = &self.file;
        match self.change {
            Change::Loaded => tracing::info!("hooks of {file} are in force"),
            Change::KeptBroken => {
                tracing::warn!("{file} can't be used; its last good hooks stay in force");
            }
            Change::KeptVanished => {
                tracing::warn!("{file} is gone; its last good hooks stay in force");
            }
            Change::Broken => {
                tracing::warn!("{file} can't be used; it fails on every event until it is mended");
            }
            Change::Pinned => {
                tracing::warn!("{file} has changed; hooks are pinned, so the change is not used");
            }
        }
        for problem in &self.problems {
            tracing::warn!("{file}: {problem}");
        }
    }
}
