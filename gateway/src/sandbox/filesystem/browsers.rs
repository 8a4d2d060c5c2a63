//! Which browsers trust the CA?
//!
//! Chromium and its kin bring roots along and read no variable; what they read is a folder of
//! policies that belongs to the administrator. It is shown with one policy more.

use std::fs;
use std::io;
use std::path::Path;

use super::trust::{FOLDER_ENTRIES, repeat, show_over};
use super::{FilesystemError, own_folder};
use crate::trust_files::TrustPaths;

/// Chromium, Chrome, Edge, Brave. Where the folder is missing, so is the browser, and none can be
/// made: the folder around it is the host's.
const BROWSERS: [&str; 4] = ["/etc/chromium", "/etc/opt/chrome", "/etc/opt/edge", "/etc/brave"];

/// Below that of the browser.
const POLICIES: [&str; 2] = ["policies", "managed"];

/// Files are read in the order of their names, and the last one holds.
const OWN_POLICY: &str = "zz-outgate.json";

/// Shows the folders of the browsers that are there.
pub(super) fn set() -> Result<(), FilesystemError> {
    let policy = TrustPaths::in_folder(own_folder()).policy;
    let copies = own_folder().join("browsers");
    fs::create_dir(&copies).map_err(FilesystemError::at("make", &copies))?;
    for (number, browser) in BROWSERS.iter().enumerate() {
        let Ok(folder) = fs::canonicalize(browser) else { continue };
        if folder.is_dir() {
            extend(&folder, &copies.join(number.to_string()), &policy)
                .map_err(FilesystemError::at("extend", &folder))?;
        }
    }
    Ok(())
}

fn extend(folder: &Path, copy: &Path, policy: &Path) -> io::Result<()> {
    let (mut from, mut to) = (folder.to_owned(), copy.to_owned());
    fs::create_dir(&to)?;
    for below in POLICIES {
        copy_but(&from, &to, below)?;
        (from, to) = (from.join(below), to.join(below));
        fs::create_dir(&to)?;
    }
    copy_but(&from, &to, OWN_POLICY)?;
    fs::copy(policy, to.join(OWN_POLICY))?;
    show_over(copy, folder)
}

/// Repeats what is in a folder, if it is one, but for one name. A policy of the administrator is
/// never left out.
fn copy_but(from: &Path, to: &Path, name: &str) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    for (number, entry) in entries.enumerate() {
        let entry = entry?;
        if number == FOLDER_ENTRIES {
            return Err(io::Error::other("there are too many files in it"));
        }
        if entry.file_name() != name {
            repeat(&entry, &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Where the policies of the browsers that are there are read.
#[cfg(test)]
pub(super) fn policies() -> impl Iterator<Item = std::path::PathBuf> {
    let there = BROWSERS.iter().map(std::path::PathBuf::from).filter(|folder| folder.is_dir());
    there.map(|folder| folder.join(POLICIES.join("/")).join(OWN_POLICY))
}
