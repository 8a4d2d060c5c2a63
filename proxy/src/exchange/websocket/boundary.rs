//! Where does a frame of the origin's end, so that a word of ours can come behind it?

use smallvec::SmallVec;

use super::{head_length, payload_length};

/// How far a stream of frames has come.
#[derive(Default)]
pub(super) struct Boundary {
    head: SmallVec<[u8; 14]>,
    left: u64,
}

impl Boundary {
    /// Whether the last frame is complete.
    pub(super) fn is_reached(&self) -> bool {
        self.left == 0 && self.head.is_empty()
    }

    /// These bytes have passed.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let passed = self.step(bytes);
            bytes = &bytes[passed..];
        }
    }

    /// How many of `bytes` belong to the frame that is under way, which may end within them.
    pub(super) fn within(&self, bytes: &[u8]) -> usize {
        let mut ahead = Boundary { head: self.head.clone(), left: self.left };
        let mut passed = 0;
        while passed < bytes.len() && !ahead.is_reached() {
            passed += ahead.step(&bytes[passed..]);
        }
        passed
    }

    /// Takes some of `bytes`, no more than to the end of a head or of a frame.
    fn step(&mut self, bytes: &[u8]) -> usize {
        if self.left > 0 {
            let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            self.left -= length as u64;
            return length;
        }
        self.head.push(bytes[0]);
        if self.head.len() >= 2 && self.head.len() == head_length(self.head[1]) {
            self.left = payload_length(&self.head);
            self.head.clear();
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_end_of_every_frame_however_it_is_cut() {
        let short = [&[0x81, 3][..], b"abc"].concat();
        let long = [&[0x82, 126, 1, 0][..], &[7; 256]].concat();
        let empty = vec![0x89, 0];
        let stream = [short.clone(), long.clone(), empty.clone()].concat();
        let ends = [0, short.len(), short.len() + long.len(), stream.len()];
        for size in 1..stream.len() {
            let mut boundary = Boundary::default();
            let mut at = 0;
            for piece in stream.chunks(size) {
                boundary.pass(piece);
                at += piece.len();
                assert_eq!(boundary.is_reached(), ends.contains(&at), "{size} {at}");
                let next = ends.iter().find(|end| **end >= at).expect("the last one");
                assert_eq!(boundary.within(&stream[at..]), next - at, "{size} {at}");
            }
        }
    }
}
