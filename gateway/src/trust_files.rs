//! Which files make clients trust the CA, and how do they get into a folder?
//!
//! One certificate set in every form that clients read: the CA alone, the bundle (CA and roots),
//! a folder of single certificates for OpenSSL, a trust store for Java, a policy for browsers.
//! Nothing in them is secret.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use outgate_certs::{Authority, OriginRoots, bundle, hashed, java_trust_store};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::base64_bytes;

const CA: &str = "ca.pem";
const BUNDLE: &str = "ca-bundle.pem";
const FOLDER: &str = "certs";
const JAVA: &str = "java-truststore.jks";
const POLICY: &str = "chromium-policy.json";

/// The contents.
#[derive(Serialize, Deserialize)]
pub(crate) struct TrustFiles {
    pub(crate) ca: String,
    pub(crate) bundle: String,
    /// File names and what is in them; the CA's is the first.
    pub(crate) folder: Vec<(String, String)>,
    #[serde(with = "base64_bytes")]
    pub(crate) java: Vec<u8>,
    pub(crate) policy: String,
}

/// Where they lie.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TrustPaths {
    pub(crate) ca: PathBuf,
    pub(crate) bundle: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) java: PathBuf,
    pub(crate) policy: PathBuf,
}

impl TrustPaths {
    /// Their places in the folder that they are written into.
    pub(crate) fn in_folder(folder: &Path) -> TrustPaths {
        TrustPaths {
            ca: folder.join(CA),
            bundle: folder.join(BUNDLE),
            folder: folder.join(FOLDER),
            java: folder.join(JAVA),
            policy: folder.join(POLICY),
        }
    }
}

impl TrustFiles {
    /// What a client needs that meets leaves of `authority` and origins of `roots`.
    pub(crate) fn new(authority: &Authority, roots: &OriginRoots) -> TrustFiles {
        TrustFiles {
            ca: authority.certificate_pem().to_owned(),
            bundle: bundle(authority, roots),
            folder: hashed(authority, roots),
            java: java_trust_store(authority, roots),
            policy: chromium_policy(authority.certificate_pem()),
        }
    }

    /// Writes all of them into a new folder that nobody reads yet.
    pub(crate) fn write_into(&self, folder: &Path) -> io::Result<()> {
        let paths = TrustPaths::in_folder(folder);
        fs::write(&paths.ca, &self.ca)?;
        fs::write(&paths.bundle, &self.bundle)?;
        fs::write(&paths.java, &self.java)?;
        fs::write(&paths.policy, &self.policy)?;
        fs::create_dir(&paths.folder)?;
        self.folder.iter().try_for_each(|(name, pem)| fs::write(paths.folder.join(name), pem))
    }

    /// Brings those in a state folder up to date, but for the CA's own, which is there already. A
    /// client that reads a file meanwhile sees the old one or the new one.
    pub(crate) fn replace_in(&self, state_dir: &Path) -> io::Result<()> {
        let paths = TrustPaths::in_folder(state_dir);
        replace(&paths.bundle, self.bundle.as_bytes())?;
        replace(&paths.java, &self.java)?;
        replace(&paths.policy, self.policy.as_bytes())?;
        match DirBuilder::new().mode(0o755).create(&paths.folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        for (name, pem) in &self.folder {
            replace(&paths.folder.join(name), pem.as_bytes())?;
        }
        // A root that is trusted no more must not stay.
        for entry in fs::read_dir(&paths.folder)? {
            let entry = entry?;
            if !self.folder.iter().any(|(name, _)| entry.file_name() == name.as_str()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// The policy `CACertificates` takes each certificate as the base64 that PEM has between its lines.
fn chromium_policy(pem: &str) -> String {
    let bare = |block: &str| -> String {
        block.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect()
    };
    let certificates: Vec<String> =
        pem.split_inclusive("-----END CERTIFICATE-----").map(bare).collect();
    let certificates: Vec<&String> = certificates.iter().filter(|text| !text.is_empty()).collect();
    json!({"CACertificates": certificates}).to_string()
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    readable(file.as_file())?;
    file.persist(path)?;
    Ok(())
}

/// Containers are given these files by mounts, and other users read them there.
fn readable(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o644))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> TrustFiles {
        TrustFiles {
            ca: "ca".to_owned(),
            bundle: "ca root".to_owned(),
            folder: vec![
                ("00000001.0".to_owned(), "ca".to_owned()),
                ("00000002.0".to_owned(), "root".to_owned()),
            ],
            java: vec![0xfe, 0xed],
            policy: "{}".to_owned(),
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn writes_every_form() {
        let folder = tempfile::tempdir().unwrap();
        files().write_into(folder.path()).unwrap();
        let paths = TrustPaths::in_folder(folder.path());
        assert_eq!(fs::read_to_string(paths.ca).unwrap(), "ca");
        assert_eq!(fs::read_to_string(paths.bundle).unwrap(), "ca root");
        assert_eq!(fs::read(paths.java).unwrap(), [0xfe, 0xed]);
        assert_eq!(fs::read_to_string(paths.policy).unwrap(), "{}");
        assert_eq!(names(&paths.folder), ["00000001.0", "00000002.0"]);
    }

    #[test]
    fn a_root_that_is_gone_leaves_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = files();
        files.replace_in(folder.path()).unwrap();
        files.folder.pop();
        files.bundle = "ca".to_owned();
        files.replace_in(folder.path()).unwrap();
        let paths = TrustPaths::in_folder(folder.path());
        assert_eq!(names(&paths.folder), ["00000001.0"]);
        assert_eq!(fs::read_to_string(&paths.bundle).unwrap(), "ca");
        assert_eq!(fs::metadata(&paths.bundle).unwrap().permissions().mode() & 0o777, 0o644);
        // The CA's own file belongs to the CA.
        assert!(!paths.ca.exists());
    }

    #[test]
    fn a_policy_has_each_certificate_of_the_chain() {
        let block = |text: &str| {
            format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
        };
        let pem = block("AAAA\nBB==") + &block("CCCC");
        assert_eq!(chromium_policy(&pem), r#"{"CACertificates":["AAAABB==","CCCC"]}"#);
    }

    #[test]
    fn survives_the_way_into_a_sandbox() {
        let text = serde_json::to_string(&files()).unwrap();
        let back: TrustFiles = serde_json::from_str(&text).unwrap();
        assert_eq!((back.java, back.folder), (files().java, files().folder));
    }
}
