//! What does the process find around it?
//!
//! The process's variables are read here, once, before any thread exists, and passed down.

use std::ffi::OsString;
use std::path::PathBuf;

/// The variables that mean something to outgate, and who runs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) xdg_state_home: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) log: Option<String>,
    pub(crate) no_color: Option<OsString>,
    pub(crate) path: Option<OsString>,
    pub(crate) root: bool,
}

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
            root: nix::unistd::geteuid().is_root(),
        }
    }
}
