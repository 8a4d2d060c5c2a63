//! What do an origin's interim answers do?
//!
//! They stay between gateway and origin. `100 Continue` releases a body that is held back; more
//! of them than any honest origin sends are an attack (a flood of 1xx never ends a wait).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::{Request, StatusCode};
use tokio::sync::Notify;

use super::body::RequestBody;
use super::expect::{Release, Word};
use crate::limits::INTERIM_ANSWERS;

/// Counts the interim answers to one request.
#[derive(Clone, Default)]
pub(crate) struct Interim(Arc<Count>);

#[derive(Default)]
struct Count {
    answers: AtomicU32,
    flooded: Notify,
}

impl Interim {
    /// Watches for interim answers to `request`, whose body `release` lets go.
    pub(crate) fn watch(request: &mut Request<RequestBody>, release: Option<&Release>) -> Interim {
        let interim = Interim::default();
        let count = interim.clone();
        let release = release.cloned();
        hyper::ext::on_informational(request, move |answer| {
            count.seen();
            if let (StatusCode::CONTINUE, Some(release)) = (answer.status(), &release) {
                release.say(Word::Continue);
            }
        });
        interim
    }

    /// Ready once there were too many.
    pub(crate) async fn flooded(&self) {
        self.0.flooded.notified().await;
    }

    fn seen(&self) {
        if self.0.answers.fetch_add(1, Ordering::Relaxed) + 1 > INTERIM_ANSWERS {
            self.0.flooded.notify_one();
        }
    }
}
