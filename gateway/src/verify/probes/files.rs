//! Can files be seen, or settings changed, that are the host's alone?

use std::fs::{self, OpenOptions};
use std::path::Path;

use super::inheritance::has_canary;
use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

/// Who writes these changes the machine, or runs programs outside. They are opened, not written.
const SETTINGS: [&str; 9] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/net/ipv4/icmp_echo_ignore_all",
    "/proc/sysrq-trigger",
    "/sys/kernel/uevent_helper",
    "/sys/power/state",
];

pub(super) fn state_folder(brief: &Brief, finding: &mut Finding) {
    if has_canary(&brief.state_canary, brief) {
        finding.open("a file in the state folder can be read");
    }
    if fs::read_dir(&brief.state_dir).is_ok_and(|mut entries| entries.next().is_some()) {
        finding.open("what is in the state folder can be listed");
    }
    let new = brief.state_dir.join("outgate-verify-new");
    if fs::write(&new, "").is_ok() {
        // Best not left behind; where it can't be removed, it is told of all the same.
        let _ = fs::remove_file(&new);
        finding.open("a file can be made in the state folder");
    }
}

/// What the gateway reads is neither to be read nor to be changed.
pub(super) fn operator_files(brief: &Brief, finding: &mut Finding) {
    for path in &brief.operator_files {
        let read = fs::read(path).is_ok_and(|text| !text.is_empty());
        let writable = OpenOptions::new().write(true).open(path).is_ok();
        if read || writable {
            let word = if read { "read" } else { "written" };
            finding.open(format_args!("{} can be {word}", path.display()));
        }
    }
}

/// `/tmp` and `/dev/shm` are where programs of one user find each other.
pub(super) fn shared(brief: &Brief, finding: &mut Finding) {
    for path in &brief.shared {
        if has_canary(path, brief) {
            finding.open(format_args!("{} can be read", path.display()));
        }
    }
}

pub(super) fn kernel_settings(_: &Brief, finding: &mut Finding) {
    for path in SETTINGS.map(Path::new) {
        if OpenOptions::new().write(true).open(path).is_ok() {
            finding.open(format_args!("{} can be written", path.display()));
        }
    }
}
