//! What is in the files by which entries say how their origin is met?
//!
//! Their paths are relative to the environment's file. They are read when it is, and again when one
//! of them changes.

use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, Digest, SHA256};
use outgate_certs::{CertsError, OriginProfile};
use outgate_policy::{MinTls, OriginOptions, Policy, Problem};

use crate::reload::MayName;

/// What a certificate file can have: a longer one is refused when it is read.
const LONGEST: usize = 1 << 20;

/// Every file that entries of `policy` name. `file` is the environment's own.
pub(crate) fn files(policy: &Policy, file: &Path) -> Vec<PathBuf> {
    let folder = folder(file);
    let named = policy.origins().flat_map(|(_, origin)| origin.files());
    named.map(|name| folder.join(name)).collect()
}

/// What they say, by entry.
pub(crate) fn read(
    policy: &Policy,
    file: &Path,
) -> Result<Vec<(usize, OriginProfile)>, Vec<Problem>> {
    let (mut profiles, mut problems) = (Vec::new(), Vec::new());
    for (entry, origin) in policy.origins() {
        match profile(origin, folder(file)) {
            Ok(profile) => profiles.push((entry, profile)),
            Err((field, error)) => {
                let place = format!("network.allowlist[{entry}].origin.{field}");
                problems.push(Problem::new(place, error.to_string()));
            }
        }
    }
    if problems.is_empty() { Ok(profiles) } else { Err(problems) }
}

/// Files are the operator's to name: whoever may only use the API would read what they can't.
pub(crate) fn refuse_files(policy: &Policy) -> Vec<Problem> {
    let naming = policy.origins().filter(|(_, origin)| origin.files().next().is_some());
    let refuse = |(entry, _)| {
        let message = "files can be named in an environment file only, not here";
        Problem::new(format!("network.allowlist[{entry}].origin"), message)
    };
    naming.map(refuse).collect()
}

/// Those that may not be named now.
pub(super) fn refuse_unhidden(policy: &Policy, file: &Path, may_name: &MayName) -> Vec<Problem> {
    let refuse = |(entry, origin): (usize, &OriginOptions)| {
        let mut named = origin.files().map(|name| folder(file).join(name));
        let refused = named.find_map(|path| Some((may_name(&path).err()?, path)));
        refused.map(|(why, path)| {
            let message = format!("{}: {why}", path.display());
            Problem::new(format!("network.allowlist[{entry}].origin"), message)
        })
    };
    policy.origins().filter_map(refuse).collect()
}

/// Tells whether what is in `files` has changed.
pub(super) fn fingerprint(files: &[PathBuf]) -> Option<Digest> {
    if files.is_empty() {
        return None;
    }
    let mut digest = Context::new(&SHA256);
    for path in files {
        match outgate_files::read(path, LONGEST) {
            Ok(bytes) => {
                digest.update(&bytes.len().to_be_bytes());
                digest.update(&bytes);
            }
            Err(error) => digest.update(error.to_string().as_bytes()),
        }
    }
    Some(digest.finish())
}

fn folder(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

fn profile(
    origin: &OriginOptions,
    folder: &Path,
) -> Result<OriginProfile, (&'static str, CertsError)> {
    let mut profile = OriginProfile::default();
    if let Some(roots) = &origin.roots {
        profile.trust_only(&folder.join(roots)).map_err(|error| ("roots", error))?;
    }
    if let Some(client) = &origin.client {
        let (certificate, key) = (folder.join(&client.certificate), folder.join(&client.key));
        profile.present(&certificate, &key).map_err(|error| (at_fault(&error, &key), error))?;
    }
    match origin.min_tls {
        MinTls::Tls12 => {}
        MinTls::Tls13 => profile.require_tls13(),
    }
    Ok(profile)
}

fn at_fault(error: &CertsError, key: &Path) -> &'static str {
    let is_of_key = match error {
        CertsError::Io { path, .. }
        | CertsError::TooLarge { path, .. }
        | CertsError::NotAFile { path, .. } => path == key,
        CertsError::NoKey { .. }
        | CertsError::EncryptedKey { .. }
        | CertsError::UnusableKey { .. }
        | CertsError::KeyOfAnother { .. } => true,
        _ => false,
    };
    if is_of_key { "client_key" } else { "client_certificate" }
}
