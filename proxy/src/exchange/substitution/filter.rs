//! What is an upload when each of its placeholders is replaced, or refused?

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::uri::PathAndQuery;
use http_body::{Body, Frame};
use outgate_credentials::{Found, Replacement, Search, Tag, Watch, Writing, holds_placeholders};
use outgate_policy::{Denial, Reason};

use super::super::upload::{Upload, UploadError};
use super::{DIGESTS, Findings};
use crate::gate::Judge;

/// What is put together before it goes on: many small values make few frames, and many long ones
/// not one of any length.
const PIECE: usize = 32 << 10;

/// What is done with the bytes of an upload.
pub(super) enum Filter {
    /// Values are written so in place of placeholders.
    Replace(Box<Search>, Writing),
    /// Nothing changes; a placeholder is refused like this.
    Watch(Watch, Denial),
}

/// An upload behind its filter.
pub(super) struct Filtered {
    upload: Box<Upload>,
    filter: Filter,
    judge: Arc<Judge>,
    findings: Arc<Findings>,
    /// What this body's placeholders stand for, each asked for once.
    known: Vec<Replacement>,
    asking: Option<Question>,
    out: BytesMut,
    trailers: Option<HeaderMap>,
    state: State,
    /// Bytes of the upload so far.
    taken: usize,
    changed: bool,
}

/// A placeholder that was met, what stands before it, and the answer on its way.
struct Question {
    before: Bytes,
    answer: Pin<Box<dyn Future<Output = Result<Replacement, Denial>> + Send>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Flowing,
    Ended,
    Refused,
}

impl Filtered {
    pub(super) fn new(
        upload: Upload,
        filter: Filter,
        judge: Arc<Judge>,
        findings: Arc<Findings>,
    ) -> Filtered {
        Filtered {
            upload: Box::new(upload),
            filter,
            judge,
            findings,
            known: Vec::new(),
            asking: None,
            out: BytesMut::new(),
            trailers: None,
            state: State::Flowing,
            taken: 0,
            changed: false,
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// Whether a value may be put in.
    pub(super) fn may_change(&self) -> bool {
        matches!(self.filter, Filter::Replace(..))
    }

    /// Whether it waits for a value, and not for its client.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Whether a value was put in.
    pub(super) fn changed(&self) -> bool {
        self.changed
    }

    pub(super) fn findings(&self) -> Arc<Findings> {
        Arc::clone(&self.findings)
    }

    /// The length of what is still to come, where it can be known.
    pub(super) fn remaining(&self) -> Option<u64> {
        match &self.filter {
            Filter::Replace(..) => None,
            Filter::Watch(..) => self.upload.size_hint().exact(),
        }
    }

    /// The length of the upload as its client said it.
    pub(super) fn said_length(&self) -> Option<u64> {
        self.upload.size_hint().exact().map(|left| left + self.taken as u64)
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let polled = match &self.filter {
            _ if self.state == State::Refused => return Poll::Ready(None),
            Filter::Replace(..) => ready!(self.poll_replaced(cx)),
            Filter::Watch(..) => ready!(self.poll_watched(cx)),
        };
        if let Some(Err(UploadError::Refused(denial))) = &polled {
            self.state = State::Refused;
            self.findings.refuse(denial);
        }
        Poll::Ready(polled)
    }

    fn poll_replaced(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        loop {
            if let Some(question) = &mut self.asking {
                let answer = ready!(question.answer.as_mut().poll(cx));
                let before = std::mem::take(&mut question.before);
                self.asking = None;
                if let Err(denial) = answer.and_then(|answer| self.put(&before, answer)) {
                    return Poll::Ready(Some(Err(UploadError::Refused(denial))));
                }
            }
            let Filter::Replace(search, _) = &mut self.filter else { return Poll::Ready(None) };
            match search.step() {
                Found::Text(text) if self.out.is_empty() => return data(text),
                Found::Text(text) => self.out.extend_from_slice(&text),
                Found::Placeholder(before, tag) => self.ask(before, tag),
                Found::Nothing if !self.out.is_empty() => return data(self.out.split().freeze()),
                Found::Nothing if self.state == State::Ended => {
                    return Poll::Ready(self.trailers.take().map(|all| Ok(Frame::trailers(all))));
                }
                Found::Nothing => ready!(self.poll_more(cx))?,
            }
            if self.out.len() >= PIECE {
                return data(self.out.split().freeze());
            }
        }
    }

    fn ask(&mut self, before: Bytes, tag: Tag) {
        let judge = &self.judge;
        let is_known = |known: &&Replacement| known.is_for(&tag) && judge.is_current(known);
        let known = self.known.iter().find(is_known).cloned();
        let judge = Arc::clone(&self.judge);
        let answer: Pin<Box<dyn Future<Output = _> + Send>> = match known {
            Some(known) => Box::pin(std::future::ready(Ok(known))),
            None => Box::pin(async move { judge.replacement(&tag).await }),
        };
        self.asking = Some(Question { before, answer });
    }

    fn put(&mut self, before: &Bytes, replacement: Replacement) -> Result<(), Denial> {
        let Filter::Replace(_, writing) = self.filter else { return Ok(()) };
        let (before, value) = replacement.write(before, writing)?;
        self.out.extend_from_slice(&before);
        self.out.extend_from_slice(&value);
        self.changed = true;
        self.findings.uses(replacement.used());
        if !self.known.iter().any(|known| known.used() == replacement.used()) {
            self.known.push(replacement);
        }
        Ok(())
    }

    /// Takes the next frame of the upload into the search.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UploadError>> {
        let polled = ready!(Pin::new(&mut *self.upload).poll_frame(cx)).transpose()?;
        let Filter::Replace(search, _) = &mut self.filter else { return Poll::Ready(Ok(())) };
        match polled.map(Frame::into_data) {
            Some(Ok(data)) => {
                self.taken += data.len();
                search.push(data);
            }
            Some(Err(frame)) => {
                search.end();
                self.state = State::Ended;
                if let Ok(mut trailers) = frame.into_trailers() {
                    refuse_in_trailers(&trailers)?;
                    if self.changed {
                        DIGESTS.iter().for_each(|name| drop(trailers.remove(name)));
                    }
                    self.trailers = Some(trailers);
                }
            }
            None => {
                search.end();
                self.state = State::Ended;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_watched(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let polled = ready!(Pin::new(&mut *self.upload).poll_frame(cx));
        let Filter::Watch(watch, denial) = &mut self.filter else { return Poll::Ready(None) };
        if let Some(Ok(frame)) = &polled {
            if let Some(data) = frame.data_ref() {
                self.taken += data.len();
                if watch.sees(data).is_some() {
                    return Poll::Ready(Some(Err(UploadError::Refused(denial.clone()))));
                }
            } else if let Some(trailers) = frame.trailers_ref() {
                refuse_in_trailers(trailers)?;
            }
        }
        Poll::Ready(polled)
    }
}

fn data(bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
    Poll::Ready(Some(Ok(Frame::data(bytes))))
}

/// A value could not be taken back from there, if the origin were to refuse its place.
fn refuse_in_trailers(trailers: &HeaderMap) -> Result<(), UploadError> {
    if !holds_placeholders(trailers, &PathAndQuery::from_static("/")) {
        return Ok(());
    }
    let message = "a placeholder is never replaced in a trailer";
    Err(UploadError::Refused(Denial::new(Reason::PlaceholderNotTrusted, message)))
}
