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

/// What begins a body, then what comes to nothing, as often as one likes.
fn nothings() -> [(&'static str, &'static str, Vec<u8>, Vec<u8>); 6] {
    let member = gzipped(b"");
    // RFC 1952 §2.3; RFC 1951 §3.2.4; RFC 7932 §9.2; RFC 8878 §3.1.
    let gzip_head = member[..10].to_vec();
    [
        ("members", "gzip", Vec::new(), member),
        ("stored blocks", "gzip", gzip_head.clone(), vec![0, 0, 0, 0xff, 0xff]),
        ("fixed blocks", "gzip", gzip_head, vec![0b10, 0b1000, 0b10_0000, 0b1000_0000, 0]),
        ("metadata", "br", vec![0x0c], vec![0x06]),
        ("frames", "zstd", Vec::new(), zstded(b"")),
        ("skippable frames", "zstd", Vec::new(), vec![0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]),
    ]
}

#[test]
fn gives_up_on_what_comes_to_nothing_and_lets_others_have_turns_before() {
    for (what, coding, head, nothing) in nothings() {
        for length in [DECODING_SILENCE / 2, DECODING_SILENCE + 16] {
            let count = usize::try_from(length).expect("a length") / nothing.len();
            let body = [head.clone(), nothing.repeat(count + 1)].concat();
            let mut decoder = decoder(coding).expect("known").expect("a coding");
            decoder.feed(body.into());
            let mut turns = 0;
            let end = loop {
                match decoder.next() {
                    Ok(Next::Tired) => turns += 1,
                    Ok(Next::Text(text)) => panic!("{what} come to {text:?}"),
                    Ok(Next::Hungry) => break None,
                    Err(error) => break Some(error),
                }
            };
            let ended = matches!(end, Some(Unreadable::Silent));
            assert_eq!(ended, length > DECODING_SILENCE, "{what}: {length} {end:?}");
            assert!(turns >= 3, "{what}: {turns} turns for {length} bytes");
        }
    }
}

#[test]
fn reads_what_comes_behind_nothing() {
    for (what, coding, head, nothing) in nothings() {
        let whole_parts = head.is_empty();
        if whole_parts {
            let text = CODINGS.iter().find(|(name, _)| *name == coding).expect("one").1(b"text");
            let body = [nothing.repeat(1000), text, nothing].concat();
            assert_eq!(decoded(coding, &body, 1000).expect("readable"), b"text", "{what}");
        }
    }
}

#[test]
fn many_beginnings_in_a_bomb_are_a_bomb() {
    let members = gzipped(b"a").repeat(1 << 19);
    let told = decoded("gzip, gzip", &gzipped(&members), usize::MAX);
    assert!(matches!(told, Err(Unreadable::Bomb)), "{:?}", told.map(|it| it.len()));
    let few = gzipped(b"a").repeat(1000);
    assert_eq!(decoded("gzip, gzip", &gzipped(&few), usize::MAX).expect("honest").len(), 1000);
}
