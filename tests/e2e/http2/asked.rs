//! How is a stream asked for with a head that no library would write?

use outgate_tests::http2::RawAnswer;
use outgate_tests::prelude::*;

use crate::NAME;

pub(crate) type Fields<'a> = Vec<(&'a str, &'a str)>;

pub(crate) fn fields<'a>(
    authority: Option<&'a str>,
    path: &'a str,
    more: &[(&'a str, &'a str)],
) -> Fields<'a> {
    let mut fields = vec![(":method", "GET"), (":scheme", "https"), (":path", path)];
    fields.extend(authority.map(|authority| (":authority", authority)));
    fields.extend(more);
    fields
}

/// Streams on one connection, each refused alone, and all the others served.
pub(crate) struct Streams<'a> {
    gateway: &'a Gateway,
    client: FrameClient,
    next: u32,
}

impl<'a> Streams<'a> {
    pub(crate) fn of(gateway: &'a Gateway) -> Self {
        Self { gateway, client: gateway.frames(NAME), next: 1 }
    }

    pub(crate) fn ask(&mut self, fields: &Fields<'_>) -> RawAnswer {
        let answer = self.try_ask(fields);
        answer.unwrap_or_else(|| panic!("{fields:?} ended the connection"))
    }

    /// `None` when it ended the connection; the next comes on a new one.
    pub(crate) fn try_ask(&mut self, fields: &Fields<'_>) -> Option<RawAnswer> {
        let stream = self.next;
        self.next += 2;
        self.client.send(frames::headers(stream, fields));
        let answer = self.client.try_answer(stream);
        if answer.is_none() {
            *self = Self::of(self.gateway);
        }
        answer
    }

    pub(crate) fn control(&mut self) {
        let answer = self.ask(&fields(Some(NAME), "/control", &[]));
        assert_eq!(answer.status(), 200, "{answer:?}");
    }
}

impl Streams<'_> {
    /// A head that needs more than one frame.
    pub(crate) fn large(&mut self, fields: &[(&str, &str)]) -> RawAnswer {
        let stream = self.next;
        self.next += 2;
        let block = frames::header_block(fields);
        let mut pieces = block.chunks(16 << 10).peekable();
        let mut kind = frames::HEADERS;
        while let Some(piece) = pieces.next() {
            let end = if pieces.peek().is_none() { frames::END_HEADERS } else { 0 };
            // Only on HEADERS does this bit mean the end of the stream.
            let flags = if kind == frames::HEADERS { end | frames::END_STREAM } else { end };
            self.client.send(frames::frame(kind, flags, stream, piece));
            kind = frames::CONTINUATION;
        }
        self.client.answer(stream)
    }
}
