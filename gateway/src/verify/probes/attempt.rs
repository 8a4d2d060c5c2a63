//! How is something tried that would change the prober?

use std::process;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use crate::verify::finding::Finding;

const HELD: i32 = 0;
const OPEN: i32 = 1;

/// Tries it in a child of the prober, and notes `what` if it says that it got through. One that
/// breaks off proves nothing, which is as bad.
pub(super) fn in_child(finding: &mut Finding, what: &str, attempt: impl FnOnce() -> bool) {
    #[expect(unsafe_code, reason = "only a process of its own may be changed and thrown away")]
    // SAFETY: the prober has one thread here, so the child may do whatever the parent may.
    let forked = unsafe { fork() };
    match forked {
        Ok(ForkResult::Child) => process::exit(if attempt() { OPEN } else { HELD }),
        Ok(ForkResult::Parent { child }) => match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, HELD)) => {}
            Ok(WaitStatus::Exited(_, OPEN)) => finding.open(what),
            broken => finding.open(format_args!("{what}: not tried to the end: {broken:?}")),
        },
        Err(error) => finding.open(format_args!("{what}: not tried: {error}")),
    }
}
