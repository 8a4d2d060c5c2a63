//! How does the API have the store looked at, and what does it learn?

use outgate_policy::EnvironmentId;
use tokio::sync::{mpsc, oneshot};

/// Has a [`Reloader`](super::Reloader) look at the store at once.
#[derive(Clone)]
pub(crate) struct Rereads(mpsc::Sender<Wish>);

/// An environment whose record is new or gone, and who waits for what comes of it.
pub(super) struct Wish {
    pub(super) id: EnvironmentId,
    pub(super) done: oneshot::Sender<bool>,
}

impl Rereads {
    pub(super) fn new() -> (Rereads, mpsc::Receiver<Wish>) {
        let (rereads, wishes) = mpsc::channel(1);
        (Rereads(rereads), wishes)
    }

    /// Whether what the store says of `id` is in force now.
    pub(crate) async fn now(&self, id: &EnvironmentId) -> bool {
        let (done, seen) = oneshot::channel();
        let wish = Wish { id: id.clone(), done };
        self.0.send(wish).await.is_ok() && seen.await.unwrap_or(false)
    }
}
