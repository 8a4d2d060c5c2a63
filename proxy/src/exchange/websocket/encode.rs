//! How is a frame written?

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand;
use bytes::{BufMut, Bytes, BytesMut};

use super::Close;

const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const MASKED: u8 = 0x80;
/// What is left of a control frame beside the code.
const REASON_BYTES: usize = 123;

/// A text for the origin, with a mask that nobody can foretell (RFC 6455 §10.3).
pub(crate) fn text(payload: &[u8]) -> Result<Bytes, Unspecified> {
    masked(TEXT, payload)
}

/// The last word to the origin.
pub(super) fn close_for_origin(close: Close) -> Result<Bytes, Unspecified> {
    masked(CLOSE, &close.code().to_be_bytes())
}

/// The last word to the client, which takes no mask.
pub(super) fn close_for_client(close: Close, reason: &str) -> Bytes {
    let reason = &reason.as_bytes()[..reason.len().min(REASON_BYTES)];
    let length = u8::try_from(2 + reason.len()).expect("a control frame is short");
    let mut frame = BytesMut::with_capacity(4 + reason.len());
    frame.put_slice(&[CLOSE, length]);
    frame.put_u16(close.code());
    frame.put_slice(reason);
    frame.freeze()
}

fn masked(first: u8, payload: &[u8]) -> Result<Bytes, Unspecified> {
    let mut key = [0; 4];
    rand::fill(&mut key)?;
    let mut frame = BytesMut::with_capacity(14 + payload.len());
    frame.put_u8(first);
    match payload.len() {
        short @ 0..=125 => frame.put_u8(MASKED | u8::try_from(short).expect("at most 125")),
        long => match u16::try_from(long) {
            Ok(long) => {
                frame.put_u8(MASKED | 126);
                frame.put_u16(long);
            }
            Err(_) => {
                frame.put_u8(MASKED | 127);
                frame.put_u64(long as u64);
            }
        },
    }
    frame.put_slice(&key);
    frame.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
    Ok(frame.freeze())
}

#[cfg(test)]
mod tests {
    use super::super::decode::{Decoder, Said};
    use super::*;

    #[test]
    fn what_is_written_is_read_again_at_every_form_of_length() {
        for length in [0, 1, 125, 126, 65_535, 65_536, 70_000] {
            let payload = vec![b'x'; length];
            let frame = text(&payload).expect("random bytes");
            let head = [2, 4, 10][usize::from(length > 125) + usize::from(length > 65_535)];
            assert_eq!(frame.len(), head + 4 + length);
            let mut decoder = Decoder::new(1 << 20);
            decoder.push(&frame);
            assert_eq!(decoder.next(), Ok(Said::Text(payload)), "{length}");
        }
        let (one, two) = (text(b"abcd").expect("random"), text(b"abcd").expect("random"));
        assert_ne!(one, two, "each frame has a mask of its own");
    }

    #[test]
    fn a_last_word_has_its_code() {
        assert_eq!(&close_for_client(Close::Policy, "no")[..], [0x88, 4, 0x03, 0xf0, b'n', b'o']);
        assert_eq!(close_for_client(Close::Policy, &"x".repeat(200)).len(), 127);
        assert_eq!(close_for_origin(Close::GoingAway).expect("random").len(), 8);
    }
}
