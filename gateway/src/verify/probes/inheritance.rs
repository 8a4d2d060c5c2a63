//! What has the prober from outside that nobody should have given it?

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

/// A variable that leads a client to a proxy.
pub(super) fn proxy_variables(_: &Brief, finding: &mut Finding) {
    for (name, _) in env::vars_os() {
        let lower = name.to_string_lossy().to_ascii_lowercase();
        if lower.ends_with("_proxy") || lower.ends_with("noproxy") {
            finding.open(format_args!("{} is set", name.display()));
        }
    }
}

/// Any open file but the standard streams.
pub(super) fn descriptors(_: &Brief, finding: &mut Finding) {
    let folder = Path::new("/proc/self/fd");
    let Ok(entries) = fs::read_dir(folder) else {
        return finding.open("/proc/self/fd can't be listed");
    };
    for entry in entries.flatten() {
        let number = entry.file_name().to_string_lossy().parse::<u32>().unwrap_or_default();
        let Ok(leads_to) = fs::read_link(entry.path()) else { continue };
        // The listing itself is the only one that leads here.
        let listing = leads_to.starts_with("/proc") && leads_to.ends_with("fd");
        if number > 2 && !listing {
            let what = leads_to.display();
            finding.open(format_args!("descriptor {number} leads to {what}"));
        }
    }
}

/// Whether a file can be read and has the canary.
pub(super) fn has_canary(path: &Path, brief: &Brief) -> bool {
    // A pipe or a device would never end.
    const ENOUGH: u64 = 1 << 16;
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut text = Vec::new();
    let read = is_file
        && File::open(path).is_ok_and(|file| file.take(ENOUGH).read_to_end(&mut text).is_ok());
    read && contains(&text, brief.canary.as_bytes())
}

pub(super) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
