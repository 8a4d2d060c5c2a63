//! What can be done with a sandbox whose gateway serves, and in which nothing runs yet?

use std::sync::Arc;

use outgate_policy::EnvironmentId;
use tokio::sync::Notify;

use super::attend::attend;
use super::fetch::{Fetched, fetch};
use super::hooked::Wanted;
use super::signals::Signals;
use crate::app;
use crate::failure::Failure;
use crate::hooks::Hooks;
use crate::sandbox::Launched;
use crate::sources::Fetch;

/// Such a sandbox.
pub(super) struct Inside<'r> {
    pub(super) sandbox: Launched,
    pub(super) fetches: Vec<Fetch>,
    pub(super) running: &'r app::Running,
    pub(super) signals: Signals,
    pub(super) wanted: Wanted,
}

impl Inside<'_> {
    /// Starts the command and follows it to its end; the exit code that outgate takes on.
    pub(super) async fn attend(self) -> Result<u8, Failure> {
        let Inside { sandbox, fetches, running, mut signals, wanted } = self;
        match fetch(fetches, running, &mut signals).await? {
            Fetched::All => attend(sandbox, running, signals, wanted).await,
            Fetched::Interrupted(code) => Ok(code),
        }
    }

    /// Who is asked about tool calls of the sandbox, and under which name.
    pub(super) fn hooks(&self) -> (Arc<Hooks>, EnvironmentId) {
        self.wanted.hooks()
    }

    /// Told when everything is in the sandbox that shall be.
    pub(super) fn ready(&self) -> Arc<Notify> {
        self.wanted.ready()
    }
}
