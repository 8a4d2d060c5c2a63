//! Which files are brought into the sandbox, and where do they go?

use std::fmt;
use std::path::{Path, PathBuf};

/// One source of an environment.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// A file whose content stands in the environment file.
    Inline {
        /// The file.
        target: Target,
        /// What is in it.
        content: Vec<u8>,
        /// Whether the sandbox may only read it.
        read_only: bool,
    },
    /// A git repository.
    Repository {
        /// The folder it is cloned into.
        target: Target,
        /// An `https` URL without user and password.
        url: String,
        /// Whether the sandbox may only read it.
        read_only: bool,
    },
    /// Objects of a bucket of Cloud Storage.
    Gcs {
        /// The folder the objects go to.
        target: Target,
        /// The bucket's name.
        bucket: String,
        /// What the objects' names begin with; may be empty.
        prefix: String,
        /// Whether the sandbox may only read them.
        read_only: bool,
    },
}

/// A place below the sandbox's `/`: at least one component, none of them `.` or `..`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target(Vec<String>);

/// Why a text names no target.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Paths end at a NUL.
    #[error("a path has no NUL")]
    Nul,
    /// More `..` than there are folders before them.
    #[error("leads out of the sandbox's `/`")]
    Escapes,
    /// Nothing is left of it.
    #[error("names no file or folder below `/`")]
    Root,
}

impl Source {
    /// Where it goes.
    pub fn target(&self) -> &Target {
        match self {
            Source::Inline { target, .. }
            | Source::Repository { target, .. }
            | Source::Gcs { target, .. } => target,
        }
    }

    /// Whether the sandbox may only read what it brings.
    pub fn is_read_only(&self) -> bool {
        match self {
            Source::Inline { read_only, .. }
            | Source::Repository { read_only, .. }
            | Source::Gcs { read_only, .. } => *read_only,
        }
    }
}

impl Target {
    /// Reads a path, relative or absolute; both resolve against the sandbox's `/`. `..` is taken
    /// back as text, since nothing exists yet that could be a link.
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        if text.contains('\0') {
            return Err(TargetError::Nul);
        }
        let mut components = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(components.pop().ok_or(TargetError::Escapes)?),
                name => components.push(name.to_owned()),
            }
        }
        if components.is_empty() { Err(TargetError::Root) } else { Ok(Target(components)) }
    }

    /// Its components, from the top.
    pub fn components(&self) -> &[String] {
        &self.0
    }

    /// The entry of `/` that it is, or lies below of.
    pub fn top(&self) -> &str {
        &self.0[0]
    }

    /// The place as it is seen inside the sandbox, from `/`.
    pub fn absolute(&self) -> PathBuf {
        Path::new("/").join(self.relative())
    }

    /// The place relative to the sandbox's root.
    pub fn relative(&self) -> PathBuf {
        self.0.iter().collect()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|component| write!(f, "/{component}"))
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({:?})", self.to_string())
    }
}

/// A content may be a secret, and is never short: its length is shown.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = match self {
            Source::Inline { content, .. } => {
                let mut shown = f.debug_struct("Inline");
                shown.field("bytes", &content.len());
                shown
            }
            Source::Repository { url, .. } => {
                let mut shown = f.debug_struct("Repository");
                shown.field("url", url);
                shown
            }
            Source::Gcs { bucket, prefix, .. } => {
                let mut shown = f.debug_struct("Gcs");
                shown.field("bucket", bucket).field("prefix", prefix);
                shown
            }
        };
        shown.field("target", self.target()).field("read_only", &self.is_read_only()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text).expect("a target")
    }

    #[test]
    fn reads_every_target_from_the_root_of_the_sandbox() {
        for text in [".agents/x", "/.agents/x", "./.agents//x/", "a/../.agents/b/../x"] {
            assert_eq!(target(text).absolute(), Path::new("/.agents/x"), "{text}");
            assert_eq!(target(text).relative(), Path::new(".agents/x"), "{text}");
            assert_eq!(target(text).top(), ".agents", "{text}");
        }
        // What looks like a hidden way up is a name.
        assert_eq!(target("...").components(), ["..."]);
    }

    #[test]
    fn never_leads_out_of_the_sandbox() {
        let table = [
            ("..", TargetError::Escapes),
            ("/../etc/passwd", TargetError::Escapes),
            ("a/../../b", TargetError::Escapes),
            ("/", TargetError::Root),
            ("", TargetError::Root),
            ("a/..", TargetError::Root),
            (".", TargetError::Root),
            ("a\0b", TargetError::Nul),
        ];
        for (text, error) in table {
            assert_eq!(Target::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn shows_no_content() {
        let content = b"hunter2".to_vec();
        let shown =
            format!("{:?}", Source::Inline { target: target("a"), content, read_only: true });
        assert_eq!(shown, r#"Inline { bytes: 7, target: Target("/a"), read_only: true }"#);
    }
}
