//! Which standard streams may a command take into its sandbox?

use std::io;
use std::os::fd::AsFd;

use nix::sys::stat::{SFlag, fstat};

use crate::failure::Failure;

/// An open folder leads to every file beside and above it as the host has them: through it nothing
/// is hidden, and its `..` goes up to the host's own root.
pub(super) fn refuse_folders() -> Result<(), Failure> {
    let streams: [(&str, &dyn AsFd); 3] =
        [("input", &io::stdin()), ("output", &io::stdout()), ("error", &io::stderr())];
    match streams.into_iter().find(|(_, stream)| is_folder(*stream)) {
        Some((name, _)) => Err(Failure::usage(format_args!(
            "standard {name} is a folder, and the command would get out by it: give it a file"
        ))),
        None => Ok(()),
    }
}

/// A stream that is closed is none.
fn is_folder(stream: &dyn AsFd) -> bool {
    fstat(stream.as_fd()).is_ok_and(|found| {
        SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn tells_a_folder_from_a_file() {
        assert!(is_folder(&File::open("/").unwrap()));
        assert!(!is_folder(&File::open("/dev/null").unwrap()));
    }
}
