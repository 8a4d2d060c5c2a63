//! Which frames of HTTP/2 pass?
//!
//! Heads alone are read (RFC 9113 §4.1), whatever way the bytes are cut; what is in a frame is the
//! codec's affair.

/// RFC 9113 §3.4: what comes before a client's first frame.
const PREFACE_BYTES: usize = 24;

pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// What is of interest in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) stream: u32,
    /// The header block of its stream is complete.
    pub(super) ends_head: bool,
    /// Of RST_STREAM.
    pub(super) error: Option<u32>,
}

/// Where one direction stands.
#[derive(Default)]
pub(super) struct Frames {
    head: [u8; 13],
    have: usize,
    skip: usize,
    /// A header block goes on in the next frame.
    open_head: bool,
}

impl Frames {
    /// What a client sends, from its first byte.
    pub(super) fn of_client() -> Frames {
        Frames { skip: PREFACE_BYTES, ..Frames::default() }
    }

    /// Tells of each frame once all of it has passed.
    pub(super) fn follow(&mut self, mut bytes: &[u8], mut each: impl FnMut(Frame)) {
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            if self.skip > 0 {
                return;
            }
            if self.have > 0 && self.have == self.wanted() {
                self.have = 0;
                let frame = self.frame();
                self.open_head = is_head(frame.kind) && !frame.ends_head;
                each(frame);
            }
            if bytes.is_empty() {
                return;
            }
            let taken = (self.wanted() - self.have).min(bytes.len());
            self.head[self.have..][..taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            bytes = &bytes[taken..];
            if self.have == self.wanted() {
                let length = number(&self.head[..3]) as usize;
                self.skip = length.saturating_sub(self.have - 9);
            }
        }
    }

    /// Whether a header block has begun and not ended.
    pub(super) fn is_in_head(&self) -> bool {
        self.open_head || (self.have > 3 && is_head(self.head[3]))
    }

    /// The head, and the error code of RST_STREAM with it.
    fn wanted(&self) -> usize {
        if self.have >= 9 && self.head[3] == RST_STREAM { 13 } else { 9 }
    }

    fn frame(&self) -> Frame {
        let (kind, flags) = (self.head[3], self.head[4]);
        Frame {
            kind,
            stream: number(&self.head[5..9]) & (u32::MAX >> 1),
            ends_head: is_head(kind) && flags & END_HEADERS != 0,
            error: (kind == RST_STREAM).then(|| number(&self.head[9..])),
        }
    }
}

fn is_head(kind: u8) -> bool {
    matches!(kind, HEADERS | CONTINUATION)
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).expect("short");
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    #[test]
    fn finds_frames_whatever_way_they_are_cut() {
        let bytes = [
            vec![b'x'; PREFACE_BYTES],
            frame(4, 0, 0, &[0; 12]),
            frame(HEADERS, END_HEADERS, 1, &[7; 20]),
            frame(RST_STREAM, 0, 3, &[0, 0, 0, 8]),
            frame(0, 0, 1, &[]),
            frame(HEADERS, END_HEADERS, 5, &[]),
        ]
        .concat();
        for size in 1..bytes.len() {
            let mut frames = Frames::of_client();
            let mut seen = Vec::new();
            for piece in bytes.chunks(size) {
                frames.follow(piece, |frame| seen.push((frame.kind, frame.stream, frame.error)));
            }
            let due = [(4, 0, None), (1, 1, None), (3, 3, Some(8)), (0, 1, None), (1, 5, None)];
            assert_eq!(seen, due, "in pieces of {size}");
            assert!(!frames.is_in_head());
        }
    }

    #[test]
    fn knows_a_head_that_has_not_ended() {
        let mut frames = Frames::default();
        let mut ended = 0;
        let steps = [
            (frame(HEADERS, 0, 1, b"ab"), true, 0),
            (frame(CONTINUATION, 0, 1, b""), true, 0),
            (frame(CONTINUATION, END_HEADERS, 1, b"c"), false, 1),
            (frame(HEADERS, END_HEADERS, 3, b"abc")[..10].to_vec(), true, 1),
            (b"bc".to_vec(), false, 2),
            (frame(0, 0, 1, b"abc")[..10].to_vec(), false, 2),
        ];
        for (number, (bytes, open, heads)) in steps.into_iter().enumerate() {
            frames.follow(&bytes, |frame| ended += usize::from(frame.ends_head));
            assert_eq!((frames.is_in_head(), ended), (open, heads), "step {number}");
        }
    }
}
