//! What does the process find around it?
//!
//! The process's variables are read here, once, before any thread exists, and passed down.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use zeroize::Zeroizing;

/// The variables that mean something to outgate, and who runs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) xdg_state_home: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) log: Option<String>,
    pub(crate) no_color: Option<OsString>,
    pub(crate) path: Option<OsString>,
    pub(crate) store_key: Option<KeyText>,
    pub(crate) root: bool,
    /// All of them, for those that a command gets.
    pub(crate) variables: Variables,
}

/// A key as text; it can't be printed.
#[derive(Clone, PartialEq)]
pub(crate) struct KeyText(Zeroizing<String>);

impl KeyText {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(…)")
    }
}

/// The process's variables as they are.
#[derive(Clone, Default)]
pub(crate) struct Variables(Vec<(OsString, OsString)>);

impl Surroundings {
    /// Reads them from the process.
    pub(crate) fn read() -> Surroundings {
        // An empty variable is an absent one, as the XDG specification has it.
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        Surroundings {
            state_dir: variable("OUTGATE_STATE_DIR").map(PathBuf::from),
            xdg_state_home: variable("XDG_STATE_HOME").map(PathBuf::from),
            home: variable("HOME").map(PathBuf::from),
            log: text("OUTGATE_LOG").or_else(|| text("RUST_LOG")),
            no_color: variable("NO_COLOR"),
            path: variable("PATH"),
            store_key: text("OUTGATE_STORE_KEY").map(|text| KeyText(Zeroizing::new(text))),
            root: nix::unistd::geteuid().is_root(),
            variables: std::env::vars_os().collect(),
        }
    }
}

impl Variables {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(OsString, OsString)> {
        self.0.iter()
    }
}

impl FromIterator<(OsString, OsString)> for Variables {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(pairs: I) -> Variables {
        Variables(pairs.into_iter().collect())
    }
}

/// People keep tokens there.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variables({})", self.0.len())
    }
}
