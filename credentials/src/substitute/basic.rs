//! What does a `Basic` header say inside, and how was that written?
//!
//! Clients write it with either alphabet of base64 and with or without padding (RFC 4648 §4, §5);
//! what comes out is written as what went in.

use base64::Engine;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

const SCHEME: &[u8] = b"basic ";

/// How a value was written.
pub(super) struct Form<'a> {
    /// The scheme and the blanks behind it.
    before: &'a [u8],
    url_safe: bool,
    padded: bool,
}

/// What is inside, if it is `Basic` and base64.
pub(super) fn decoded(value: &[u8]) -> Option<(Zeroizing<Vec<u8>>, Form<'_>)> {
    let scheme = value.get(..SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(())?;
    let text = value[SCHEME.len()..].trim_ascii_start();
    let before = &value[..value.len() - text.len()];
    let text = text.trim_ascii_end();
    let url_safe = text.iter().any(|byte| matches!(byte, b'-' | b'_'));
    // The last digit of sloppy encoders has bits to spare: servers take it, so a placeholder must
    // not hide behind it.
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let inside = GeneralPurpose::new(alphabet(url_safe), config).decode(text).ok()?;
    // Without a remainder there is no padding to tell by: the usual form has it.
    let padded = text.len().is_multiple_of(4);
    Some((Zeroizing::new(inside), Form { before, url_safe, padded }))
}

impl Form<'_> {
    /// `inside` in the same form.
    pub(super) fn encoded(&self, inside: &[u8]) -> Zeroizing<Vec<u8>> {
        let config = GeneralPurposeConfig::new().with_encode_padding(self.padded);
        let engine = GeneralPurpose::new(alphabet(self.url_safe), config);
        let text = Zeroizing::new(engine.encode(inside));
        Zeroizing::new([self.before, text.as_bytes()].concat())
    }
}

fn alphabet(url_safe: bool) -> &'static Alphabet {
    if url_safe { &URL_SAFE } else { &STANDARD }
}
