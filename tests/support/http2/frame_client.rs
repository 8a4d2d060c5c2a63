//! What does the gateway answer to exactly these frames?

use super::frames::{self, Frame};
use super::hpack;
use crate::client::{Hello, RawClient};
use crate::gateway::Gateway;
use crate::http::ReadFault;

/// A client that writes frames as they are given, and reads them one by one. SETTINGS and PING are
/// acknowledged while it reads, as any client does.
pub struct FrameClient {
    raw: RawClient,
    acknowledges: bool,
}

/// What came on one stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RawAnswer {
    /// Fields of the head, `:status` among them.
    pub fields: Vec<(String, String)>,
    /// All its bytes.
    pub body: Vec<u8>,
    /// The error of a RST_STREAM.
    pub reset: Option<u32>,
}

impl RawAnswer {
    /// The status, 0 without a head.
    pub fn status(&self) -> u16 {
        self.field(":status").and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// The reason code of a refusal.
    pub fn reason(&self) -> Option<&str> {
        self.field("outgate-reason")
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl FrameClient {
    /// Begins HTTP/2 on a connection, with an empty table for headers and these settings besides.
    pub fn over(raw: RawClient, settings: &[(u16, u32)]) -> Self {
        let settings = [&[(frames::HEADER_TABLE_SIZE, 0)], settings].concat();
        let mut client = Self { raw, acknowledges: true };
        client.send(frames::PREFACE);
        client.send(frames::settings(&settings));
        client
    }

    /// No longer acknowledges anything.
    pub fn mute(&mut self) {
        self.acknowledges = false;
    }

    /// Sends bytes as they are. Whether the gateway still took them.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.raw.send(bytes)
    }

    /// The next frame; `None` at the end of the connection.
    ///
    /// # Errors
    /// When nothing comes in time, or the connection breaks.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, ReadFault> {
        let Some(head) = self.exactly(9)? else { return Ok(None) };
        let number = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | u32::from(*byte));
        let length = usize::try_from(number(&head[..3])).expect("24 bits fit");
        let Some(payload) = self.exactly(length)? else { return Ok(None) };
        let (kind, flags) = (head[3], head[4]);
        let asks = matches!(kind, frames::SETTINGS | frames::PING) && flags & frames::ACK == 0;
        if asks && self.acknowledges {
            let echo: &[u8] = if kind == frames::PING { &payload } else { &[] };
            self.send(frames::frame(kind, frames::ACK, 0, echo));
        }
        Ok(Some(Frame { kind, flags, stream: number(&head[5..]) & 0x7fff_ffff, payload }))
    }

    /// What comes on this stream to its end; windows are opened for it.
    ///
    /// # Panics
    /// When it does not end, or its connection ends first.
    pub fn answer(&mut self, stream: u32) -> RawAnswer {
        let answer = self.try_answer(stream);
        answer.unwrap_or_else(|| panic!("the connection ended before stream {stream}"))
    }

    /// [`FrameClient::answer`], or `None` when the connection ends first.
    ///
    /// # Panics
    /// When neither ends.
    pub fn try_answer(&mut self, stream: u32) -> Option<RawAnswer> {
        let mut answer = RawAnswer::default();
        loop {
            let frame = match self.next_frame() {
                Ok(frame) => frame?,
                Err(ReadFault::Truncated { .. } | ReadFault::Reset { .. }) => return None,
                Err(fault) => panic!("stream {stream} has no end ({fault}), so far: {answer:?}"),
            };
            if frame.stream != stream {
                continue;
            }
            match frame.kind {
                frames::HEADERS => {
                    let fields = hpack::read(&frame.payload);
                    answer.fields.extend(fields.expect("a header block that can be read"));
                }
                frames::DATA if !frame.payload.is_empty() => {
                    let length = u32::try_from(frame.payload.len()).expect("a frame is short");
                    self.send(frames::window_update(0, length));
                    answer.body.extend_from_slice(&frame.payload);
                }
                frames::RST_STREAM => {
                    answer.reset = Some(error_code(&frame.payload));
                    return Some(answer);
                }
                _ => {}
            }
            let may_end = matches!(frame.kind, frames::HEADERS | frames::DATA);
            if may_end && frame.flags & frames::END_STREAM != 0 {
                return Some(answer);
            }
        }
    }

    /// Reads until the connection ends; the error of its last GOAWAY.
    ///
    /// # Panics
    /// When it does not end.
    pub fn ending(&mut self) -> Option<u32> {
        let mut last = None;
        loop {
            match self.next_frame() {
                Ok(Some(frame)) if frame.kind == frames::GO_AWAY => {
                    last = Some(error_code(&frame.payload[4..]));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(ReadFault::Truncated { .. } | ReadFault::Reset { .. }) => {
                    return last;
                }
                Err(fault) => panic!("the connection does not end: {fault}"),
            }
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Option<Vec<u8>>, ReadFault> {
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let more = self.raw.read_some()?;
            if more.is_empty() {
                return Ok(None);
            }
            bytes.extend(more);
        }
        self.raw.put_back(bytes.split_off(length));
        Ok(Some(bytes))
    }
}

impl Gateway {
    /// A client of raw frames over TLS in a tunnel to this name, port 443.
    ///
    /// # Panics
    /// When there is no such tunnel.
    pub fn frames(&self, name: &str) -> FrameClient {
        self.frames_with(name, &[])
    }

    /// [`Gateway::frames`] with these settings.
    ///
    /// # Panics
    /// When there is no such tunnel.
    pub fn frames_with(&self, name: &str, settings: &[(u16, u32)]) -> FrameClient {
        let client = self.client().connect_tunnel(&format!("{name}:443"));
        FrameClient::over(client.tls(&Hello::to(name).alpn(&["h2"])), settings)
    }
}

fn error_code(payload: &[u8]) -> u32 {
    payload.iter().take(4).fold(0, |all, byte| all << 8 | u32::from(*byte))
}
