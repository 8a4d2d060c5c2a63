//! What streams in each direction, and how far has it come?

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderName;
use http_body::{Body, Frame, SizeHint};
use outgate_policy::{Denial, Reason};
use smallvec::SmallVec;
use tokio::sync::OwnedSemaphorePermit;

use super::client_io::Speaking;
use super::expect::Hold;
use super::forward::{BodyError, Forwarded};
use super::inject::remove_spellings;
use super::pulse::{Pulse, Stream};
use super::substitution::Findings;
use super::trailers;
pub(crate) use super::upload::{Breach, Upload, UploadError};
use crate::audit::Record;
use crate::upstream::SharedLease;

/// The body of a request on its way to the origin.
pub(crate) struct RequestBody {
    inner: Option<Upload>,
    hold: Option<Hold>,
    progress: Arc<Progress>,
    /// Headers that were injected: no trailer may say them again.
    injected: SmallVec<[HeaderName; 2]>,
    /// Its stream, where its client speaks HTTP/2.
    pulse: Option<Pulse>,
    /// Its place on the origin's connection, where others share that: a stream is open until both
    /// of its sides are done, and the answer may be the first.
    place: Option<SharedLease>,
}

/// How far an upload has come; shared with those who wait for its answer.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    bytes: AtomicU64,
    finished: AtomicBool,
    /// It waits for a value that it is to have in it.
    asking: AtomicBool,
    /// What its client did to it, if it did.
    breach: OnceLock<Breach>,
    /// Where placeholders are looked for in it.
    findings: Option<Arc<Findings>>,
}

/// The body of an answer to the client.
pub(crate) struct ReplyBody {
    kind: Kind,
    watcher: Watcher,
    #[expect(dead_code, reason = "its drop gives it back")]
    place: Place,
}

/// What an exchange takes of its environment's bounds, given back by its drop.
pub(crate) enum Place {
    /// Its connection has one, for one exchange at a time.
    OfConnection,
    /// A stream of HTTP/2 has one of its own.
    OfStream(#[expect(dead_code, reason = "its drop gives it back")] OwnedSemaphorePermit),
}

/// Whose connection is told of this answer's progress, and by its drop of its end.
pub(super) enum Watcher {
    Nobody,
    Http1(#[expect(dead_code, reason = "its drop is the message")] Speaking),
    Http2(Stream),
}

enum Kind {
    Empty,
    Full(Bytes),
    Forwarded(Box<Forwarded>),
}

impl Progress {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }

    /// Whether it can move: neither done nor waiting for a value.
    pub(crate) fn is_on_its_way(&self) -> bool {
        !self.is_finished() && !self.asking.load(Ordering::Relaxed)
    }

    /// What its client did to it, which explains whatever came of it.
    pub(crate) fn breach(&self) -> Option<Breach> {
        self.breach.get().copied()
    }

    /// Notes whose values it carries. What it was refused for, if it was.
    pub(crate) fn note(&self, record: &mut Record) -> Option<&Denial> {
        self.findings.as_ref()?.note(record)
    }
}

impl RequestBody {
    pub(crate) fn new(
        upload: Upload,
        hold: Option<Hold>,
        injected: SmallVec<[HeaderName; 2]>,
        pulse: Option<Pulse>,
    ) -> RequestBody {
        let findings = upload.findings();
        let progress = Arc::new(Progress { findings, ..Progress::default() });
        let inner = if upload.is_end_stream() {
            progress.finished.store(true, Ordering::Relaxed);
            None
        } else {
            Some(upload)
        };
        RequestBody { inner, hold, progress, injected, pulse, place: None }
    }

    /// The same again for a retry, if there is nothing in it.
    pub(crate) fn empty_copy(&self) -> Option<RequestBody> {
        let progress = Arc::clone(&self.progress);
        self.inner.is_none().then(|| RequestBody {
            inner: None,
            hold: None,
            progress,
            injected: SmallVec::new(),
            pulse: None,
            place: None,
        })
    }

    /// Lets the body go at once: nobody will be able to say `100 Continue`.
    pub(crate) fn release(&mut self) {
        self.hold = None;
    }

    pub(crate) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Keeps `place` until it is done.
    pub(crate) fn occupies(&mut self, place: &mut SharedLease) {
        self.place = self.inner.is_some().then(|| place.share());
    }

    fn finish(&mut self) {
        self.inner = None;
        self.place = None;
        self.progress.finished.store(true, Ordering::Relaxed);
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let this = self.get_mut();
        if let Some(hold) = &mut this.hold {
            ready!(hold.poll_released(cx));
            this.hold = None;
        }
        let Some(upload) = &mut this.inner else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(&mut *upload).poll_frame(cx);
        this.progress.asking.store(upload.is_asking(), Ordering::Relaxed);
        if polled.is_pending() && this.pulse.as_ref().is_some_and(|pulse| pulse.upload_is_cut(cx)) {
            let message = "the request's body stopped before its end";
            let denial = Denial::new(Reason::RequestTimeout, message);
            return Poll::Ready(Some(Err(UploadError::Refused(denial))));
        }
        let polled = ready!(polled);
        this.pulse.iter().for_each(Pulse::beat);
        match polled {
            Some(Ok(mut frame)) => {
                if let Some(data) = frame.data_ref() {
                    this.progress.bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
                } else if let Some(trailers) = frame.trailers_mut() {
                    trailers::keep_harmless(trailers);
                    this.injected.iter().for_each(|name| remove_spellings(trailers, name));
                }
                if upload.is_end_stream() {
                    this.finish();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            // Passed on as an error, so that the origin sees a broken upload, not a short one.
            Some(Err(error)) => {
                if let UploadError::Client(error) = &error {
                    this.progress.breach.get_or_init(|| Breach::of(error));
                }
                Poll::Ready(Some(Err(error)))
            }
            None => {
                this.finish();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Upload::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or(SizeHint::with_exact(0), Upload::size_hint)
    }
}

impl ReplyBody {
    pub(crate) fn empty() -> ReplyBody {
        ReplyBody::of(Kind::Empty)
    }

    pub(crate) fn full(bytes: Bytes) -> ReplyBody {
        ReplyBody::of(Kind::Full(bytes))
    }

    pub(super) fn forwarded(forwarded: Forwarded) -> ReplyBody {
        ReplyBody::of(Kind::Forwarded(Box::new(forwarded)))
    }

    fn of(kind: Kind) -> ReplyBody {
        ReplyBody { kind, watcher: Watcher::Nobody, place: Place::OfConnection }
    }

    pub(super) fn watched(mut self, watcher: Watcher) -> ReplyBody {
        if let (Kind::Forwarded(forwarded), Watcher::Http2(stream)) = (&mut self.kind, &watcher) {
            forwarded.goes_by(stream.pulse());
        }
        ReplyBody { watcher, ..self }
    }

    /// Keeps `place` until the answer has ended.
    pub(crate) fn in_place(self, place: Place) -> ReplyBody {
        ReplyBody { place, ..self }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let ReplyBody { kind, watcher, .. } = self.get_mut();
        if let Watcher::Http2(stream) = watcher {
            stream.beat();
        }
        match kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *kind = Kind::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Kind::Forwarded(forwarded) => forwarded.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Forwarded(forwarded) => forwarded.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Forwarded(forwarded) => forwarded.size_hint(),
        }
    }
}
