//! Does the upstream proxy lead back here?
//!
//! By a forwarded port it may, or by another gateway whose own upstream proxy is this one, where no
//! address tells. So each CONNECT to it carries the marks of the gateways that a tunnel came
//! through, this one last. One that comes in with this one's mark is refused: otherwise it would go
//! out again, and again. Who else sends marks refuses himself at most.

use std::fmt::Write;
use std::sync::Arc;

use aws_lc_rs::rand;
use http::{HeaderMap, HeaderName};
use outgate_policy::{Denial, Reason};

use crate::limits::MOST_HOPS;

/// The header that carries them.
const NAME: HeaderName = HeaderName::from_static("outgate-hop");
/// A mark in hexadecimal digits.
const DIGITS: usize = 32;

/// A gateway's mark; random, since it is nobody's business which gateway it is.
pub(crate) struct Hop(Option<u128>);

/// The gateways that a tunnel came through, the nearest last. Connections to origins are shared by
/// what came the same way alone: over those of others a loop could go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Trail(Option<Arc<[u128]>>);

impl Hop {
    /// A new one. Without random bytes there is none, and loops end by their deadlines.
    pub(crate) fn new() -> Hop {
        let mut bits = [0; 16];
        Hop(rand::fill(&mut bits).is_ok().then(|| u128::from_be_bytes(bits)))
    }

    /// By which way a CONNECT with these headers came.
    ///
    /// # Errors
    /// It came through here before, or through more gateways than any does, or says what is no mark.
    pub(crate) fn trail(&self, headers: &HeaderMap) -> Result<Trail, Denial> {
        let mut marks = Vec::new();
        for value in headers.get_all(NAME) {
            for member in value.as_bytes().split(|byte| *byte == b',') {
                if marks.len() == MOST_HOPS {
                    let message = "it came through too many gateways: do their upstream proxies \
                                   lead to each other?";
                    return Err(Denial::new(Reason::OriginConnect, message));
                }
                let mark = mark(member.trim_ascii()).ok_or_else(|| {
                    Denial::new(Reason::MalformedRequest, "Outgate-Hop is no list of marks")
                })?;
                if Some(mark) == self.0 {
                    let message = "the upstream proxy leads back to this gateway";
                    return Err(Denial::new(Reason::OriginConnect, message));
                }
                marks.push(mark);
            }
        }
        Ok(Trail((!marks.is_empty()).then(|| marks.into())))
    }

    /// The header, with its line end, of a CONNECT for what came by `trail`.
    pub(super) fn line(&self, trail: &Trail) -> String {
        let mut line = String::new();
        for mark in trail.0.iter().flat_map(|marks| marks.iter()).chain(&self.0) {
            let before = if line.is_empty() { "Outgate-Hop: " } else { ", " };
            write!(line, "{before}{mark:032x}").expect("a string takes all");
        }
        if !line.is_empty() {
            line.push_str("\r\n");
        }
        line
    }
}

fn mark(text: &[u8]) -> Option<u128> {
    let is_mark = text.len() == DIGITS && text.iter().all(u8::is_ascii_hexdigit);
    is_mark.then(|| u128::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// The headers of a CONNECT that `hop` sends for what came by `trail`.
    fn sent(hop: &Hop, trail: &Trail) -> HeaderMap {
        let line = hop.line(trail);
        let value = line.trim_end().strip_prefix("Outgate-Hop: ").expect("the header");
        HeaderMap::from_iter([(NAME, HeaderValue::from_str(value).expect("hex"))])
    }

    fn reason(trail: Result<Trail, Denial>) -> Option<Reason> {
        trail.err().map(|denial| denial.reason)
    }

    #[test]
    fn a_gateway_knows_its_own_mark_whatever_came_between() {
        let (own, second, third) = (Hop::new(), Hop::new(), Hop::new());
        let none = own.trail(&HeaderMap::new()).expect("nothing is no loop");
        assert_eq!(none, Trail::default());
        let once = sent(&own, &none);
        assert_eq!(reason(own.trail(&once)), Some(Reason::OriginConnect));
        let by_second = second.trail(&once).expect("another's");
        let twice = sent(&second, &by_second);
        assert_eq!(reason(own.trail(&twice)), Some(Reason::OriginConnect));
        let by_third = third.trail(&twice).expect("others'");
        assert_ne!(by_third, by_second);
        assert_eq!(reason(second.trail(&sent(&third, &by_third))), Some(Reason::OriginConnect));
        assert!(Hop(None).trail(&once).is_ok());
        assert_eq!(Hop(None).line(&none), "");
    }

    #[test]
    fn no_more_marks_are_taken_than_a_chain_has_and_nothing_else() {
        let own = Hop::new();
        let mark = format!("{:032x}", 7);
        let several = |count: usize| {
            let mut headers = HeaderMap::new();
            for _ in 0..count {
                headers.append(NAME, HeaderValue::from_str(&mark).expect("hex"));
            }
            headers
        };
        let joined = [mark.as_str(); MOST_HOPS].join(" ,");
        let joined = HeaderMap::from_iter([(NAME, HeaderValue::from_str(&joined).expect("hex"))]);
        let most = own.trail(&several(MOST_HOPS)).expect("a long chain");
        assert_eq!(own.trail(&joined), Ok(most));
        assert_eq!(reason(own.trail(&several(MOST_HOPS + 1))), Some(Reason::OriginConnect));
        for text in ["", "none", "7", ",", "+0000000000000000000000000000007", &mark[1..], "é"] {
            let value = HeaderValue::from_bytes(text.as_bytes()).expect("a value");
            let headers = HeaderMap::from_iter([(NAME, value)]);
            assert_eq!(reason(own.trail(&headers)), Some(Reason::MalformedRequest), "{text}");
        }
    }
}
