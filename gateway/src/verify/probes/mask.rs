//! Can the mask over the state folder be taken away, or be looked behind?

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{chroot, getegid, geteuid};
use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};

use super::attempt::in_child;
use super::inheritance::has_canary;
use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

/// A folder that every machine has, to mount something on.
const ELSEWHERE: &str = "/var/tmp";

/// What the process is that tries, and what it is called.
type Standing = (&'static str, fn() -> io::Result<()>);

/// With what it has; with capabilities of its own; with a view of mounts of its own, too.
const STANDINGS: [Standing; 3] = [
    ("as it is", own_view),
    ("in a user namespace", || own_user(CloneFlags::empty())),
    ("in user and mount namespaces", || own_user(CloneFlags::CLONE_NEWNS)),
];

/// What it is called, and where the file is seen that was hidden. An error is a refusal.
type Way = (&'static str, fn(&Brief) -> io::Result<PathBuf>);

/// What is tried there.
const WAYS: [Way; 7] = [
    ("unmounted", unmounted),
    ("unmounted the new way", unmounted_the_new_way),
    ("bound elsewhere", bound_elsewhere),
    ("copied", copied),
    ("mounted anew", mounted_anew),
    ("moved", moved),
    ("left by chroot", left_root),
];

/// Each in each standing, then a look for the canary.
pub(super) fn state_folder(brief: &Brief, finding: &mut Finding) {
    for (standing, stand) in STANDINGS {
        for (way, attempt) in WAYS {
            in_child(finding, &format!("the state folder, {way} {standing}"), || {
                // What can't be had is one way less.
                stand().is_ok_and(|()| {
                    let seen_at = attempt(brief).unwrap_or_else(|_| brief.state_canary.clone());
                    has_canary(&seen_at, brief) || has_canary(&brief.state_canary, brief)
                })
            });
        }
    }
    if can_be_moved(&brief.state_dir) {
        finding.open("a folder around the state folder can be moved away under its mask");
    }
    for folder in ["/proc/1/root", "/proc/self/root", "/proc/1/cwd/../../../../../../.."] {
        if has_canary(&below(Path::new(folder), &brief.state_canary), brief) {
            finding.open(format_args!("the state folder is behind {folder}"));
        }
    }
}

/// Who may change mounts at all, as without a sandbox, changes none but its own.
fn own_view() -> io::Result<()> {
    if unshare(CloneFlags::CLONE_NEWNS).is_ok() {
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
    }
    Ok(())
}

/// Makes this process root in a user namespace of its own.
pub(super) fn own_user(more: CloneFlags) -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | more)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn unmounted(brief: &Brief) -> io::Result<PathBuf> {
    umount2(&brief.state_dir, MntFlags::MNT_DETACH)?;
    Ok(brief.state_canary.clone())
}

fn unmounted_the_new_way(brief: &Brief) -> io::Result<PathBuf> {
    unmount(&brief.state_dir, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
    Ok(brief.state_canary.clone())
}

/// Without what is mounted below it.
fn bound_elsewhere(brief: &Brief) -> io::Result<PathBuf> {
    let (parent, canary) = parent_and_canary(brief)?;
    mount(Some(parent), ELSEWHERE, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
    Ok(Path::new(ELSEWHERE).join(canary))
}

fn copied(brief: &Brief) -> io::Result<PathBuf> {
    let (parent, canary) = parent_and_canary(brief)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, parent, flags)?;
    let seen_at = PathBuf::from(format!("/proc/self/fd/{}", tree.as_raw_fd())).join(canary);
    // Its files can be reached before it has a place.
    if has_canary(&seen_at, brief) {
        std::mem::forget(tree);
        return Ok(seen_at);
    }
    move_mount(&tree, "", CWD, ELSEWHERE, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    Ok(Path::new(ELSEWHERE).join(canary))
}

/// Another layer, of which the folder is the lower one.
fn mounted_anew(brief: &Brief) -> io::Result<PathBuf> {
    let (parent, canary) = parent_and_canary(brief)?;
    let options = format!("lowerdir={}:/var", parent.display());
    mount(Some("overlay"), ELSEWHERE, Some("overlay"), MsFlags::empty(), Some(options.as_str()))?;
    Ok(Path::new(ELSEWHERE).join(canary))
}

fn moved(brief: &Brief) -> io::Result<PathBuf> {
    mount(Some(&brief.state_dir), ELSEWHERE, None::<&str>, MsFlags::MS_MOVE, None::<&str>)?;
    Ok(brief.state_canary.clone())
}

/// The old way out: a root below the folder that one stands in.
fn left_root(brief: &Brief) -> io::Result<PathBuf> {
    chroot(ELSEWHERE)?;
    let up = "../".repeat(16);
    Ok(below(Path::new(&up), &brief.state_canary))
}

/// The folder around the state folder, and where the canary is from there.
fn parent_and_canary(brief: &Brief) -> io::Result<(&Path, &Path)> {
    let parent = brief.state_dir.parent().ok_or(io::ErrorKind::NotFound)?;
    let canary = brief.state_canary.strip_prefix(parent).map_err(io::Error::other)?;
    Ok((parent, canary))
}

/// A mask stays where it is; what is moved from under it would show at another place. To be moved
/// onto a folder that isn't empty is refused in the end, but a mount point is refused first.
fn can_be_moved(folder: &Path) -> bool {
    folder.ancestors().any(|folder| {
        let Some(parent) = folder.parent() else { return false };
        let other = parent.join("outgate-verify-other");
        let full = fs::create_dir(&other).and_then(|()| fs::write(other.join("file"), ""));
        let moved = full.and_then(|()| fs::rename(folder, &other));
        // What wasn't made can't be removed.
        let _ = fs::remove_dir_all(&other);
        moved.is_err_and(|error| error.kind() == io::ErrorKind::DirectoryNotEmpty)
    })
}

#[cfg(test)]
mod tests {
    use outgate_tests::isolated;

    use super::*;

    #[test]
    fn a_mask_is_taken_away_by_who_may_change_mounts() {
        isolated(|| {
            let folder = outgate_tests::network::folder();
            let state_dir = folder.join("outer/state");
            fs::create_dir_all(&state_dir).unwrap();
            let canary = "b5dd0ae4".to_owned();
            let state_canary = state_dir.join("canary");
            fs::write(&state_canary, &canary).unwrap();
            let none = None::<&str>;
            mount(none, &state_dir, Some("tmpfs"), MsFlags::empty(), none).unwrap();
            let brief = Brief { canary, state_dir, state_canary, ..Brief::default() };
            assert!(!has_canary(&brief.state_canary, &brief));
            let mut finding = Finding::default();
            state_folder(&brief, &mut finding);
            let all = WAYS.map(|(way, _)| format!("the state folder, {way} as it is"));
            // Whose root is another still sees the mask.
            let (_, expected) = all.split_last().unwrap();
            let (last, found) = finding.open.split_last().unwrap();
            assert_eq!(found, expected);
            assert!(last.contains("can be moved away"), "{last}");
        });
    }
}
