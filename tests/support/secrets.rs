//! Did a secret get out, in whatever clothes?

use std::fs::File;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A random secret of `length` letters, digits, `-` and `_`, which stand as they are in a header,
/// a query and a JSON string.
///
/// # Panics
/// When the system has no random bytes.
pub fn canary(length: usize) -> String {
    let mut random = vec![0; length];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut random))
        .expect("the system has random bytes");
    // 64 letters, so every value of 6 bits is as likely.
    random.iter().map(|byte| char::from(LETTERS[usize::from(byte & 63)])).collect()
}

/// Fails when `haystack` holds `secret` as it is, with its case swapped, percent-encoded, in hex,
/// or inside base64 of either alphabet at any of the three alignments.
///
/// # Panics
/// When it does; the message says in which form, not where.
pub fn assert_secret_absent(haystack: impl AsRef<[u8]>, secret: &str) {
    if let Some(form) = form_of(haystack.as_ref(), secret.as_bytes()) {
        panic!("a secret got out: {form}");
    }
}

fn form_of(haystack: &[u8], secret: &[u8]) -> Option<&'static str> {
    assert!(secret.len() >= 8, "a shorter secret is found by chance");
    let contains = |needle: &[u8]| haystack.windows(needle.len()).any(|window| window == needle);
    let lower = haystack.to_ascii_lowercase();
    if contains(secret) {
        Some("as it is")
    } else if contains(&case_swapped(secret)) {
        Some("with its case swapped")
    } else if percent_decoded(haystack).windows(secret.len()).any(|window| window == secret) {
        Some("percent-encoded")
    } else if lower.windows(secret.len() * 2).any(|window| window == hex(secret).as_bytes()) {
        Some("in hex")
    } else if base64_cores(secret).iter().any(|core| contains(core)) {
        Some("in base64")
    } else {
        None
    }
}

fn case_swapped(secret: &[u8]) -> Vec<u8> {
    let swap = |byte: &u8| {
        if byte.is_ascii_alphabetic() { byte ^ 0x20 } else { *byte }
    };
    secret.iter().map(swap).collect()
}

fn hex(secret: &[u8]) -> String {
    secret.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        match (first, tail) {
            (b'%', [high, low, after @ ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                decoded.push(nibble(*high) << 4 | nibble(*low));
                rest = after;
            }
            _ => {
                decoded.push(*first);
                rest = tail;
            }
        }
    }
    decoded
}

fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// The part of the secret's base64 that doesn't depend on what stands before and after it, for each
/// alignment and alphabet.
fn base64_cores(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut cores = Vec::new();
    for before in 0..3 {
        let padded = [&vec![0; before], secret].concat();
        // The first character that holds bits of the secret alone, and the last.
        let first = (before * 8).div_ceil(6);
        let last = padded.len() * 8 / 6;
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            cores.push(engine.encode(&padded).as_bytes()[first..last].to_vec());
        }
    }
    cores
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn canaries_differ_and_have_the_length_asked_for() {
        assert_eq!(canary(40).len(), 40);
        assert_ne!(canary(40), canary(40));
    }

    #[test]
    fn finds_a_secret_in_every_form() {
        let secret = canary(33);
        let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let clothes = [
            secret.clone(),
            String::from_utf8(case_swapped(secret.as_bytes())).unwrap(),
            percent,
            hex(secret.as_bytes()),
            hex(secret.as_bytes()).to_uppercase(),
            STANDARD.encode(&secret),
            STANDARD.encode(format!("u{secret}")),
            STANDARD.encode(format!("u:{secret}:tail")),
            URL_SAFE_NO_PAD.encode(format!("user:{secret}")),
        ];
        for form in clothes {
            let haystack = format!("before {form} after");
            assert!(form_of(haystack.as_bytes(), secret.as_bytes()).is_some(), "{form}");
        }
    }

    #[test]
    fn finds_nothing_where_nothing_is() {
        let secret = canary(33);
        assert_secret_absent(canary(5000), &secret);
        assert_secret_absent(b"", &secret);
        assert_secret_absent(STANDARD.encode(canary(5000)), &secret);
    }
}
