//! What does a client say in its frames?
//!
//! RFC 6455 §5, for who reads texts alone: of other messages and of control frames the bytes pass
//! as they are, and are not kept.

use bytes::{Bytes, BytesMut};

use super::{Close, head_length, payload_length};

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PONG: u8 = 10;
/// What a control frame holds at most.
const CONTROL_BYTES: u64 = 125;

/// A client's frames in the middle of being read.
pub(crate) struct Decoder {
    input: BytesMut,
    state: State,
    /// The message that has begun and has not ended.
    open: Open,
    /// What is known of a text message, without its masks.
    text: Vec<u8>,
    most: usize,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Bytes that pass as they are.
    Bytes(Bytes),
    /// A whole text message.
    Text(Vec<u8>),
    /// More bytes are needed.
    Nothing,
}

/// A client broke the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) close: Close,
    pub(crate) why: &'static str,
}

#[derive(Clone, Copy)]
enum State {
    Head,
    /// In a frame that passes; whether it is the last one that may be said.
    Passing {
        left: u64,
        last: bool,
    },
    /// In a frame of a text; whether the message ends with it.
    Text {
        left: u64,
        key: [u8; 4],
        at: usize,
        ends: bool,
    },
    /// The client has closed; nothing may follow (RFC 6455 §5.5.1).
    Closed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Text,
    Binary,
}

impl Decoder {
    /// Texts of up to `most` bytes are read.
    pub(crate) fn new(most: usize) -> Decoder {
        Decoder {
            input: BytesMut::new(),
            state: State::Head,
            open: Open::Nothing,
            text: Vec::new(),
            most,
        }
    }

    /// More of what the client sends.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// How much of a text is kept that has not ended.
    pub(super) fn held(&self) -> usize {
        self.text.len()
    }

    /// What it says next; to be asked until it says nothing.
    pub(crate) fn next(&mut self) -> Result<Said, Violation> {
        loop {
            match self.state {
                State::Closed => self.input.clear(),
                State::Head => {
                    if let Some(head) = self.head()? {
                        return Ok(Said::Bytes(head));
                    }
                    if let State::Head | State::Closed = self.state {
                        return Ok(Said::Nothing);
                    }
                    continue;
                }
                State::Passing { left: 0, last } => {
                    self.state = if last { State::Closed } else { State::Head };
                    continue;
                }
                State::Passing { left, last } if !self.input.is_empty() => {
                    let bytes = self.take(left);
                    self.state = State::Passing { left: left - bytes.len() as u64, last };
                    return Ok(Said::Bytes(bytes));
                }
                State::Text { left: 0, ends, .. } => {
                    self.state = State::Head;
                    if ends {
                        self.open = Open::Nothing;
                        return Ok(Said::Text(std::mem::take(&mut self.text)));
                    }
                    continue;
                }
                State::Text { left, key, at, ends } if !self.input.is_empty() => {
                    let bytes = self.take(left);
                    let plain = bytes.iter().enumerate().map(|(i, byte)| byte ^ key[(at + i) % 4]);
                    self.text.extend(plain);
                    let left = left - bytes.len() as u64;
                    self.state = State::Text { left, key, at: at + bytes.len(), ends };
                    continue;
                }
                State::Passing { .. } | State::Text { .. } => {}
            }
            return Ok(Said::Nothing);
        }
    }

    fn take(&mut self, most: u64) -> Bytes {
        let length = usize::try_from(most).unwrap_or(usize::MAX).min(self.input.len());
        self.input.split_to(length).freeze()
    }

    /// Reads a head, if it is all there; gives it back if its frame passes.
    fn head(&mut self) -> Result<Option<Bytes>, Violation> {
        let Some(&[first, second]) = self.input.first_chunk() else { return Ok(None) };
        let length = head_length(second);
        check(first, second)?;
        if self.input.len() < length {
            return Ok(None);
        }
        let head = self.input.split_to(length).freeze();
        let left = payload_length(&head);
        check_length(&head, left)?;
        let (ends, opcode) = (first & 0x80 != 0, first & 0x0f);
        if opcode >= CLOSE {
            if opcode == CLOSE && left == 1 {
                return Err(broken("a close frame with half a code"));
            }
            self.state = State::Passing { left, last: opcode == CLOSE };
            return Ok(Some(head));
        }
        match self.message(opcode)? {
            Open::Text => {
                if left > (self.most - self.text.len()) as u64 {
                    let why = "a text message longer than websocket_message_bytes";
                    return Err(Violation { close: Close::TooBig, why });
                }
                let key = *head.last_chunk().expect("a client's head ends with its mask");
                self.open = Open::Text;
                self.state = State::Text { left, key, at: 0, ends };
                Ok(None)
            }
            Open::Binary | Open::Nothing => {
                self.open = if ends { Open::Nothing } else { Open::Binary };
                self.state = State::Passing { left, last: false };
                Ok(Some(head))
            }
        }
    }

    /// The message that a data frame is part of.
    fn message(&self, opcode: u8) -> Result<Open, Violation> {
        match (opcode, self.open) {
            (CONTINUATION, Open::Nothing) => Err(broken("a continuation of nothing")),
            (CONTINUATION, open) => Ok(open),
            (TEXT, Open::Nothing) => Ok(Open::Text),
            (_, Open::Nothing) => Ok(Open::Binary),
            (_, Open::Text | Open::Binary) => Err(broken("a message inside of another")),
        }
    }
}

fn check(first: u8, second: u8) -> Result<(), Violation> {
    if first & 0x70 != 0 {
        return Err(broken("a reserved bit, and no extension was agreed on"));
    }
    if !matches!(first & 0x0f, CONTINUATION..=BINARY | CLOSE..=PONG) {
        return Err(broken("an opcode that means nothing"));
    }
    if second & 0x80 == 0 {
        return Err(broken("a client's frame without a mask"));
    }
    if first & 0x0f >= CLOSE && (first & 0x80 == 0 || u64::from(second & 0x7f) > CONTROL_BYTES) {
        return Err(broken("a control frame in pieces, or too long"));
    }
    Ok(())
}

/// The shortest form, and no more than 63 bits.
fn check_length(head: &[u8], length: u64) -> Result<(), Violation> {
    let fits = match head[1] & 0x7f {
        126 => length > 125,
        127 => length > u64::from(u16::MAX) && length >> 63 == 0,
        _ => true,
    };
    if fits { Ok(()) } else { Err(broken("a length in another than the shortest form")) }
}

fn broken(why: &'static str) -> Violation {
    Violation { close: Close::Protocol, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 4] = [1, 2, 3, 4];

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![first];
        match payload.len() {
            short @ 0..=125 => frame.push(0x80 | u8::try_from(short).expect("short")),
            long => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&u16::try_from(long).expect("two bytes").to_be_bytes());
            }
        }
        frame.extend_from_slice(&KEY);
        frame.extend(payload.iter().enumerate().map(|(i, byte)| byte ^ KEY[i % 4]));
        frame
    }

    fn read(input: &[u8], size: usize) -> Result<(Vec<u8>, Vec<Vec<u8>>), Violation> {
        let mut decoder = Decoder::new(1000);
        let (mut passed, mut texts) = (Vec::new(), Vec::new());
        for piece in input.chunks(size) {
            decoder.push(piece);
            loop {
                match decoder.next()? {
                    Said::Bytes(bytes) => passed.extend_from_slice(&bytes),
                    Said::Text(text) => texts.push(text),
                    Said::Nothing => break,
                }
            }
        }
        Ok((passed, texts))
    }

    #[test]
    fn texts_are_told_whole_and_everything_else_passes_as_it_is() {
        let ping = frame(0x89, b"ping");
        let binary = [frame(0x02, &[7; 300]), ping.clone(), frame(0x80, b"end")].concat();
        let close = frame(0x88, &[3, 232]);
        let input = [
            frame(0x81, b"one"),
            frame(0x01, b"tw"),
            ping.clone(),
            frame(0x00, b""),
            frame(0x80, b"o"),
            binary.clone(),
            frame(0x81, b""),
            close.clone(),
            b"nothing follows a close".to_vec(),
        ]
        .concat();
        let due = [ping, binary, close].concat();
        for size in 1..input.len() {
            let (passed, texts) = read(&input, size).expect("no violation");
            assert_eq!(texts, [&b"one"[..], b"two", b""], "{size}");
            assert_eq!(passed, due, "{size}");
        }
    }

    #[test]
    fn what_breaks_the_rules_is_told() {
        let mut unmasked = frame(0x81, b"x");
        unmasked[1] &= 0x7f;
        let minimal = [&[0x81, 0x80 | 126, 0, 5][..], &KEY].concat();
        let huge = [&[0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0][..], &KEY].concat();
        for (input, close) in [
            (frame(0xc1, b"x"), Close::Protocol),
            (frame(0x83, b"x"), Close::Protocol),
            (frame(0x8b, b"x"), Close::Protocol),
            (frame(0x09, b"x"), Close::Protocol),
            (frame(0x89, &[0; 126]), Close::Protocol),
            (frame(0x80, b"x"), Close::Protocol),
            (frame(0x88, b"x"), Close::Protocol),
            ([frame(0x01, b"x"), frame(0x81, b"x")].concat(), Close::Protocol),
            ([frame(0x02, b"x"), frame(0x01, b"x")].concat(), Close::Protocol),
            (unmasked, Close::Protocol),
            (minimal, Close::Protocol),
            (huge, Close::Protocol),
            (frame(0x81, &[b'x'; 1001]), Close::TooBig),
            ([frame(0x01, &[b'x'; 1000]), frame(0x80, b"x")].concat(), Close::TooBig),
        ] {
            for size in [1, 7, input.len()] {
                let violation = read(&input, size).expect_err("a violation");
                assert_eq!(violation.close, close, "{input:?}");
            }
        }
        assert!(read(&frame(0x81, &[b'x'; 1000]), 9).is_ok());
    }
}
