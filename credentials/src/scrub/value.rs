//! What in an injected value is the secret?
//!
//! An origin that echoes may show all of a header or what it read out of it.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::{HeaderName, header};
use memchr::memchr;
use zeroize::Zeroizing;

use super::SHORTEST;
use super::escape::hex;
use crate::query::escape;

/// Words before a secret that are none themselves: they are left in what comes back.
const SCHEMES: [&[u8]; 6] = [b"apikey", b"basic", b"bearer", b"bot", b"dpop", b"token"];

/// Passwords that say that the user's name is the secret.
const NO_PASSWORD: &[u8] = b"x-oauth-basic";

/// Tells `take` each part of a header's value that must not come back.
pub(super) fn parts_of_header(name: &HeaderName, value: &[u8], mut take: impl FnMut(&[u8])) {
    let (word, rest) = match memchr(b' ', value) {
        Some(at) => (&value[..at], value[at + 1..].trim_ascii()),
        None => (&value[..0], value),
    };
    let is_scheme = SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
    if !is_scheme || rest.len() < SHORTEST {
        take(value);
    }
    take(rest);
    if is_scheme || name == header::AUTHORIZATION {
        // Behind a scheme of more words: `Token token SECRET`.
        take(rest.rsplit(|byte| *byte == b' ').next().unwrap_or_default());
    }
    if word.eq_ignore_ascii_case(b"basic") {
        parts_of_pair(rest, &mut take);
    }
    if name == header::COOKIE {
        let pairs = value
            .split(|byte| *byte == b';')
            .filter_map(|pair| memchr(b'=', pair).map(|at| pair[at + 1..].trim_ascii()));
        pairs.for_each(take);
    }
}

fn parts_of_pair(encoded: &[u8], take: &mut impl FnMut(&[u8])) {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let Ok(pair) = GeneralPurpose::new(&STANDARD, config).decode(encoded) else { return };
    let pair = Zeroizing::new(pair);
    let Some(at) = memchr(b':', &pair) else { return };
    let (user, password) = (&pair[..at], &pair[at + 1..]);
    take(password);
    if password.len() < SHORTEST || password == NO_PASSWORD {
        take(user);
        take(&pair);
    }
}

/// The text that `%XX` stands for.
pub(super) fn percent_decoded(text: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut decoded = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        let pair = match (first, behind) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        (rest, _) = match pair {
            Some((high, low)) => (&behind[2..], decoded.push(high << 4 | low)),
            None => (behind, decoded.push(*first)),
        };
    }
    decoded
}

/// What of a value base64 may be made of: itself, and how it stands in a URL or a JSON text.
pub(super) fn before_base64(value: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let mut forms = vec![Zeroizing::new(value.to_vec())];
    let Ok(text) = std::str::from_utf8(value) else { return forms };
    let quoted = serde_json::to_string(text).map(Zeroizing::new).unwrap_or_default();
    let escaped = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    for form in [Zeroizing::new(escape(text)).as_str(), escaped.unwrap_or_default()] {
        if form.len() > value.len() {
            forms.push(Zeroizing::new(form.as_bytes().to_vec()));
        }
    }
    forms
}
