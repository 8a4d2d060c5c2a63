//! Are the files that SIGHUP reads again still those that the command can't write?
//!
//! What hides a file goes with the file: where an editor puts another one in its place, that one
//! is open to the command (mount_namespaces(7)), which could say in it what it likes before it is
//! read. A file in a folder of its own is hidden with the folder, and may be replaced.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::sandbox::real_name;

const REPLACED: &str = "another one was put in its place, and the command may have written it: \
                        start anew, and keep it in a folder with nothing else in it, where it can \
                        be replaced";
/// Of a file that was not there, or not named, at the start.
const UNCOVERED: &str = "it was not there, or not named, when the command was started, so that it is \
                         not hidden from it: start anew";

/// Those files, as they were at the start.
#[derive(Default)]
pub(super) struct Held(Vec<Known>);

struct Known {
    /// By links, perhaps, which the command could replace.
    given: PathBuf,
    real: PathBuf,
    /// What is hidden so that the file is, and where. Kept open, since the number of a file that is
    /// gone is given out again.
    mask: PathBuf,
    masked: File,
}

impl Held {
    /// Remembers each file, and what is hidden for it.
    pub(super) fn hold<'a>(
        files: impl IntoIterator<Item = (&'a Path, &'a Path)>,
    ) -> io::Result<Held> {
        let known = files.into_iter().map(|(given, mask)| {
            let masked = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_PATH | libc::O_NOFOLLOW)
                .open(mask)?;
            let (given, mask) = (given.to_owned(), mask.to_owned());
            Ok(Known { real: real_name(&given)?, given, mask, masked })
        });
        Ok(Held(known.collect::<io::Result<_>>()?))
    }

    /// Whether all of them can be read again.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.0.iter().find(|known| !known.is_same().unwrap_or(false)) {
            None => Ok(()),
            Some(known) => {
                Err(Failure::input(format_args!("{}: {REPLACED}", known.given.display())))
            }
        }
    }

    /// The name without links of one of them, if it is there and still hidden; else why not.
    pub(super) fn real(&self, given: &Path) -> Result<PathBuf, String> {
        let Some(known) = self.0.iter().find(|known| known.given == given) else {
            let is_around = |known: &&Known| given.starts_with(&known.mask);
            let around = self.0.iter().filter(is_around).find(|known| known.hides_still());
            // Without a link on the way: that could be turned.
            let real = around.and_then(|_| real_name(given).ok()).filter(|real| real == given);
            return real.ok_or_else(|| UNCOVERED.to_owned());
        };
        match known.is_same() {
            Ok(true) => Ok(known.real.clone()),
            Ok(false) => Err(REPLACED.to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Known {
    fn is_same(&self) -> io::Result<bool> {
        Ok(self.is_masked()? && fs::canonicalize(&self.given)? == self.real)
    }

    fn hides_still(&self) -> bool {
        self.is_masked().unwrap_or(false)
    }

    fn is_masked(&self) -> io::Result<bool> {
        let (now, then) = (fs::symlink_metadata(&self.mask)?, self.masked.metadata()?);
        Ok((now.dev(), now.ino()) == (then.dev(), then.ino()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_may_be_written_but_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [file, new] = ["file", "new"].map(|name| folder.path().join(name));
        fs::write(&file, "one").unwrap();
        let held = Held::hold([(file.as_path(), file.as_path())]).unwrap();
        fs::write(&file, "another").unwrap();
        assert_eq!(held.check(), Ok(()));
        fs::remove_file(&file).unwrap();
        assert!(held.check().is_err());
        fs::write(&file, "one").unwrap();
        assert!(held.check().is_err(), "the number of the old one was given out again");
        fs::write(&new, "one").unwrap();
        fs::rename(&new, &file).unwrap();
        assert!(held.check().is_err());
    }

    #[test]
    fn what_is_hidden_with_its_folder_may_be_replaced_but_no_link_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let [own, other, link] = ["own", "other", "link"].map(|name| folder.path().join(name));
        let file = own.join("file");
        fs::create_dir(&own).unwrap();
        fs::write(&file, "one").unwrap();
        symlink(&file, &link).unwrap();
        let held = Held::hold([(link.as_path(), own.as_path())]).unwrap();
        fs::remove_file(&file).unwrap();
        fs::write(&file, "another").unwrap();
        assert_eq!(held.check(), Ok(()));
        assert_eq!(held.real(&link), Ok(fs::canonicalize(&file).unwrap()));
        let beside = fs::canonicalize(&own).unwrap().join("beside");
        assert_eq!(held.real(&beside), Ok(beside.clone()), "hidden with the folder");
        symlink("/etc/hostname", &beside).unwrap();
        assert!(held.real(&beside).is_err() && held.real(&other).is_err());
        fs::write(&other, "the command's").unwrap();
        fs::remove_file(&link).unwrap();
        symlink(&other, &link).unwrap();
        assert!(held.check().is_err());
    }
}
