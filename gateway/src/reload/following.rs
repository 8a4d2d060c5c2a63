//! Which files does a gateway watch, and when has one changed?

use super::Reloader;
use crate::watch::Watch;

/// Folders that come in sight only when others were read are read at once, this often.
const ROUNDS: usize = 3;

impl Reloader {
    /// Watches nothing yet, if anything is to be watched and can be; needs a runtime.
    pub(crate) fn watch(&self) -> Option<Watch> {
        let made = self.reread.watch.then(Watch::new)?;
        made.inspect_err(|error| tracing::warn!(%error, "files can't be watched: use SIGHUP")).ok()
    }

    /// Watches what matters now. What was read before it was watched is read again.
    pub(super) fn follow(&mut self, watch: &mut Option<Watch>) {
        let Some(watch) = watch else { return };
        for _ in 0..ROUNDS {
            let (files, folders) = self.in_force.paths(&self.settings.environments);
            if !watch.set(&files, &folders) {
                return;
            }
            self.read_quietly();
        }
    }
}

/// Never ready where nothing can be watched.
pub(super) async fn changed(watch: &mut Option<Watch>) {
    if let Some(watching) = watch {
        match watching.changed().await {
            Ok(()) => return,
            Err(error) => {
                tracing::error!(%error, "files are not watched any more: use SIGHUP");
                *watch = None;
            }
        }
    }
    std::future::pending::<()>().await;
}
