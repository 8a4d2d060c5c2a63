//! Where does the HTTP/2 of a test run, while the test itself blocks?

use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// What comes at all comes within this, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(10);

/// An event loop on a thread of its own, until this is dropped.
pub(crate) struct Background {
    handle: Handle,
    _running: oneshot::Sender<()>,
}

impl Background {
    pub(crate) fn start() -> Self {
        let runtime =
            Builder::new_current_thread().enable_all().build().expect("an event loop can be made");
        let handle = runtime.handle().clone();
        let (running, stopped) = oneshot::channel();
        thread::spawn(move || {
            // It ends with an error: nothing is ever sent.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        });
        Self { handle, _running: running }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

/// Waits for `future` on the caller's thread.
///
/// # Panics
/// When it is not ready within 10 s.
pub(crate) fn wait<T>(handle: &Handle, what: &str, future: impl Future<Output = T>) -> T {
    within(handle, DEADLINE, future).unwrap_or_else(|| panic!("{what}: not within {DEADLINE:?}"))
}

/// What `future` comes to within `deadline`.
pub(crate) fn within<T>(
    handle: &Handle,
    deadline: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    handle.block_on(async { tokio::time::timeout(deadline, future).await.ok() })
}
