//! What can go wrong with certificates, whose fault is it, and what helps?
//!
//! No variant carries a byte of a key file.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a certificate, a key or a TLS configuration could not be had.
///
/// Each message is one sentence in lower case that names the file and the next step.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum CertsError {
    /// The operating system refused.
    #[error("can't {action} {}: {}", path.display(), said(*kind))]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        kind: io::ErrorKind,
    },
    /// A file is larger than any certificate or key file.
    #[error("{} is larger than {limit} bytes: this is not a certificate or key file", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that is read of such a file.
        limit: usize,
    },
    /// Something that may block, or never end.
    #[error("{} is {kind}, and nothing but a regular file is read: put the PEM text into a file", path.display())]
    NotAFile {
        /// What was named.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// Of the two files of the CA one is there, the other isn't.
    #[error(
        "{} is there but {} is not: put it back from a backup, or replace both with `outgate ca new`",
        present.display(),
        missing.display()
    )]
    HalfPair {
        /// The file that was found.
        present: PathBuf,
        /// The file that was not.
        missing: PathBuf,
    },
    /// Every user of the machine can read or write the CA's key.
    #[error("{} is open to every user (mode {mode:04o}): run `chmod 600 {}`", path.display(), path.display())]
    KeyExposed {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A PEM file holds no certificate.
    #[error("{} holds no certificate: it must be PEM with a BEGIN CERTIFICATE line", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A PEM file is damaged, or one of its certificates is.
    #[error("certificate {position} in {} can't be read ({problem}): export it again as PEM", path.display())]
    BrokenCertificate {
        /// The file.
        path: PathBuf,
        /// Which one in the file, from 1.
        position: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A key file holds no key that can be read.
    #[error(
        "{} holds no private key: it must be unencrypted PEM (PKCS#8, SEC1 or PKCS#1)",
        path.display()
    )]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// A key file is protected by a passphrase.
    #[error("{} is encrypted: decrypt it with `openssl pkey -in {} -out NEW`", path.display(), path.display())]
    EncryptedKey {
        /// The file.
        path: PathBuf,
    },
    /// A key is of a kind that not every client would accept.
    #[error("the key in {} is not EC P-256, EC P-384 or RSA of 2048 bits or more: use one of these", path.display())]
    UnsupportedKey {
        /// The file.
        path: PathBuf,
    },
    /// The certificate of the CA may not issue leaves.
    #[error("{} can't be used as CA: {problem}", path.display())]
    NotAnAuthority {
        /// The certificate file.
        path: PathBuf,
        /// Which rule it breaks, with what would be right.
        problem: &'static str,
    },
    /// The key belongs to another certificate.
    #[error("{} is not the key of {}: name the two files of one CA", key.display(), certificate.display())]
    KeyMismatch {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        key: PathBuf,
    },
    /// A client's key belongs to another certificate, or one of the two is damaged.
    #[error("{} is not the key of {}: name two files that belong together", key.display(), certificate.display())]
    KeyOfAnother {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        key: PathBuf,
    },
    /// A client's key is of a kind that TLS has no use for.
    #[error("the key in {} is of no kind that can be used: use EC P-256, EC P-384, Ed25519 or RSA of 2048 bits or more", path.display())]
    UnusableKey {
        /// The file.
        path: PathBuf,
    },
    /// The CA is no longer valid.
    #[error(
        "the CA in {} has expired: renew it, or make a new one with `outgate ca new` (clients must then trust that one)",
        path.display()
    )]
    Expired {
        /// The certificate file.
        path: PathBuf,
    },
    /// The CA is not valid yet.
    #[error("the CA in {} is not valid yet: check this machine's clock, then the certificate's dates", path.display())]
    NotYetValid {
        /// The certificate file.
        path: PathBuf,
    },
    /// The system offers no trust anchors.
    #[error(
        "no trusted roots found on this system{}: install ca-certificates, or name a PEM file with --origin-roots",
        list(problems)
    )]
    NoSystemRoots {
        /// What was met while looking.
        problems: Vec<String>,
    },
    /// There is nothing to verify origins against.
    #[error("no roots to verify origins with: name a PEM file with --origin-roots")]
    NoRoots,
    /// A leaf can't be issued for a name of this kind.
    #[error("no certificate can be issued for this kind of name: use a DNS name or an IP address")]
    UnsupportedName,
    /// The crypto library refused to make a key or a certificate.
    #[error("can't {action}: {problem}")]
    Signing {
        /// What was tried, as a verb.
        action: &'static str,
        /// What the library said.
        problem: String,
    },
    /// rustls refused a configuration.
    #[error("can't configure tls: {0}")]
    Tls(#[from] rustls::Error),
}

impl CertsError {
    /// For `map_err` on system calls.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { action, path: path.to_owned(), kind: error.kind() }
    }

    /// For `map_err` on rcgen and aws-lc-rs, whose errors never show key material.
    pub(crate) fn signing<E: ToString>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Signing { action, problem: error.to_string() }
    }
}

/// The system's words; those of `ErrorKind` for a missing file are "entity not found".
fn said(kind: io::ErrorKind) -> String {
    match kind {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        other => other.to_string(),
    }
}

fn list(problems: &[String]) -> String {
    match problems {
        [] => String::new(),
        some => format!(" ({})", some.join("; ")),
    }
}
