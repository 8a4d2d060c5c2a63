//! Does HTTP/2 work on either leg, stream by stream, as HTTP/1.1 does request by request?

#[path = "http2/asked.rs"]
mod asked;
#[path = "http2/broken.rs"]
mod broken;
#[path = "http2/drain.rs"]
mod drain;
#[path = "http2/fields.rs"]
mod fields;
#[path = "http2/flow.rs"]
mod flow;
#[path = "http2/heads.rs"]
mod heads;
#[path = "http2/legs.rs"]
mod legs;
#[path = "http2/lifetime.rs"]
mod lifetime;
#[path = "http2/names.rs"]
mod names;
#[path = "http2/room.rs"]
mod room;
#[path = "http2/streams.rs"]
mod streams;
#[path = "http2/trailers.rs"]
mod trailers;
#[path = "http2/upstream.rs"]
mod upstream;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outgate_tests::prelude::*;
use serde_json::Value;

const NAME: &str = "api.example.com";
const OTHER: &str = "a.ok.example.test";

/// A gateway that allows [`NAME`] and [`OTHER`].
fn open_gateway(world: &World) -> Gateway {
    world.gateway(open_environment())
}

fn open_environment() -> Value {
    json!({"network": {"allowlist": [{"domain": NAME}, {"domain": OTHER}]}})
}

/// Tells the scripts of an origin how far its client is.
#[derive(Clone, Default)]
struct Step(Arc<AtomicUsize>);

impl Step {
    fn reach(&self, step: usize) {
        self.0.store(step, Ordering::SeqCst);
    }

    fn reached(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Whether `step` was reached within 10 s.
    fn wait(&self, step: usize) -> bool {
        wait_until(Duration::from_secs(10), || self.reached() >= step)
    }
}

/// What the two legs spoke, by an audit line.
fn spoken(line: &Value) -> (Option<&str>, Option<&str>) {
    (line["http"]["client"].as_str(), line["http"]["origin"].as_str())
}
