//! Does a request's path match a glob, and can it be read in one way only?
//!
//! Both sides are brought into one form for the comparison; what is forwarded is the client's own
//! bytes. In that form unreserved characters are decoded (RFC 3986 §6.2.2.2), other escapes are in
//! upper case (§6.2.2.1), and `%2F` stays what it is: no separator.

use std::borrow::Cow;

use smallvec::SmallVec;

/// Longer globs are a mistake; the bound keeps the cost of one comparison small.
const MAX_GLOB: usize = 1024;

/// A path in the form in which it is compared.
#[derive(Debug)]
pub(crate) struct ComparedPath<'a>(Cow<'a, [u8]>);

/// The path has a part that servers read in different ways.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct AmbiguousPath;

/// A compiled glob: `*` within a segment, `**` across segments, `/**/` also for no segment.
#[derive(Clone, Debug)]
pub(crate) struct PathGlob {
    /// What comes before the first wildcard: most paths are decided by it alone.
    prefix: Box<[u8]>,
    rest: Box<[Token]>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// `*`
    InSegment,
    /// `**`
    Across,
    /// Before the `**` and `/` of a `/**/`: these two may also be left out.
    MaybeSkipTwo,
}

/// Why a text is no glob.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathGlobError {
    #[error("a path begins with `/`")]
    NotAbsolute,
    #[error("a query or fragment is not part of what is compared; leave it out")]
    Query,
    #[error("no request path has blanks or control characters; write them as `%20`")]
    Blank,
    #[error(
        "`.` and `..` segments, `\\`, `%5C`, `%00` and `//` are refused in requests, so this matches nothing"
    )]
    Ambiguous,
    #[error("use `*` within a segment or `**` across segments")]
    Stars,
    #[error("longer than {MAX_GLOB} bytes")]
    Long,
}

impl<'a> ComparedPath<'a> {
    /// Takes a request's path without its query. An absolute-form target may have none: `/`.
    pub(crate) fn new(raw: &'a str) -> Result<ComparedPath<'a>, AmbiguousPath> {
        let raw = if raw.is_empty() { "/" } else { raw };
        let compared = comparable(raw);
        if is_ambiguous(&compared) { Err(AmbiguousPath) } else { Ok(ComparedPath(compared)) }
    }
}

impl PathGlob {
    pub(crate) fn parse(text: &str) -> Result<PathGlob, PathGlobError> {
        if !text.starts_with('/') {
            return Err(PathGlobError::NotAbsolute);
        }
        if text.len() > MAX_GLOB {
            return Err(PathGlobError::Long);
        }
        if text.contains(['?', '#']) {
            return Err(PathGlobError::Query);
        }
        if text.chars().any(|character| character.is_whitespace() || character.is_control()) {
            return Err(PathGlobError::Blank);
        }
        if text.contains("***") {
            return Err(PathGlobError::Stars);
        }
        let text = comparable(text);
        if is_ambiguous(&text) {
            return Err(PathGlobError::Ambiguous);
        }
        let first_star = text.iter().position(|byte| *byte == b'*').unwrap_or(text.len());
        let (prefix, rest) = text.split_at(first_star);
        Ok(PathGlob { prefix: prefix.into(), rest: tokens(rest, prefix.last().copied()) })
    }

    pub(crate) fn matches(&self, path: &ComparedPath<'_>) -> bool {
        match path.0.strip_prefix(&*self.prefix) {
            Some(rest) => matches_rest(&self.rest, rest),
            None => false,
        }
    }
}

/// Brings a path, or a glob, into the form of the comparison.
fn comparable(raw: &str) -> Cow<'_, [u8]> {
    let raw = raw.as_bytes();
    if raw.iter().all(|byte| byte.is_ascii() && *byte != b'%') {
        return Cow::Borrowed(raw);
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        let escaped = raw.get(at + 1..at + 3).filter(|_| byte == b'%').and_then(hex_pair);
        match escaped {
            Some(decoded) if is_unreserved(decoded) => out.push(decoded),
            Some(decoded) => push_escaped(&mut out, decoded),
            // A bare byte above ASCII is only another spelling of its escape.
            None if !byte.is_ascii() => push_escaped(&mut out, byte),
            None => out.push(byte),
        }
        at += if escaped.is_some() { 3 } else { 1 };
    }
    Cow::Owned(out)
}

/// Dot segments count with an encoded slash or a `;parameter` beside them too, since there are
/// servers that decode the one or drop the other before they resolve dots.
fn is_ambiguous(path: &[u8]) -> bool {
    let Some(segments) = path.strip_prefix(b"/") else {
        return false;
    };
    let is_dots = |piece: &[u8]| {
        let name = piece.split(|byte| *byte == b';').next().unwrap_or(piece);
        matches!(name, b"." | b"..")
    };
    let has_empty =
        segments.windows(2).any(|pair| pair == b"//") || segments.first() == Some(&b'/');
    has_empty
        || path.contains(&b'\\')
        || path.windows(3).any(|escape| matches!(escape, b"%5C" | b"%00"))
        || pieces(segments).any(is_dots)
}

/// Splits at `/` and at `%2F`.
fn pieces(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let path = rest?;
        let length = |at: usize| match &path[at..] {
            [b'/', ..] => Some(1),
            [b'%', b'2', b'F', ..] => Some(3),
            _ => None,
        };
        // No further than to the next one: a path may have tens of thousands.
        match (0..path.len()).find_map(|at| Some((at, length(at)?))) {
            Some((at, length)) => {
                rest = Some(&path[at + length..]);
                Some(&path[..at])
            }
            None => rest.take(),
        }
    })
}

fn tokens(glob: &[u8], mut before: Option<u8>) -> Box<[Token]> {
    let mut tokens = Vec::with_capacity(glob.len());
    let mut at = 0;
    while let Some(&byte) = glob.get(at) {
        let rest = &glob[at..];
        if rest.starts_with(b"**") {
            if before == Some(b'/') && rest.get(2) == Some(&b'/') {
                tokens.push(Token::MaybeSkipTwo);
            }
            tokens.push(Token::Across);
            at += 2;
        } else {
            tokens.push(if byte == b'*' { Token::InSegment } else { Token::Byte(byte) });
            at += 1;
        }
        before = Some(byte);
    }
    tokens.into()
}

/// Follows all ways to match at once: the cost is the product of both lengths at worst, where
/// backtracking could be made to take far longer by the client's path.
fn matches_rest(tokens: &[Token], path: &[u8]) -> bool {
    match tokens {
        [] => return path.is_empty(),
        [Token::Across] => return true,
        [Token::InSegment] => return !path.contains(&b'/'),
        _ => {}
    }
    let mut reached: SmallVec<[bool; 64]> = SmallVec::from_elem(false, tokens.len() + 1);
    reached[0] = true;
    skip_ahead(tokens, &mut reached);
    let mut next = reached.clone();
    for byte in path {
        next.fill(false);
        for (at, token) in tokens.iter().enumerate().filter(|(at, _)| reached[*at]) {
            match token {
                Token::Byte(expected) if expected == byte => next[at + 1] = true,
                Token::InSegment if *byte != b'/' => next[at] = true,
                Token::Across => next[at] = true,
                Token::Byte(_) | Token::InSegment | Token::MaybeSkipTwo => {}
            }
        }
        skip_ahead(tokens, &mut next);
        std::mem::swap(&mut reached, &mut next);
    }
    reached[tokens.len()]
}

/// Adds what is reached without a byte.
fn skip_ahead(tokens: &[Token], reached: &mut [bool]) {
    for (at, token) in tokens.iter().enumerate() {
        if !reached[at] {
            continue;
        }
        match token {
            Token::Byte(_) => {}
            Token::InSegment | Token::Across => reached[at + 1] = true,
            Token::MaybeSkipTwo => {
                reached[at + 1] = true;
                reached[at + 3] = true;
            }
        }
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn hex_pair(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let [high, low] = digits else { return None };
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(glob: &str, path: &str) -> bool {
        let glob = PathGlob::parse(glob).expect("a glob");
        glob.matches(&ComparedPath::new(path).expect("a plain path"))
    }

    #[test]
    fn keeps_one_star_within_its_segment() {
        for (glob, path, expected) in [
            ("/v1/public/*", "/v1/public/x", true),
            ("/v1/public/*", "/v1/public/", true),
            ("/v1/public/*", "/v1/public", false),
            ("/v1/public/*", "/v1/public/x/y", false),
            ("/v1/public/*", "/v1/publicx", false),
            ("/v1/*/items", "/v1/a/items", true),
            ("/v1/*/items", "/v1/a/b/items", false),
            ("/v1/*/items", "/v1/a/items/", false),
            ("/a*c", "/abbc", true),
            ("/a*c", "/abb", false),
            ("/", "", true),
            ("/x", "/x/", false),
        ] {
            assert_eq!(matches(glob, path), expected, "{glob} {path}");
        }
    }

    #[test]
    fn lets_two_stars_cross_segments() {
        for (glob, path, expected) in [
            ("/**", "/", true),
            ("/**", "/a/b/c", true),
            ("/v1/**", "/v1/a/b", true),
            ("/v1/**", "/v1", false),
            ("/a/**/b", "/a/b", true),
            ("/a/**/b", "/a/x/y/b", true),
            ("/a/**/b", "/a/xb", false),
            ("/**/admin", "/admin", true),
            ("/**/admin", "/x/admin", true),
            ("/**/admin", "/xadmin", false),
            ("/**/admin/*", "/x/admin/y", true),
            ("/**.json", "/a/b.json", true),
            ("/**.json", "/a/b.jso", false),
            ("/*/**/x", "/a/x", true),
        ] {
            assert_eq!(matches(glob, path), expected, "{glob} {path}");
        }
    }

    #[test]
    fn compares_escapes_by_what_they_mean() {
        assert!(matches("/v1/a~b", "/v1/%61%7eb"));
        assert!(matches("/v1/%61", "/v1/a"));
        assert!(matches("/a%2fb", "/a%2Fb"));
        assert!(matches("/bücher", "/b%c3%bccher"));
        assert!(matches("/v1/*", "/v1/a%2Fb"));
        assert!(!matches("/v1/*/b", "/v1/a%2Fb"));
        assert!(!matches("/a/b", "/a%2Fb"));
        assert!(matches("/*", "/100%"));
        assert!(matches("/%zz", "/%zz"));
    }

    #[test]
    fn refuses_paths_that_servers_read_differently() {
        for path in [
            "/v1/public/../secret",
            "/v1/public/%2e%2e/secret",
            "/v1/public/%2E./secret",
            "/v1//public/x",
            "/v1/public;a/../../secret",
            "/v1/public%2f..%2fsecret",
            "/v1/public\\..\\secret",
            "/..",
            "/.",
            "/a/.",
            "/a/./b",
            "//evil.example.test/",
            "/a//",
            "/a%5cb",
            "/a%00b",
            "/a/..;x/b",
            "/a/..%2fb",
        ] {
            assert_eq!(ComparedPath::new(path).err(), Some(AmbiguousPath), "{path}");
        }
        for path in
            ["/", "/a/", "/a..b/...", "/.well-known/x", "/a%2Fb", "/a;b=c", "/%252e%252e/", "*"]
        {
            assert!(ComparedPath::new(path).is_ok(), "{path}");
        }
    }

    #[test]
    fn refuses_globs_that_could_match_nothing() {
        for (text, error) in [
            ("v1/*", PathGlobError::NotAbsolute),
            ("", PathGlobError::NotAbsolute),
            ("/a?b=c", PathGlobError::Query),
            ("/a b", PathGlobError::Blank),
            ("/a/../b", PathGlobError::Ambiguous),
            ("/a//b", PathGlobError::Ambiguous),
            ("/***", PathGlobError::Stars),
        ] {
            assert_eq!(PathGlob::parse(text).err(), Some(error), "{text}");
        }
        assert_eq!(
            PathGlob::parse(&format!("/{}", "a".repeat(1024))).err(),
            Some(PathGlobError::Long)
        );
    }

    #[test]
    fn stays_fast_on_a_hostile_pair() {
        let glob = PathGlob::parse(&format!("/{}b", "*a**a".repeat(60))).expect("a glob");
        let path = format!("/{}", "a".repeat(8 << 10));
        let path = ComparedPath::new(&path).expect("a plain path");
        let start = std::time::Instant::now();
        assert!(!glob.matches(&path));
        assert!(start.elapsed() < std::time::Duration::from_secs(2));
    }

    /// As long as a head may be, with as many segments as fit.
    #[test]
    fn looks_at_each_byte_of_a_path_a_few_times_only() {
        let start = std::time::Instant::now();
        for piece in ["/a", "%2Fa", "/.a", ";/b", "%2", "/%41"] {
            let path = format!("/a{}", piece.repeat((64 << 10) / piece.len()));
            assert!(ComparedPath::new(&path).is_ok(), "{piece}");
            let dots = format!("{path}/..");
            assert_eq!(ComparedPath::new(&dots).err(), Some(AmbiguousPath), "{piece}");
        }
        // For each of its segments to its end it took minutes.
        assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
    }
}
