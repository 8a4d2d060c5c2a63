//! How are placeholders found in a text that comes in pieces, wherever it is cut?
//!
//! [`Search`] is for texts in which values take their place: it keeps back what may be the
//! beginning of a placeholder, or of the prefix that belongs to one, and nothing else, so that a
//! stream stands still for no other reason. [`Watch`] is for bytes that are never changed: it only
//! says where a placeholder is complete.

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

use crate::placeholder::{self, LENGTH, MARKER, Tag, find};

/// A text in the middle of being searched.
pub struct Search {
    /// How a placeholder may begin: with nothing before its marker, or with one of these prefixes.
    prefixes: SmallVec<[String; 2]>,
    text: Bytes,
    ended: bool,
}

/// What comes next in a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// As it is.
    Text(Bytes),
    /// A placeholder, and what stands before it, to whose end its prefix belongs.
    Placeholder(Bytes, Tag),
    /// More of the text is needed, or this was its end.
    Nothing,
}

/// Bytes that go on as they are, watched for placeholders.
#[derive(Default)]
pub struct Watch {
    /// Less than a placeholder.
    tail: Vec<u8>,
}

impl Search {
    pub(crate) fn new(prefixes: impl IntoIterator<Item = String>) -> Search {
        let mut all: SmallVec<[String; 2]> = SmallVec::new();
        for prefix in std::iter::once(String::new()).chain(prefixes) {
            if !all.contains(&prefix) {
                all.push(prefix);
            }
        }
        Search { prefixes: all, text: Bytes::new(), ended: false }
    }

    /// The next piece of the text.
    pub fn push(&mut self, piece: Bytes) {
        self.text = match self.text.is_empty() {
            true => piece,
            false => {
                let mut joined = BytesMut::with_capacity(self.text.len() + piece.len());
                joined.extend_from_slice(&self.text);
                joined.extend_from_slice(&piece);
                joined.freeze()
            }
        };
    }

    /// There is no more of it.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// What is known of the text so far, in order; to be asked until it says nothing.
    pub fn step(&mut self) -> Found {
        if let Some((at, tag)) = find(&self.text, 0) {
            let before = self.text.split_to(at);
            drop(self.text.split_to(LENGTH));
            return Found::Placeholder(before, tag);
        }
        let known = if self.ended { self.text.len() } else { self.certain() };
        match known {
            0 => Found::Nothing,
            known => Found::Text(self.text.split_to(known)),
        }
    }

    /// So many bytes belong to no placeholder, whatever comes.
    fn certain(&self) -> usize {
        let longest = self.prefixes.iter().map(String::len).max().unwrap_or(0) + LENGTH;
        let from = self.text.len().saturating_sub(longest - 1);
        let open = |at: &usize| {
            let tail = &self.text[*at..];
            self.prefixes.iter().any(|prefix| may_begin(tail, prefix.as_bytes()))
        };
        (from..self.text.len()).find(open).unwrap_or(self.text.len())
    }
}

/// Whether `tail` may go on to be a placeholder behind `prefix`.
fn may_begin(tail: &[u8], prefix: &[u8]) -> bool {
    let Some(rest) = tail.strip_prefix(prefix) else { return prefix.starts_with(tail) };
    let Some(digits) = rest.strip_prefix(MARKER.as_bytes()) else {
        return MARKER.as_bytes().starts_with(rest);
    };
    digits.iter().all(placeholder::is_digit)
}

impl Watch {
    /// The placeholder that is complete with `piece`, if one is.
    pub fn sees(&mut self, piece: &[u8]) -> Option<Tag> {
        let border = piece.len().min(LENGTH - 1);
        self.tail.extend_from_slice(&piece[..border]);
        let found = find(&self.tail, 0).or_else(|| find(piece, 0));
        if piece.len() > border {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - border..]);
        } else {
            self.tail.drain(..self.tail.len().saturating_sub(LENGTH - 1));
        }
        found.map(|(_, tag)| tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag() -> Tag {
        Tag::issue().expect("random bytes")
    }

    /// What a search tells of `pieces`, texts joined.
    fn told(prefixes: &[&str], pieces: &[&[u8]]) -> Vec<(Vec<u8>, Option<Tag>)> {
        let mut search = Search::new(prefixes.iter().map(|prefix| (*prefix).to_owned()));
        let mut told = Vec::new();
        let mut text = Vec::new();
        let mut drain = |search: &mut Search| {
            loop {
                match search.step() {
                    Found::Text(more) => text.extend_from_slice(&more),
                    Found::Placeholder(before, tag) => {
                        text.extend_from_slice(&before);
                        told.push((std::mem::take(&mut text), Some(tag)));
                    }
                    Found::Nothing => break,
                }
            }
        };
        for piece in pieces {
            search.push(Bytes::copy_from_slice(piece));
            drain(&mut search);
        }
        search.end();
        drain(&mut search);
        told.push((text, None));
        told
    }

    #[test]
    fn every_cut_tells_the_same() {
        let (one, two) = (tag(), tag());
        let text =
            format!("og {} oghp_ogph12 {} ghp", one.placeholder("ghp_"), two.placeholder(""));
        let whole = told(&["ghp_"], &[text.as_bytes()]);
        assert_eq!((whole[0].1, whole[1].1), (Some(one), Some(two)));
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let cut = [
                    &text.as_bytes()[..first],
                    &text.as_bytes()[first..second],
                    &text.as_bytes()[second..],
                ];
                assert_eq!(told(&["ghp_"], &cut), whole, "{first} {second}");
            }
        }
    }

    #[test]
    fn the_prefix_stays_with_its_placeholder() {
        let text = format!("xxghp_{}", tag().placeholder(""));
        for cut in 0..text.len() {
            let mut search = Search::new(["ghp_".to_owned()]);
            search.push(Bytes::copy_from_slice(&text.as_bytes()[..cut]));
            while let Found::Text(_) = search.step() {}
            search.push(Bytes::copy_from_slice(&text.as_bytes()[cut..]));
            let before = loop {
                match search.step() {
                    Found::Text(_) => {}
                    Found::Placeholder(before, _) => break before,
                    Found::Nothing => panic!("{cut}: nothing found"),
                }
            };
            assert!(before.ends_with(b"ghp_"), "{cut}: {before:?}");
        }
    }

    #[test]
    fn keeps_back_only_what_may_be_a_placeholder() {
        for (text, kept) in [
            ("hello", 1),
            ("hello\n", 0),
            ("an og", 2),
            ("ghp", 3),
            ("xghp_ogph00", 10),
            ("ogph0x", 0),
            ("ogphogph0", 5),
            ("ghp_x", 0),
        ] {
            let mut search = Search::new(["ghp_".to_owned()]);
            search.push(Bytes::from(text));
            let mut told = 0;
            while let Found::Text(more) = search.step() {
                told += more.len();
            }
            assert_eq!(text.len() - told, kept, "{text}");
        }
    }

    #[test]
    fn a_watch_sees_the_piece_that_completes_a_placeholder() {
        let tag = tag();
        let text = format!("ogph ogph01{} and more", tag.placeholder("p"));
        let end = text.find(tag.digits()).expect("there") + tag.digits().len();
        for size in 1..=text.len() {
            let mut watch = Watch::default();
            let seen =
                text.as_bytes().chunks(size).position(|piece| watch.sees(piece) == Some(tag));
            assert_eq!(seen, Some((end - 1) / size), "{size}");
        }
        let mut watch = Watch::default();
        assert!(text.as_bytes()[..end - 1].chunks(7).all(|piece| watch.sees(piece).is_none()));
    }
}
