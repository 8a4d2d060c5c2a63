//! How are values masked in what streams by?
//!
//! A text that holds none passes as it came, uncopied. What could be the beginning of one waits for
//! what comes next: at most as long as the longest value, escaped throughout. The result is the
//! same however the text is cut into pieces.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::HeaderName;
use memchr::memmem;
use smallvec::SmallVec;
use zeroize::Zeroizing;

use super::needle::Needle;
use super::sieve::{Sieve, Which};
use super::{Place, Sought, value};

/// What stands in the place of each byte: harmless in headers, URLs, JSON and HTML.
const MASK: u8 = b'*';

/// Masks values in the head and in the body of one answer.
pub struct Scrubber {
    forms: Arc<Forms>,
    places: Vec<Place>,
    found: Vec<bool>,
    /// What may be the beginning of a value.
    held: Bytes,
    /// So much of it is part of a value that was found.
    covered: usize,
}

/// Every form of every value.
struct Forms {
    needles: Vec<Needle>,
    /// The values as they would be in names, in lower case.
    names: Vec<(Zeroizing<Vec<u8>>, usize)>,
    sieve: Sieve,
}

impl Scrubber {
    /// Looks for what was put on a request.
    pub fn new(sought: &Sought) -> Scrubber {
        let mut needles = Vec::new();
        for (value, place) in &sought.values {
            needles.push(Needle::text(value, *place));
            for form in value::before_base64(value) {
                needles.extend((0..3).map(|before| Needle::base64(&form, before, *place)));
            }
        }
        let lower = |(value, place): &(Zeroizing<Vec<u8>>, usize)| {
            (Zeroizing::new(value.to_ascii_lowercase()), *place)
        };
        let names = sought.values.iter().map(lower).collect();
        let forms = Arc::new(Forms { sieve: Sieve::new(&needles), names, needles });
        let found = vec![false; sought.places.len()];
        let places = sought.places.clone();
        Scrubber { forms, found, places, held: Bytes::new(), covered: 0 }
    }

    /// The same for another text.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn again(&self) -> Scrubber {
        Scrubber {
            forms: Arc::clone(&self.forms),
            found: vec![false; self.places.len()],
            places: self.places.clone(),
            held: Bytes::new(),
            covered: 0,
        }
    }

    /// A whole text, masked; `None` where it holds no value.
    pub fn whole(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        let (spans, _) = self.scan(text, 0, true);
        (!spans.is_empty()).then(|| {
            let mut masked = text.to_vec();
            mask(&mut masked, &spans);
            masked
        })
    }

    /// Whether a value stands in the name of a header, of which the case does not count.
    pub fn is_in_name(&mut self, name: &HeaderName) -> bool {
        let name = name.as_str().as_bytes();
        let Forms { names, .. } = &*self.forms;
        let stands = |value: &&(Zeroizing<Vec<u8>>, usize)| memmem::find(name, &value.0).is_some();
        let Some((_, place)) = names.iter().find(stands) else {
            return self.whole(name).is_some();
        };
        self.found[*place] = true;
        true
    }

    /// The next piece of a stream; what can be said by now of it and of what was held back.
    pub fn piece(&mut self, piece: Bytes) -> Bytes {
        let text = match self.held.is_empty() {
            true => piece,
            false => {
                let mut text = BytesMut::with_capacity(self.held.len() + piece.len());
                text.extend_from_slice(&self.held);
                text.extend_from_slice(&piece);
                text.freeze()
            }
        };
        self.pass(text, false)
    }

    /// The stream has ended in order: what was held back of it.
    pub fn rest(&mut self) -> Bytes {
        let text = std::mem::take(&mut self.held);
        self.pass(text, true)
    }

    /// How much is held back.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Where the values that were found had been put.
    pub fn found(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().zip(&self.found).filter(|(_, found)| **found).map(|(place, _)| place)
    }

    fn pass(&mut self, mut text: Bytes, last: bool) -> Bytes {
        let (spans, until) = self.scan(&text, self.covered, last);
        self.held = text.split_off(until);
        self.covered = spans.last().map_or(0, |span| span.end.saturating_sub(until));
        if spans.first().is_none_or(|span| span.start >= until) {
            return text;
        }
        let mut masked = BytesMut::from(text);
        mask(&mut masked, &spans);
        masked.freeze()
    }

    /// The values in `text`, whose first `covered` bytes are part of one, and how far that is
    /// clear. Where values overlap, all of them is masked.
    fn scan(&mut self, text: &[u8], covered: usize, last: bool) -> (Spans, usize) {
        let mut spans = Spans::new();
        if covered > 0 {
            spans.push(0..covered);
        }
        let mut at = 0;
        while let Some(start) = self.forms.sieve.next(text, at) {
            at = start + 1;
            let which = match self.forms.sieve.which(&text[start..]) {
                Some(which) if which.is_none() => continue,
                Some(which) => which,
                None if last => Which::ALL,
                None => return (spans, start),
            };
            let mut end = None;
            let needles = self.forms.needles.iter().enumerate();
            for (_, needle) in needles.filter(|(index, _)| which.has(*index)) {
                let seen = needle.look(text, start);
                if seen.cut && !last {
                    return (spans, start);
                }
                if seen.end.is_some() {
                    self.found[needle.place] = true;
                    end = end.max(seen.end);
                }
            }
            if let Some(end) = end {
                cover(&mut spans, start..end);
            }
        }
        (spans, text.len())
    }
}

/// What is to be masked, in order, apart from each other.
type Spans = SmallVec<[Range<usize>; 4]>;

fn cover(spans: &mut Spans, span: Range<usize>) {
    match spans.last_mut() {
        Some(before) if span.start <= before.end => before.end = before.end.max(span.end),
        _ => spans.push(span),
    }
}

fn mask(text: &mut [u8], spans: &Spans) {
    let length = text.len();
    for span in spans {
        text[span.start.min(length)..span.end.min(length)].fill(MASK);
    }
}
