//! Which sockets have a name in the file system, so that a network namespace doesn't stop them?
//!
//! The kernel lists those that belong to this network namespace, wherever they are. Others (of
//! containers, or bound under a relative name) are looked for where people keep them. That has a
//! bound: a home may have millions of files, or a folder on a server that doesn't answer.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A start takes less than 150 ms in all; the search runs beside the rest of it.
const TIME: Duration = Duration::from_millis(60);

/// More than a warm cache lists in that time.
const ENTRIES: usize = 200_000;

/// A search that goes on.
pub(crate) struct SocketSearch {
    findings: Receiver<Finding>,
    deadline: Instant,
}

/// What it found.
#[derive(Debug, Default)]
pub(crate) struct FoundSockets {
    /// Their real names.
    pub(crate) paths: BTreeSet<PathBuf>,
    /// Whether everything was looked at.
    pub(crate) complete: bool,
}

enum Finding {
    Socket(PathBuf),
    Complete,
}

impl SocketSearch {
    /// Looks for socket files in `folders` and below, those that lie least deep first. No link is
    /// followed.
    pub(crate) fn start<'a>(folders: impl IntoIterator<Item = &'a Path>) -> SocketSearch {
        let folders = folders.into_iter().map(Path::to_owned).collect();
        SocketSearch::start_with(folders, TIME, ENTRIES)
    }

    fn start_with(folders: Vec<PathBuf>, time: Duration, entries: usize) -> SocketSearch {
        let (sender, findings) = channel();
        let deadline = Instant::now() + time;
        // Nobody waits for this thread: a folder may be on a server that never answers.
        thread::spawn(move || search(folders, deadline, entries, &sender));
        SocketSearch { findings, deadline }
    }

    /// Waits for the rest of the search's time at most.
    pub(crate) fn finish(self) -> FoundSockets {
        let mut found = FoundSockets::default();
        found.paths.extend(listed_by_kernel());
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            match self.findings.recv_timeout(left) {
                Ok(Finding::Socket(path)) => drop(found.paths.insert(path)),
                Ok(Finding::Complete) => found.complete = true,
                // Out of time, or at the end.
                Err(_) => return found,
            }
        }
    }
}

fn search(folders: Vec<PathBuf>, deadline: Instant, mut entries: usize, to: &Sender<Finding>) {
    let mut waiting: VecDeque<PathBuf> =
        folders.iter().filter_map(|folder| fs::canonicalize(folder).ok()).collect();
    while let Some(folder) = waiting.pop_front() {
        // What this user can't list, the command can't either.
        let Ok(listed) = fs::read_dir(&folder) else { continue };
        for entry in listed.flatten() {
            let Some(left) = entries.checked_sub(1) else { return };
            entries = left;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                waiting.push_back(entry.path());
            } else if kind.is_socket() && to.send(Finding::Socket(entry.path())).is_err() {
                return;
            }
        }
        if Instant::now() > deadline {
            return;
        }
    }
    // Nobody is left to tell when the time was up first.
    let _ = to.send(Finding::Complete);
}

fn listed_by_kernel() -> Vec<PathBuf> {
    let text = fs::read("/proc/net/unix").unwrap_or_default();
    let named = text.split(|byte| *byte == b'\n').filter_map(name);
    named.filter_map(|path| fs::canonicalize(path).ok()).collect()
}

/// `0000000000000000: 00000002 00000000 00010000 0001 01 23456 /path`; names of the abstract kind
/// begin with `@` and belong to the network namespace.
fn name(line: &[u8]) -> Option<&Path> {
    let mut name = line;
    // Before a small number of an inode there are more blanks than one.
    for _field in 0..7 {
        let end = name.trim_ascii_start().iter().position(|byte| *byte == b' ')?;
        name = &name.trim_ascii_start()[end..];
    }
    let name = name.trim_ascii_start();
    name.starts_with(b"/").then(|| Path::new(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn reads_names_with_blanks_from_the_kernel_s_list() {
        let line = b"0000000000000000: 00000002 00000000 00010000 0001 01 23456 /a b/c";
        assert_eq!(name(line), Some(Path::new("/a b/c")));
        let line = b"0000000000000000: 00000002 00000000 00010000 0001 01   456 /a b/c";
        assert_eq!(name(line), Some(Path::new("/a b/c")));
        assert_eq!(name(b"0000000000000000: 00000002 00000000 00010000 0001 01 2 @/a"), None);
        assert_eq!(name(b"0000000000000000: 00000003 00000000 00000000 0001 03 2"), None);
        assert_eq!(name(b"Num       RefCount Protocol Flags    Type St Inode Path"), None);
    }

    #[test]
    fn finds_sockets_in_folders_and_below_but_not_behind_links() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let base = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("a/file"), "").unwrap();
        std::os::unix::fs::symlink(other.path(), base.join("link")).unwrap();
        let _sockets = ["a/b/one", "two"].map(|name| UnixListener::bind(base.join(name)).unwrap());
        let _behind = UnixListener::bind(other.path().join("three")).unwrap();
        let search = SocketSearch::start_with(vec![base.clone()], LONG, ENTRIES);
        let found: Vec<Finding> = search.findings.iter().collect();
        let sockets = found.iter().filter_map(|finding| match finding {
            Finding::Socket(path) => Some(path.clone()),
            Finding::Complete => None,
        });
        let paths: BTreeSet<_> = sockets.collect();
        assert_eq!(paths, ["a/b/one", "two"].map(|name| base.join(name)).into());
        assert!(matches!(found.last(), Some(Finding::Complete)));
    }

    #[test]
    fn finds_any_socket_of_this_network_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(folder.path()).unwrap().join("socket");
        let _socket = UnixListener::bind(&path).unwrap();
        let found = SocketSearch::start_with(Vec::new(), LONG, 0).finish();
        assert!(found.complete && found.paths.contains(&path), "{found:?}");
    }

    #[test]
    fn says_when_it_has_not_looked_everywhere() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("one"), "").unwrap();
        fs::write(folder.path().join("two"), "").unwrap();
        let complete = |entries| {
            SocketSearch::start_with(vec![folder.path().into()], LONG, entries).finish().complete
        };
        assert!(complete(2));
        assert!(!complete(1));
    }
}
