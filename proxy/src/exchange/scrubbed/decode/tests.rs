use std::io::{Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;

use super::*;

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

fn brotlied(text: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    let mut encoder = brotli::CompressorReader::new(text, 4096, 2, 22);
    encoder.read_to_end(&mut compressed).expect("memory gives all");
    compressed
}

fn zstded(text: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
    zstd_safe::compress(&mut compressed, text, 3).expect("there is room");
    compressed
}

type Compress = fn(&[u8]) -> Vec<u8>;

const CODINGS: [(&str, Compress); 3] = [("gzip", gzipped), ("br", brotlied), ("zstd", zstded)];

fn decoder(codings: &str) -> Result<Option<Decoder>, Unreadable> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_str(codings).expect("a value"));
    Decoder::of(&headers)
}

fn decoded(codings: &str, body: &[u8], piece: usize) -> Result<Vec<u8>, Unreadable> {
    let mut decoder = decoder(codings)?.expect("a coding");
    let mut text = Vec::new();
    for piece in body.chunks(piece) {
        decoder.feed(Bytes::copy_from_slice(piece));
        loop {
            match decoder.next()? {
                Next::Text(more) => {
                    assert!(more.len() <= DECODING_PIECE);
                    text.extend_from_slice(&more);
                }
                Next::Tired => {}
                Next::Hungry => break,
            }
        }
    }
    decoder.finish().map(|()| text)
}

/// Text that compresses, but not to nothing.
fn text(length: usize) -> Vec<u8> {
    let mut number = 1_u64;
    let mut word = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:x} the ", number >> 40)
    };
    let mut text = String::new();
    while text.len() < length {
        text.push_str(&word());
    }
    text.into_bytes()
}

#[test]
fn reads_each_coding_and_two_in_each_other_however_they_are_cut() {
    let text = text(200_000);
    for (name, coding) in CODINGS {
        let body = coding(&text);
        for piece in [1, 7, 4096, usize::MAX] {
            assert!(decoded(name, &body, piece).is_ok_and(|it| it == text), "{name} by {piece}");
        }
        for (outer, other) in CODINGS {
            let both = format!("{name}, identity ,{}", outer.to_uppercase());
            let twice = decoded(&both, &other(&body), 1000);
            assert!(twice.is_ok_and(|it| it == text), "{both}");
        }
    }
}

#[test]
fn reads_every_member_and_no_garbage_behind_them() {
    for (name, coding) in [CODINGS[0], CODINGS[2]] {
        let members = [coding(b"one, "), coding(b""), coding(b"two")].concat();
        for piece in [1, 5, usize::MAX] {
            assert_eq!(decoded(name, &members, piece).expect("readable"), b"one, two", "{name}");
        }
    }
    for (name, coding) in CODINGS {
        let followed = [&coding(b"one")[..], b"garbage, and more of it"].concat();
        let told = decoded(name, &followed, usize::MAX);
        assert!(matches!(told, Err(Unreadable::Corrupt)), "{name}: {told:?}");
    }
}

#[test]
fn tells_what_is_not_whole() {
    let text = text(50_000);
    for (name, coding) in CODINGS {
        let body = coding(&text);
        for end in [1, body.len() / 2, body.len() - 1] {
            let told = decoded(name, &body[..end], usize::MAX);
            assert!(matches!(told, Err(Unreadable::Short)), "{name} to {end}: {told:?}");
        }
        assert_eq!(decoded(name, b"", 1).expect("no body is none"), b"");
        let mut broken = body.clone();
        broken[0] ^= 0xff;
        broken[body.len() / 2] ^= 0xff;
        assert!(decoded(name, &broken, usize::MAX).is_err(), "{name}");
    }
}

#[test]
fn refuses_codings_that_it_does_not_know_and_more_than_two() {
    for unknown in ["deflate", "compress", "dcb", "gzip, exi", "x"] {
        assert!(matches!(decoder(unknown), Err(Unreadable::Coding)), "{unknown}");
    }
    for (name, value, is_plain) in [
        ("grpc-encoding", "gzip", false),
        ("connect-content-encoding", "zstd", false),
        ("grpc-encoding", "identity", true),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        assert_eq!(Decoder::of(&headers).is_ok(), is_plain, "{name}: {value}");
    }
    assert!(matches!(decoder("gzip, gzip, gzip"), Err(Unreadable::Codings)));
    assert!(matches!(decoder("identity, "), Ok(None)));
    assert!(matches!(decoder("X-GZip"), Ok(Some(_))));
}

#[test]
fn gives_up_on_what_comes_to_far_more_than_any_text() {
    let zeros = vec![0; 18 << 20];
    // All that gzip can do is honest.
    assert!(decoded("gzip", &gzipped(&zeros), usize::MAX).is_ok_and(|it| it.len() == zeros.len()));
    for (name, coding) in &CODINGS[1..] {
        let told = decoded(name, &coding(&zeros), usize::MAX);
        assert!(matches!(told, Err(Unreadable::Bomb)), "{name}: {:?}", told.map(|it| it.len()));
    }
    let told = decoded("gzip, gzip", &gzipped(&gzipped(&zeros)), usize::MAX);
    assert!(matches!(told, Err(Unreadable::Bomb)), "{:?}", told.map(|it| it.len()));
}
