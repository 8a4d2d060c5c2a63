//! What does the process ask of the kernel for itself, before it does anything else?

use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::failure::Failure;

/// Makes sure that no memory of this process, which holds secrets, ends in a core file or under a
/// debugger of the same user.
pub(crate) fn forbid_dumps() -> Result<(), Failure> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0)
        .and_then(|()| prctl::set_dumpable(false))
        .map_err(|error| Failure::start(format_args!("core dumps can't be forbidden: {error}")))
}

/// Raises the number of descriptors to what the process may have: two per connection.
///
/// A limit that can't be raised is no reason to refuse work: accepting backs off when it is met.
pub(crate) fn raise_descriptor_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raises_the_soft_limit_to_the_hard_one() {
        raise_descriptor_limit();
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!(soft, hard);
    }

    #[test]
    fn leaves_no_core_and_is_not_dumpable() {
        forbid_dumps().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_CORE).unwrap(), (0, 0));
        assert!(!prctl::get_dumpable().unwrap());
    }
}
