//! Where do audit lines go, and what if they can't?
//!
//! To one writer thread. Nothing is dropped: a write that fails is tried again until it succeeds.
//! Meanwhile lines wait in memory, and when too many do, new requests wait too, and are then
//! refused: so there are never more than that bound and what was open when it was reached.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use outgate_policy::{CredentialId, EnvironmentId};
use tokio::sync::{Notify, mpsc};

use super::line::{self, HookOutcome, Kind, Line, RecordId};
use super::record::{Beginning, Record};
use super::tally::Tally;

/// Lines that may be unwritten when a request begins, each at most about 2 KiB.
const PLACES: usize = 65_536;
/// Lines are written together up to about this much.
const BATCH_BYTES: usize = 64 << 10;
/// How long the writer lets lines gather: woken for each, it would take a core from those who
/// serve.
const GATHER: Duration = Duration::from_millis(10);
/// Pause before a failed write is tried again.
const RETRY: Duration = Duration::from_millis(200);

/// A cheap handle to the sink; one for the whole process.
#[derive(Clone)]
pub struct AuditSink {
    queue: Arc<Queue>,
}

struct Queue {
    lines: mpsc::UnboundedSender<Box<Line>>,
    state: Arc<State>,
    places: usize,
    wait: Duration,
    process: u64,
    next: AtomicU64,
}

/// What the two ends share.
#[derive(Default)]
struct State {
    unwritten: AtomicUsize,
    written: Notify,
    stalled: AtomicBool,
}

/// What somebody asked of a stored credential.
pub struct CredentialChange {
    /// `POST` creates, `PATCH` changes, `DELETE` deletes.
    pub method: Method,
    /// Which one, if that could be read.
    pub id: Option<CredentialId>,
    /// What was answered.
    pub status: u16,
}

/// No place became free in time: the sink is stuck and the request must be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit sink takes no more lines: is its disk full or its reader gone?")]
pub struct SinkFull;

/// The writing end, to be run on a thread of its own.
pub struct AuditWriter {
    lines: mpsc::UnboundedReceiver<Box<Line>>,
    state: Arc<State>,
}

impl AuditSink {
    /// A sink and its writer; a request waits for a place no longer than `wait`.
    pub fn new(wait: Duration) -> (AuditSink, AuditWriter) {
        AuditSink::with_places(PLACES, wait)
    }

    fn with_places(places: usize, wait: Duration) -> (AuditSink, AuditWriter) {
        let (lines, receiver) = mpsc::unbounded_channel();
        let state = Arc::new(State::default());
        let writer = AuditWriter { lines: receiver, state: Arc::clone(&state) };
        let process = RandomState::new().hash_one(0);
        let next = AtomicU64::new(1);
        let queue = Queue { lines, state, places, wait, process, next };
        (AuditSink { queue: Arc::new(queue) }, writer)
    }

    /// How many lines wait to be written.
    pub fn places_taken(&self) -> usize {
        self.queue.state.unwritten.load(Ordering::Relaxed)
    }

    /// How many may, before new requests wait.
    pub fn places(&self) -> usize {
        self.queue.places
    }

    /// Whether the last write failed and is being tried again, or no place is left.
    pub fn is_stalled(&self) -> bool {
        self.queue.state.stalled.load(Ordering::Relaxed) || self.is_full()
    }

    pub(crate) async fn request(&self, beginning: Beginning) -> Result<Record, SinkFull> {
        self.record(|id| beginning.line(Kind::Request, id)).await
    }

    pub(crate) async fn tunnel(&self, beginning: Beginning) -> Result<Record, SinkFull> {
        self.record(|id| beginning.line(Kind::Tunnel, id)).await
    }

    /// Of a request that no client sent: the gateway makes it, and `ingress` says what for.
    pub(crate) async fn own_request(
        &self,
        ingress: &'static str,
        environment: &EnvironmentId,
    ) -> Result<Record, SinkFull> {
        self.record(|id| {
            let mut line = Line::begun(Kind::Request, id, ingress);
            line.environment = Some(environment.clone());
            line
        })
        .await
    }

    /// Whether there is a place for what begins now, waited for as a request would.
    ///
    /// # Errors
    /// No place became free in time.
    pub async fn has_place(&self) -> Result<(), SinkFull> {
        if self.is_full() {
            let place = tokio::time::timeout(self.queue.wait, self.place());
            place.await.map_err(|_| SinkFull)?;
        }
        Ok(())
    }

    /// Writes what became of one handler of a hook; never waits.
    pub fn hook(&self, environment: &EnvironmentId, outcome: HookOutcome) {
        let mut line = Line::begun(Kind::Hook, self.next_id(), "hook");
        line.environment = Some(environment.clone());
        line.times.total = outcome.took;
        line.denied = outcome.denied;
        line.hook = Some(outcome);
        self.take(line);
    }

    /// Writes that somebody asked for a change of a credential, and what came of it.
    pub async fn credential_change(&self, change: &CredentialChange) {
        let line = |id| {
            let mut line = Line::begun(Kind::Credential, id, "management");
            line.method = Some(change.method.clone());
            line.credentials.extend(change.id.clone());
            line.status = Some(change.status);
            line.denied = change.status >= 400;
            line
        };
        // A change that was made is written down, however long that takes: it can't be refused now.
        loop {
            match self.record(line).await {
                Ok(record) => return record.finish(),
                Err(full) => tracing::error!(%full, "a change of a credential waits for its line"),
            }
        }
    }

    /// Takes a finished line; never waits.
    pub(super) fn take(&self, line: Box<Line>) {
        self.queue.state.unwritten.fetch_add(1, Ordering::Relaxed);
        if self.queue.lines.send(line).is_err() {
            tracing::error!("an audit line came after the writer had ended");
        }
    }

    async fn record(&self, line: impl FnOnce(RecordId) -> Box<Line>) -> Result<Record, SinkFull> {
        self.has_place().await?;
        let id = self.next_id();
        Ok(Record::new(line(id), self.clone()))
    }

    fn next_id(&self) -> RecordId {
        let count = self.queue.next.fetch_add(1, Ordering::Relaxed);
        RecordId { process: self.queue.process, count }
    }

    async fn place(&self) {
        loop {
            let written = self.queue.state.written.notified();
            if !self.is_full() {
                return;
            }
            written.await;
        }
    }

    fn is_full(&self) -> bool {
        self.places_taken() >= self.queue.places
    }
}

impl AuditWriter {
    /// Writes lines to `out` until every [`AuditSink`] and [`Record`] is gone, and has `count`
    /// count each once it is written.
    pub fn run(mut self, mut out: impl Write, mut count: impl FnMut(&Tally)) {
        let mut batch = Vec::with_capacity(BATCH_BYTES);
        let mut tallies = Vec::new();
        while let Some(first) = self.lines.blocking_recv() {
            std::thread::sleep(GATHER);
            let mut next = Some(first);
            while let Some(line) = next {
                line::write(&line, &mut batch);
                tallies.push(Tally::of(&line));
                next = self.lines.try_recv().ok();
                if next.is_none() || batch.len() >= BATCH_BYTES {
                    self.write_all(&batch, &mut out);
                    batch.clear();
                    self.state.unwritten.fetch_sub(tallies.len(), Ordering::Relaxed);
                    self.state.written.notify_waiters();
                    tallies.drain(..).flatten().for_each(|tally| count(&tally));
                }
            }
        }
    }

    /// All of `batch`, however often it takes: a half-written line is continued, not repeated.
    fn write_all(&self, batch: &[u8], out: &mut impl Write) {
        let mut left = batch;
        while !left.is_empty() {
            match out
                .write(left)
                .and_then(|n| if n == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(n) })
            {
                Ok(written) => {
                    left = &left[written..];
                    self.state.stalled.store(false, Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    if !self.state.stalled.swap(true, Ordering::Relaxed) {
                        tracing::error!(%error, "the audit sink can't be written; trying again");
                    }
                    std::thread::sleep(RETRY);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use outgate_policy::Reason;

    use super::*;
    use crate::ingress::Ingress;

    const WAIT: Duration = Duration::from_millis(50);

    /// Takes one byte at a time, and fails every third call.
    #[derive(Clone, Default)]
    struct Reluctant(Arc<Mutex<(Vec<u8>, u32)>>);

    impl Write for Reluctant {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut state = self.0.lock().expect("whole");
            state.1 += 1;
            if state.1 == 3 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            state.0.push(bytes[0]);
            Ok(1)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn beginning() -> Beginning {
        Beginning { ingress: Ingress::Explicit, client: None, environment: None }
    }

    fn written(write: impl FnOnce(&mut Record)) -> serde_json::Value {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let (sink, writer) = AuditSink::new(WAIT);
        runtime.expect("a runtime").block_on(async {
            let mut record = sink.request(beginning()).await.expect("a place");
            write(&mut record);
        });
        drop(sink);
        let out = Reluctant::default();
        writer.run(out.clone(), |_| {});
        let text = out.0.lock().expect("whole").0.clone();
        assert_eq!(text.iter().filter(|b| **b == b'\n').count(), 1, "one line");
        serde_json::from_slice(&text).expect("JSON")
    }

    #[test]
    fn a_forgotten_record_is_still_one_line() {
        let line = written(|record| record.asks(&Method::GET, "/x"));
        assert_eq!(line["error"], "the client left, or was cut off, before the end");
        assert_eq!((&line["path"], &line["verdict"]), (&"/x".into(), &"allow".into()));
    }

    #[test]
    fn control_characters_never_reach_a_terminal() {
        let line = written(|record| {
            record.asks(&Method::GET, "/\u{1b}]0;\u{9b}\u{2028}\u{7f}é");
            record.refused(Reason::DomainNotAllowed);
        });
        assert_eq!(line["path"], "/\u{1b}]0;\\u{9b}\\u{2028}\\u{7f}é");
        assert_eq!(line["reason"], "domain_not_allowed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_sink_makes_new_requests_wait_and_loses_no_line() {
        let (sink, writer) = AuditSink::with_places(1, WAIT);
        let first = sink.request(beginning()).await.expect("a place");
        let second = sink.request(beginning()).await.expect("an open request takes no place");
        first.finish();
        assert!(sink.request(beginning()).await.is_err(), "the only place is taken");
        second.finish();
        drop(sink);
        let out = Reluctant::default();
        let to = out.clone();
        std::thread::spawn(move || writer.run(to, |_| {})).join().expect("no panic");
        let lines = out.0.lock().expect("whole").0.clone();
        assert_eq!(lines.iter().filter(|b| **b == b'\n').count(), 2);
    }

    #[tokio::test]
    async fn who_waits_for_a_place_goes_on_when_one_is_free() {
        let (sink, writer) = AuditSink::with_places(1, Duration::from_secs(10));
        sink.request(beginning()).await.expect("a place").finish();
        let waiting = tokio::spawn({
            let sink = sink.clone();
            async move { sink.request(beginning()).await.is_ok() }
        });
        std::thread::spawn(move || writer.run(io::sink(), |_| {}));
        assert!(waiting.await.expect("no panic"));
    }
}
