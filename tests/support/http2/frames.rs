//! What do the frames of HTTP/2 look like, sound or not?
//!
//! RFC 9113 §4 and §6. Everything here is bytes: whether they make sense is for the test to say.

pub use super::hpack::header_block;

/// What a client says first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Kinds of frames.
pub const DATA: u8 = 0;
/// Kinds of frames.
pub const HEADERS: u8 = 1;
/// Kinds of frames.
pub const PRIORITY: u8 = 2;
/// Kinds of frames.
pub const RST_STREAM: u8 = 3;
/// Kinds of frames.
pub const SETTINGS: u8 = 4;
/// Kinds of frames.
pub const PING: u8 = 6;
/// Kinds of frames.
pub const GO_AWAY: u8 = 7;
/// Kinds of frames.
pub const WINDOW_UPDATE: u8 = 8;
/// Kinds of frames.
pub const CONTINUATION: u8 = 9;

/// Flag of DATA and HEADERS; of SETTINGS and PING it means an acknowledgement.
pub const END_STREAM: u8 = 1;
/// Flag of SETTINGS and PING.
pub const ACK: u8 = 1;
/// Flag of HEADERS and CONTINUATION.
pub const END_HEADERS: u8 = 4;

/// Setting: the size of the table that the peer may use to write headers.
pub const HEADER_TABLE_SIZE: u16 = 1;
/// Setting: a stream's first window.
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// `CANCEL`, the error of a client that lost interest.
pub const CANCEL: u32 = 8;
/// `PROTOCOL_ERROR`.
pub const PROTOCOL_ERROR: u32 = 1;
/// `ENHANCE_YOUR_CALM`.
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// One of the kinds above, or another.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream, 0 for the connection.
    pub stream: u32,
    /// What is in it.
    pub payload: Vec<u8>,
}

/// Any frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame is short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The whole frames at the start of `bytes`.
pub fn parse(mut bytes: &[u8]) -> Vec<Frame> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| (all << 8) | u32::from(*byte));
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(9) {
        let length = usize::try_from(number(&head[..3])).expect("24 bits fit");
        let Some((payload, rest)) = rest.split_at_checked(length) else { break };
        let (kind, flags, stream) = (head[3], head[4], number(&head[5..]) & 0x7fff_ffff);
        frames.push(Frame { kind, flags, stream, payload: payload.to_vec() });
        bytes = rest;
    }
    frames
}

/// SETTINGS.
pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let one =
        |(name, value): &(u16, u32)| [name.to_be_bytes().as_slice(), &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &values.iter().flat_map(one).collect::<Vec<u8>>())
}

/// HEADERS of a request without a body.
pub fn headers(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &header_block(fields))
}

/// HEADERS of a request whose body follows.
pub fn open_headers(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &header_block(fields))
}

/// DATA.
pub fn data(stream: u32, bytes: &[u8], end: bool) -> Vec<u8> {
    frame(DATA, if end { END_STREAM } else { 0 }, stream, bytes)
}

/// RST_STREAM.
pub fn reset(stream: u32, error: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &error.to_be_bytes())
}

/// PING.
pub fn ping(number: u64) -> Vec<u8> {
    frame(PING, 0, 0, &number.to_be_bytes())
}

/// WINDOW_UPDATE.
pub fn window_update(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

/// PRIORITY.
pub fn priority(stream: u32) -> Vec<u8> {
    frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 16])
}

/// CONTINUATION that is not the last.
pub fn continuation(stream: u32, block: &[u8]) -> Vec<u8> {
    frame(CONTINUATION, 0, stream, block)
}
