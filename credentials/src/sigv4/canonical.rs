//! In which one form does AWS read a request, however it was written?
//!
//! "Create a canonical request" of the AWS documentation on Signature Version 4. The request itself
//! is sent as it is; origins make the same form of it.

use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use zeroize::Zeroizing;

use super::claim::Claim;
use super::{Subject, is_of_aws};
use crate::query::{decoded, escape_bytes};

/// A request in that form.
pub(super) struct Canonical {
    /// The session token may be in it.
    pub(super) text: Zeroizing<Vec<u8>>,
    /// The names of the signed headers.
    pub(super) signed: String,
}

impl Canonical {
    pub(super) fn of(claim: &Claim, subject: &Subject<'_>, headers: &HeaderMap) -> Canonical {
        let Subject { method, host, target, payload } = subject;
        let names = signed_names(claim, headers);
        let path = match claim.is_for_s3() {
            true => once_encoded(target.path()),
            false => twice_encoded(target.path()),
        };
        let query = query(target.query().unwrap_or_default());
        let signed: Vec<_> = names.iter().map(|name| name.as_str()).collect();
        let signed = signed.join(";");

        let mut text = Zeroizing::new(Vec::with_capacity(4096));
        for part in [method.as_str(), &path, &query] {
            text.extend_from_slice(part.as_bytes());
            text.push(b'\n');
        }
        for name in names {
            text.extend_from_slice(name.as_str().as_bytes());
            text.push(b':');
            match name == HOST {
                true => push_value(&mut text, host),
                false => push_values(&mut text, headers, &name),
            }
            text.push(b'\n');
        }
        for part in ["\n", &signed, "\n", payload.as_str()] {
            text.extend_from_slice(part.as_bytes());
        }
        Canonical { text, signed }
    }
}

/// Sorted. What AWS asks for, and what the client has signed and is still there.
fn signed_names(claim: &Claim, headers: &HeaderMap) -> Vec<HeaderName> {
    let is_signed = |name: &&HeaderName| {
        is_of_aws(name) || **name == CONTENT_TYPE || (claim.covers(name) && **name != HOST)
    };
    let mut names: Vec<HeaderName> = headers.keys().filter(is_signed).cloned().collect();
    names.push(HOST);
    names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    names
}

/// Lines of the same name are one list.
fn push_values(text: &mut Vec<u8>, headers: &HeaderMap, name: &HeaderName) {
    for (index, value) in headers.get_all(name).iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        push_value(text, value);
    }
}

/// Without blanks at the ends, and one where there are more in a row.
fn push_value(text: &mut Vec<u8>, value: &HeaderValue) {
    let value = value.as_bytes().trim_ascii();
    for (index, byte) in value.iter().enumerate() {
        if *byte != b' ' || value[index - 1] != b' ' {
            text.push(*byte);
        }
    }
}

/// S3's: each segment as its bytes, encoded once. Neither dots nor empty segments mean anything.
fn once_encoded(path: &str) -> String {
    let segments: Vec<_> =
        path.split('/').map(|segment| escape_bytes(&decoded(segment, false))).collect();
    segments.join("/")
}

/// All others': normalised by RFC 3986 §5.2.4 without empty segments, and encoded once more.
fn twice_encoded(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let mut encoded = String::with_capacity(path.len());
    for segment in &kept {
        encoded.push('/');
        encoded.push_str(&escape_bytes(segment.as_bytes()));
    }
    let is_folder = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
    if kept.is_empty() || is_folder {
        encoded.push('/');
    }
    encoded
}

/// Each name and value encoded once, sorted by name, then by value.
fn query(query: &str) -> String {
    let encoded = |text: &str| escape_bytes(&decoded(text, true));
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (encoded(name), encoded(value)))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_for_s3_is_what_was_sent_if_it_was_sent_well() {
        for path in ["/", "/bucket/a%20b/c", "/b//x/./../y", "/b/%E1%88%B4~-_.", "/a%2Fb"] {
            assert_eq!(once_encoded(path), path);
        }
        assert_eq!(once_encoded("/a+b=c%7e%2f%zz"), "/a%2Bb%3Dc~%2F%25zz");
    }

    #[test]
    fn a_path_for_others_is_normalised_and_encoded_twice() {
        for (path, expected) in [
            ("/", "/"),
            ("//", "/"),
            ("/./", "/"),
            ("/..", "/"),
            ("/a/..", "/"),
            ("/a/b/../..", "/"),
            ("//a//", "/a/"),
            ("/./a", "/a"),
            ("/a/./b/../c/", "/a/c/"),
            ("/a%20b", "/a%2520b"),
            ("/arn:aws:x", "/arn%3Aaws%3Ax"),
        ] {
            assert_eq!(twice_encoded(path), expected, "{path}");
        }
    }

    #[test]
    fn a_query_is_sorted_by_its_encoded_names_then_values() {
        for (sent, expected) in [
            ("", ""),
            ("lifecycle", "lifecycle="),
            ("prefix=J&max-keys=2", "max-keys=2&prefix=J"),
            ("a=2&a=1&A=3&&b", "A=3&a=1&a=2&b="),
            ("a=b=c", "a=b%3Dc"),
            ("a=x+y&b=%2b&c=%7e%zz", "a=x%20y&b=%2B&c=~%25zz"),
            ("%61=1&a-=2", "a=1&a-=2"),
            ("=x&a=/", "=x&a=%2F"),
        ] {
            assert_eq!(query(sent), expected, "{sent}");
        }
    }

    #[test]
    fn a_value_has_one_blank_where_it_had_more() {
        let pushed = |text: &'static str| {
            let mut value = Vec::new();
            push_value(&mut value, &HeaderValue::from_static(text));
            String::from_utf8(value).expect("text")
        };
        assert_eq!(pushed("  a   b \t"), "a b");
        assert_eq!(pushed("\"a   b\""), "\"a b\"");
        assert_eq!(pushed(""), "");
    }
}
