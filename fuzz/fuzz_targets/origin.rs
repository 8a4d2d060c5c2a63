//! What must be true of every request that an origin gets?

use outgate_proxy::fuzzing::{HOST, INJECTED};

/// Panics unless `bytes` are exactly one well-framed request for the tunnel's host, with the
/// injected header once and nothing that concerns another connection.
pub(crate) fn check(bytes: &[u8]) {
    let shown = String::from_utf8_lossy(bytes);
    let mut headers = [httparse::EMPTY_HEADER; 200];
    let mut request = httparse::Request::new(&mut headers);
    let head = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        other => panic!("{other:?}: {shown}"),
    };
    assert_eq!(request.version, Some(1), "{shown}");
    let path = request.path.expect("a target");
    assert!(path.starts_with('/') && !path.contains('#'), "{shown}");
    assert_ne!(request.method, Some("CONNECT"), "{shown}");
    let all = |name: &str| -> Vec<&[u8]> {
        let named = request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value).collect()
    };
    assert_eq!(all("host"), [HOST.as_bytes()], "{shown}");
    assert_eq!(all(INJECTED.0), [INJECTED.1.as_bytes()], "{shown}");
    for name in ["keep-alive", "proxy-connection", "proxy-authorization", "http2-settings"] {
        assert!(all(name).is_empty(), "{name}: {shown}");
    }
    for value in all("connection") {
        assert!([&b"te"[..], b"Upgrade"].contains(&value), "{shown}");
    }
    body(&bytes[head..], &all("content-length"), &all("transfer-encoding"), &shown);
}

fn body(body: &[u8], lengths: &[&[u8]], codings: &[&[u8]], shown: &str) {
    match (lengths, codings) {
        ([], []) => assert!(body.is_empty(), "{shown}"),
        ([length], []) => {
            let length = std::str::from_utf8(length).ok().and_then(|l| l.parse::<usize>().ok());
            assert_eq!(length, Some(body.len()), "{shown}");
        }
        ([], [b"chunked"]) => chunks(body, shown),
        _ => panic!("two framings: {shown}"),
    }
}

fn chunks(mut body: &[u8], shown: &str) {
    loop {
        let Ok(httparse::Status::Complete((line, size))) = httparse::parse_chunk_size(body) else {
            panic!("a broken chunk: {shown}");
        };
        let size = usize::try_from(size).expect("a size");
        if size == 0 {
            let mut trailers = [httparse::EMPTY_HEADER; 200];
            let rest = &body[line..];
            match httparse::parse_headers(rest, &mut trailers) {
                Ok(httparse::Status::Complete((end, trailers))) => {
                    assert_eq!(end, rest.len(), "{shown}");
                    let injected = |t: &httparse::Header| t.name.eq_ignore_ascii_case(INJECTED.0);
                    assert!(!trailers.iter().any(injected), "{shown}");
                }
                other => panic!("{other:?}: {shown}"),
            }
            return;
        }
        assert_eq!(body.get(line + size..line + size + 2), Some(&b"\r\n"[..]), "{shown}");
        body = &body[line + size + 2..];
    }
}
