//! What does a compressed body say?
//!
//! Decompressed piece by piece, as it is asked for: whatever it would come to, no more of it is in
//! memory than a few pieces and the window of its coding. What is not whole, goes on behind its
//! end, would come to far more than any honest text, or to nothing for long, is unreadable. The work
//! is in proportion to the bytes that came, and done in turns with that of others.

mod coding;

use bytes::{Buf, Bytes};
use http::header::{self, HeaderMap, HeaderName};
use smallvec::SmallVec;

use self::coding::{Coding, Step};
use crate::limits::{
    DECODED_AT_LEAST, DECODED_PER_BYTE, DECODING_AT_ONCE, DECODING_BEGINNING, DECODING_FEED,
    DECODING_PER_BYTE, DECODING_PIECE, DECODING_SILENCE, MOST_CODINGS,
};

/// How gRPC and Connect say that each message of a body is compressed by itself.
const MESSAGE_CODINGS: [HeaderName; 2] =
    [HeaderName::from_static("connect-content-encoding"), HeaderName::from_static("grpc-encoding")];
/// Not compressed.
const PLAIN: &[u8] = b"identity";

/// Why a body can't be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// None of those that are asked for.
    #[error("the answer is in a content coding that can't be scrubbed")]
    Coding,
    /// One inside the other.
    #[error("the answer is in more than {MOST_CODINGS} content codings")]
    Codings,
    /// Others are as large.
    #[error(
        "this environment has as many large compressed answers as may be scrubbed at a time: ask \
         for gzip, try again later, or raise limits.decompression_bytes"
    )]
    Crowded,
    /// Nobody asked for a part.
    #[error("the answer is a part of a body, in which values could be cut in two")]
    Partial,
    /// It contradicts its coding.
    #[error("the answer's body can't be decompressed")]
    Corrupt,
    /// It ends too early.
    #[error("the answer's compressed body is not whole")]
    Short,
    /// A bomb.
    #[error("the answer's body comes to more than {DECODED_PER_BYTE} times its size")]
    Bomb,
    /// Nothing, again and again: members, frames or blocks without content.
    #[error("the answer's body has more than {DECODING_SILENCE} bytes that come to nothing")]
    Silent,
}

/// The codings of one body, the last applied first.
pub(super) struct Decoder {
    layers: SmallVec<[Layer; 1]>,
    /// Bytes taken in, and what all layers made of them, and began for them.
    taken: u64,
    made: u64,
    /// Work since others had a turn.
    spent: u64,
}

/// What comes next.
pub(super) enum Next {
    Text(Bytes),
    /// Nothing before it is fed.
    Hungry,
    /// It has worked for long: let others have a turn.
    Tired,
}

struct Layer {
    coding: Coding,
    input: Bytes,
    /// Nothing is begun that is not ended.
    whole: bool,
    /// Something was begun.
    begun: bool,
    /// Nothing is left inside that would come without new input.
    drained: bool,
    /// Bytes read since it made something.
    silent: u64,
    /// For its next piece, where the last turn made none.
    space: Vec<u8>,
}

/// What one turn of a layer came to.
struct Turn {
    text: Bytes,
    read: usize,
    /// Another member or frame was begun.
    began: bool,
}

impl Decoder {
    /// For a body with these headers; `None` where it is plain.
    ///
    /// # Errors
    /// A coding that is not known, or too many.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Decoder>, Unreadable> {
        let compressed = |name: &HeaderName| {
            headers.get_all(name).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(PLAIN))
        };
        if MESSAGE_CODINGS.iter().any(compressed) {
            return Err(Unreadable::Coding);
        }
        let mut layers: SmallVec<[Layer; 1]> = SmallVec::new();
        for value in headers.get_all(header::CONTENT_ENCODING) {
            for name in value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                if !name.is_empty() && !name.eq_ignore_ascii_case(PLAIN) {
                    layers.push(Layer::new(Coding::named(name).ok_or(Unreadable::Coding)?));
                }
            }
        }
        if layers.len() > MOST_CODINGS {
            return Err(Unreadable::Codings);
        }
        layers.reverse();
        Ok((!layers.is_empty()).then_some(Decoder { layers, taken: 0, made: 0, spent: 0 }))
    }

    /// How much of what it made it may have to remember.
    pub(super) fn windows(&self) -> u32 {
        self.layers.iter().map(|layer| layer.coding.window()).sum()
    }

    /// Gives the first layer more to read, once it is hungry.
    pub(super) fn feed(&mut self, bytes: Bytes) {
        self.taken += bytes.len() as u64;
        self.layers[0].input = bytes;
    }

    /// Works on what it was fed.
    pub(super) fn next(&mut self) -> Result<Next, Unreadable> {
        while self.spent < DECODING_AT_ONCE {
            // The last layer that has something to say.
            let Some(index) = self.layers.iter().rposition(Layer::is_ready) else {
                return Ok(Next::Hungry);
            };
            let Turn { text, read, began } = self.layers[index].turn()?;
            let beginning = if began { DECODING_BEGINNING } else { 0 };
            let next = self.layers.get_mut(index + 1);
            // What another coding reads again is work for that, too.
            let weight = if next.is_some() { DECODING_PER_BYTE } else { 1 };
            self.made += weight * text.len() as u64 + beginning;
            self.spent += DECODING_PER_BYTE * read as u64 + text.len() as u64 + beginning;
            if self.made > DECODED_AT_LEAST + DECODED_PER_BYTE * self.taken {
                return Err(Unreadable::Bomb);
            }
            match next {
                _ if text.is_empty() => {}
                Some(next) => next.input = text,
                None => return Ok(Next::Text(text)),
            }
        }
        self.spent = 0;
        Ok(Next::Tired)
    }

    /// There is no more to feed: whether all of it was read.
    pub(super) fn finish(&self) -> Result<(), Unreadable> {
        match self.layers.iter().all(|layer| layer.whole) {
            true => Ok(()),
            false => Err(Unreadable::Short),
        }
    }
}

impl Layer {
    fn new(coding: Coding) -> Layer {
        Layer {
            coding,
            input: Bytes::new(),
            whole: true,
            begun: false,
            drained: true,
            silent: 0,
            space: Vec::new(),
        }
    }

    /// Whether it may make something of what it has.
    fn is_ready(&self) -> bool {
        !self.input.is_empty() || !(self.drained || self.whole)
    }

    /// The next piece, which may be empty, of some of what it has.
    fn turn(&mut self) -> Result<Turn, Unreadable> {
        let began = self.whole && self.begun;
        if began {
            self.coding.begin_again()?;
        }
        self.begun = true;
        let mut piece = match self.space.is_empty() {
            true => vec![0; DECODING_PIECE],
            false => std::mem::take(&mut self.space),
        };
        let feed = &self.input[..self.input.len().min(DECODING_FEED)];
        let Step { read, made, whole } = self.coding.step(feed, &mut piece)?;
        if read == 0 && made == 0 && !self.input.is_empty() {
            return Err(Unreadable::Corrupt);
        }
        self.input.advance(read);
        self.whole = whole;
        self.drained = made < piece.len();
        if made > 0 {
            self.silent = 0;
            piece.truncate(made);
            return Ok(Turn { text: piece.into(), read, began });
        }
        self.space = piece;
        self.silent += read as u64;
        match self.silent > DECODING_SILENCE {
            true => Err(Unreadable::Silent),
            false => Ok(Turn { text: Bytes::new(), read, began }),
        }
    }
}

#[cfg(test)]
mod tests;
