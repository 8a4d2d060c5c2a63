//! May a file be read that is named only now?
//!
//! Files that the command of a sandbox must not see or write are hidden before it starts; what is
//! named later is open to it.

use std::path::Path;
use std::sync::Arc;

use crate::config::{AuditFile, Settings};
use crate::failure::Failure;

/// Says why a file may not be named.
pub(crate) type MayName = Arc<dyn Fn(&Path) -> Result<(), String> + Send + Sync>;

/// Where no sandbox sees the files of this machine.
pub(crate) fn any_may_be_named() -> MayName {
    Arc::new(|_| Ok(()))
}

/// Refuses an operator's file that names what may not be named. Of what counts without a restart
/// that is the audit file: the command of a sandbox has one environment, named beside it.
pub(super) fn refuse_unhidden(
    new: &Settings,
    before: &Settings,
    may_name: &MayName,
) -> Result<(), Failure> {
    let audit = (new.audit != before.audit).then_some(&new.audit).and_then(AuditFile::path);
    let Some(path) = audit else { return Ok(()) };
    may_name(path).map_err(|why| Failure::input(format_args!("{}: {why}", path.display())))
}
