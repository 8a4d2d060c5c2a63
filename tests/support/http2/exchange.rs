//! What passes on one stream of a client?

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Error, Reason, RecvStream, SendStream};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::runtime::Handle;

use super::{wait, within};

/// One stream. Dropped before its end, it is reset with `CANCEL`.
pub struct Exchange {
    handle: Handle,
    response: Option<ResponseFuture>,
    upload: SendStream<Bytes>,
    download: Option<RecvStream>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// Three digits.
    pub status: u16,
    /// Every field of the head.
    pub headers: HeaderMap,
    /// All its bytes.
    pub body: Vec<u8>,
    /// Fields after the body, if there were some.
    pub trailers: Option<HeaderMap>,
}

impl Answer {
    /// The value of the one field of this name.
    ///
    /// # Panics
    /// When there are several, or it is no text.
    pub fn header(&self, name: &str) -> Option<&str> {
        one(&self.headers, name)
    }

    /// The value of the one trailer of this name.
    ///
    /// # Panics
    /// When there are several, or it is no text.
    pub fn trailer(&self, name: &str) -> Option<&str> {
        one(self.trailers.as_ref()?, name)
    }

    /// The reason code of a refusal.
    pub fn reason(&self) -> Option<&str> {
        self.header("outgate-reason")
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|fault| panic!("not JSON ({fault}): {}", self.text()))
    }
}

impl Exchange {
    pub(super) fn new(handle: Handle, response: ResponseFuture, upload: SendStream<Bytes>) -> Self {
        Self { handle, response: Some(response), upload, download: None }
    }

    /// Sends bytes as windows allow it.
    ///
    /// # Panics
    /// When the peer takes none for 10 s, or resets the stream.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let sent = send_all(&mut self.upload, bytes);
        let sent = wait(&self.handle, "a window for an upload", sent);
        assert!(sent == bytes.len(), "the stream was reset after {sent} bytes of {}", bytes.len());
    }

    /// Sends bytes for as long as a window opens within `patience`; how many went out.
    pub fn send_while_taken(&mut self, bytes: &[u8], patience: Duration) -> usize {
        let mut sent = 0;
        for piece in bytes.chunks(16 << 10) {
            match within(&self.handle, patience, send_all(&mut self.upload, piece)) {
                Some(length) if length == piece.len() => sent += length,
                _ => break,
            }
        }
        sent
    }

    /// Ends the upload.
    ///
    /// # Panics
    /// When the stream is closed.
    pub fn finish(&mut self) {
        self.upload.send_data(Bytes::new(), true).expect("the stream is open");
    }

    /// Ends the upload with trailers.
    ///
    /// # Panics
    /// When the stream is closed.
    pub fn finish_with(&mut self, trailers: &[(&'static str, &str)]) {
        self.upload.send_trailers(header_map(trailers)).expect("the stream is open");
    }

    /// RST_STREAM.
    pub fn reset(&mut self, reason: Reason) {
        self.upload.send_reset(reason);
    }

    /// The head of the answer.
    ///
    /// # Errors
    /// When the stream or its connection ends without one.
    ///
    /// # Panics
    /// When it was read before.
    pub fn head(&mut self) -> Result<Parts, Error> {
        let response = self.response.take().expect("a head is read once");
        let response = wait(&self.handle, "the head of an answer", response)?;
        let (parts, download) = response.into_parts();
        self.download = Some(download);
        Ok(parts)
    }

    /// The next bytes of the answer, whose window is opened again; `None` at its end.
    ///
    /// # Errors
    /// When the stream or its connection ends early.
    ///
    /// # Panics
    /// When the head was not read.
    pub fn data(&mut self) -> Result<Option<Bytes>, Error> {
        let data = self.data_kept()?;
        if let Some(data) = &data {
            let flow = self.download().flow_control();
            flow.release_capacity(data.len()).expect("as much as came");
        }
        Ok(data)
    }

    /// [`Exchange::data`], but without a WINDOW_UPDATE: the peer's window shrinks.
    ///
    /// # Errors
    /// When the stream or its connection ends early.
    ///
    /// # Panics
    /// When the head was not read.
    pub fn data_kept(&mut self) -> Result<Option<Bytes>, Error> {
        let handle = self.handle.clone();
        wait(&handle, "a piece of an answer", self.download().data()).transpose()
    }

    /// Whether more of the answer, or its end, comes within `deadline`. Loses what comes.
    pub fn moves_within(&mut self, deadline: Duration) -> bool {
        let handle = self.handle.clone();
        within(&handle, deadline, self.download().data()).is_some()
    }

    /// The rest of the answer's body, and its trailers.
    ///
    /// # Errors
    /// When the stream or its connection ends early.
    pub fn rest(&mut self) -> Result<(Vec<u8>, Option<HeaderMap>), Error> {
        let mut body = Vec::new();
        while let Some(data) = self.data()? {
            body.extend_from_slice(&data);
        }
        let handle = self.handle.clone();
        let trailers = wait(&handle, "trailers", self.download().trailers())?;
        Ok((body, trailers))
    }

    /// The whole answer.
    ///
    /// # Errors
    /// When the stream or its connection ends without one.
    pub fn answer(mut self) -> Result<Answer, Error> {
        let head = self.head()?;
        let (body, trailers) = self.rest()?;
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body, trailers })
    }

    fn download(&mut self) -> &mut RecvStream {
        self.download.as_mut().expect("the head is read first")
    }
}

/// Sends all, or what went out before the stream ended.
pub(crate) async fn send_all(stream: &mut SendStream<Bytes>, bytes: &[u8]) -> usize {
    let mut sent = 0;
    while sent < bytes.len() {
        stream.reserve_capacity(bytes.len() - sent);
        let Some(Ok(room)) = poll_fn(|cx| stream.poll_capacity(cx)).await else { break };
        let piece = Bytes::copy_from_slice(&bytes[sent..][..room.min(bytes.len() - sent)]);
        let length = piece.len();
        if stream.send_data(piece, false).is_err() {
            break;
        }
        sent += length;
    }
    sent
}

pub(crate) fn header_map(fields: &[(&'static str, &str)]) -> HeaderMap {
    let field = |(name, value): &(&'static str, &str)| {
        let value = HeaderValue::from_str(value).expect("a value of a header");
        (HeaderName::from_static(name), value)
    };
    fields.iter().map(field).collect()
}

fn one<'a>(fields: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let values: Vec<_> = fields.get_all(name).iter().collect();
    assert!(values.len() < 2, "{name} stands there {} times: {values:?}", values.len());
    values.first().map(|value| value.to_str().expect("a value that is text"))
}
