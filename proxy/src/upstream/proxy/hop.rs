//! Does the upstream proxy lead back here?
//!
//! By a forwarded port it may, where no address tells. So each CONNECT to it carries a mark of this
//! gateway, and one that comes in with it is refused: otherwise it would go out again, and again.

use std::fmt;

use aws_lc_rs::rand;
use http::HeaderMap;

/// The header that carries it.
const NAME: &str = "outgate-hop";

/// A gateway's mark; random, since it is nobody's business which gateway it is.
pub(crate) struct Hop(Option<u128>);

impl Hop {
    /// A new one. Without random bytes there is none, and loops end by their deadlines.
    pub(crate) fn new() -> Hop {
        let mut bits = [0; 16];
        Hop(rand::fill(&mut bits).is_ok().then(|| u128::from_be_bytes(bits)))
    }

    /// Whether these came from the gateway of this mark.
    pub(crate) fn is_in(&self, headers: &HeaderMap) -> bool {
        let said = headers.get(NAME).and_then(|said| said.to_str().ok());
        said.is_some_and(|said| self.0.is_some() && u128::from_str_radix(said, 16).ok() == self.0)
    }
}

/// The header with its line end.
impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(mark) => write!(f, "Outgate-Hop: {mark:032x}\r\n"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_gateway_knows_its_own_mark_and_no_other() {
        let (own, other) = (Hop::new(), Hop::new());
        let line = own.to_string();
        let value = line.trim_end().strip_prefix("Outgate-Hop: ").expect("the header");
        let mut headers = HeaderMap::new();
        assert!(!own.is_in(&headers));
        headers.insert(NAME, HeaderValue::from_str(value).expect("hex"));
        assert!(own.is_in(&headers) && !other.is_in(&headers));
        headers.insert(NAME, HeaderValue::from_static("none"));
        assert!(!own.is_in(&headers));
        assert!(!Hop(None).is_in(&headers));
    }
}
