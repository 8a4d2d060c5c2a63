//! Odd lengths, odd chunks, odd trailers, and what may hide behind a body.

use crate::cases::{HOST, framed};

/// A request that must never be read unless it is judged.
const INNER: &str = "GET /inner HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

pub(crate) fn all() -> Vec<Vec<u8>> {
    let lengths = LENGTHS
        .iter()
        .map(|length| framed([b"Content-Length:", *length, b"\r\n"].concat(), b"hello"));
    let codings = CODINGS.iter().map(|coding| {
        framed([b"Transfer-Encoding:", *coding, b"\r\n"].concat(), b"5\r\nhello\r\n0\r\n\r\n")
    });
    let chunks = CHUNKS.iter().map(|chunks| framed(b"Transfer-Encoding: chunked\r\n", chunks));
    let both = BOTH.iter().flat_map(|fields| {
        let chunks = format!("0\r\n\r\n{INNER}");
        [framed(fields, chunks), framed(fields, b"5\r\nhello\r\n0\r\n\r\n")]
    });
    lengths.chain(codings).chain(chunks).chain(both).chain(methods()).chain(sequences()).collect()
}

const LENGTHS: [&[u8]; 33] = [
    b" 5",
    b"5",
    b" \t5\t ",
    b" 05",
    b" 0000000000000000000000000005",
    b" +5",
    b" -5",
    b" -0",
    b" 0x5",
    b" 5 5",
    b" 5,5",
    b" 5, 5",
    b" 5,6",
    b" 5,",
    b" ,5",
    b" 5;",
    b" 5.0",
    b" 5e0",
    b" 5abc",
    b" \"5\"",
    b"",
    b" ",
    b" \xd9\xa5",
    b" 5\0",
    b" 5\x0b",
    b"\r\n 5",
    b" 5\r\n 0",
    b" 18446744073709551621",
    b" 18446744073709551615",
    b" 5\r\nContent-Length: 5",
    b" 5\r\nContent-Length: 6",
    b" 0\r\nContent-Length: 5",
    b" 0\r\nContent_Length: 5",
];

const CODINGS: [&[u8]; 29] = [
    b" chunked",
    b"chunked",
    b" Chunked",
    b" \tchunked\t ",
    b" chunked,",
    b" ,chunked",
    b" chunked, chunked",
    b" chunked, identity",
    b" identity, chunked",
    b" identity",
    b" gzip",
    b" gzip, chunked",
    b" chunked, gzip",
    b" xchunked",
    b" chunkedx",
    b" chunked;q=1",
    b" \"chunked\"",
    b" 'chunked'",
    b" chun ked",
    b" chunked\0",
    b" \x0bchunked",
    b" chunked\xff",
    b"",
    b"\r\n chunked",
    b" x\r\n chunked",
    b" chunked\r\nTransfer-Encoding: chunked",
    b" chunked\r\nTransfer-Encoding: identity",
    b" identity\r\nTransfer-Encoding: chunked",
    b" \r\nTransfer-Encoding: chunked",
];

const CHUNKS: [&[u8]; 44] = [
    b"5\r\nhello\r\n0\r\n\r\n",
    b"5;a=b\r\nhello\r\n0;c\r\n\r\n",
    b"5;\r\nhello\r\n0\r\n\r\n",
    b"5;a=\"x;\r\n\"\r\nhello\r\n0\r\n\r\n",
    b"5;a=\"x;y\"\r\nhello\r\n0\r\n\r\n",
    b"5 ;a\r\nhello\r\n0\r\n\r\n",
    b"5 \r\nhello\r\n0\r\n\r\n",
    b"5\t\r\nhello\r\n0\r\n\r\n",
    b" 5\r\nhello\r\n0\r\n\r\n",
    b"05\r\nhello\r\n00\r\n\r\n",
    b"00000000000000000000005\r\nhello\r\n0\r\n\r\n",
    b"0x5\r\nhello\r\n0\r\n\r\n",
    b"5h\r\nhello\r\n0\r\n\r\n",
    b"+5\r\nhello\r\n0\r\n\r\n",
    b"-5\r\nhello\r\n0\r\n\r\n",
    b"5_0\r\nhello\r\n0\r\n\r\n",
    b"5.0\r\nhello\r\n0\r\n\r\n",
    b"5,5\r\nhello\r\n0\r\n\r\n",
    b"\r\nhello\r\n0\r\n\r\n",
    b";a\r\nhello\r\n0\r\n\r\n",
    b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    b"ffffffff00000005\r\nhello\r\n0\r\n\r\n",
    b"5\nhello\r\n0\r\n\r\n",
    b"5\rhello\r\n0\r\n\r\n",
    b"5\r\r\nhello\r\n0\r\n\r\n",
    b"5\r\nhello\n0\r\n\r\n",
    b"5\r\nhello\r0\r\n\r\n",
    b"5\r\nhello0\r\n\r\n",
    b"5\r\nhelloX\r\n0\r\n\r\n",
    b"5;a\nX\r\nhello\r\n0\r\n\r\n",
    b"5;a\rX\r\nhello\r\n0\r\n\r\n",
    b"5;a\0\r\nhello\r\n0\r\n\r\n",
    b"5\r\nhello\r\n0\n\n",
    b"5\r\nhello\r\n0\r\n\n",
    b"5\r\nhello\r\n0\r\nX: 1\r\n\r\n",
    b"5\r\nhello\r\n0\r\nX: 1\r\n 2\r\n\r\n",
    b"5\r\nhello\r\n0\r\nX : 1\r\n\r\n",
    b"5\r\nhello\r\n0\r\nX: 1\n\r\n",
    b"5\r\nhello\r\n0\r\nX-Injected: mine\r\nHost: evil.example.test\r\n\r\n",
    b"5\r\nhello\r\n0\r\nContent-Length: 50\r\nTransfer-Encoding: identity\r\n\r\n",
    b"5\r\nhello\r\n0\r\nGET /inner HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
    b"1\r\nh\r\n1\r\ne\r\n3\r\nllo\r\n0\r\n\r\n",
    b"3e\r\n0\r\n\r\nGET /inner HTTP/1.1\r\nHost: api.example.com\r\nX: 1234567890\r\n0\r\n\r\n",
];

const BOTH: [&[u8]; 14] = [
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    b"Content-Length: 5\r\nTransfer-Encoding: CHUNKED\r\nContent-Length: 6\r\n",
    b"Content-Length: 5\r\nTransfer_Encoding: chunked\r\n",
    b"Content-Length: 5\r\nTransfer-Encoding : chunked\r\n",
    b"Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n",
    b"Content-Length: 5\r\n Transfer-Encoding: chunked\r\n",
    b"Content-Length: 5\r\nX: 1\nTransfer-Encoding: chunked\r\n",
    b"Content-Length: 5\r\nX: 1\rTransfer-Encoding: chunked\r\n",
    b"Content-Length: 5\r\nTransfer-Encoding: identity\r\n",
    b"Content-Length: 5\r\nTE: chunked\r\nX-Transfer-Encoding: chunked\r\n",
    b"Content-Length: 5\r\nConnection: Content-Length\r\n",
    b"Transfer-Encoding: chunked\r\nConnection: Transfer-Encoding\r\n",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: Content-Length, Transfer-Encoding\r\n",
];

/// Bodies where few expect one, in both framings, and with older versions.
fn methods() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for method in ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "FOO", "PUT", "PATCH", "CONNECT"] {
        for version in ["1.1", "1.0"] {
            let head = format!("{method} @/ HTTP/{version}\r\n{HOST}");
            let chunks = format!("{:x}\r\n{INNER}\r\n0\r\n\r\n", INNER.len());
            all.push(format!("{head}Content-Length: {}\r\n\r\n{INNER}", INNER.len()));
            all.push(format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}"));
            all.push(format!("{head}Content-Length: 0\r\n\r\n{INNER}"));
        }
    }
    all.into_iter().map(String::into_bytes).collect()
}

/// Several requests in one write, or what looks like them.
fn sequences() -> Vec<Vec<u8>> {
    let get = |fields: &str| format!("GET @/ HTTP/1.1\r\n{HOST}{fields}\r\n");
    let post = |fields: &str, body: &str| {
        let length = body.len();
        format!("POST @/ HTTP/1.1\r\n{HOST}{fields}Content-Length: {length}\r\n\r\n{body}")
    };
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    [
        get("").repeat(5),
        [get(""), post("", "hello"), get("X: 2\r\n"), post("", INNER), get("")].concat(),
        [get("Connection: close\r\n"), get("X: behind\r\n")].concat(),
        [post("Connection: close\r\n", "hello"), INNER.to_owned()].concat(),
        [post("", "hello"), "\r\n".to_owned(), get("")].concat(),
        [post("", "hello"), "\r\n\r\n\r\n".to_owned(), get("")].concat(),
        [post("", "hello"), "X".to_owned(), get("")].concat(),
        [post("", "hello"), " ".to_owned(), get("")].concat(),
        [post("", "hello"), "\0".to_owned(), get("")].concat(),
        [get(""), get("").replace("Host: api.example.com", "Host: evil.example.test"), get("")]
            .concat(),
        [get(""), get("").replace("Host:", "Host :"), get("")].concat(),
        [get("Connection: keep-alive\r\n").replace("1.1\r\n", "1.0\r\n"), get("")].concat(),
        [get("").replace("1.1\r\n", "1.0\r\n"), get("")].concat(),
        [get(upgrade), INNER.to_owned()].concat(),
        [post(upgrade, "hello"), INNER.to_owned()].concat(),
        [
            get("Connection: upgrade\r\nUpgrade: h2c\r\n"),
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        ]
        .concat(),
        post("Expect: 100-continue\r\n", "hello"),
        post("Expect: 100-Continue\r\n", INNER),
        post("Expect: 100-continue\r\nConnection: Expect\r\n", "hello"),
        post("Expect: 100-continue, x\r\n", "hello"),
        get("Expect: 100-continue\r\nContent-Length: 0\r\n"),
        post("Expect: 100-continue\r\n", "hello").replace("1.1\r\n", "1.0\r\n"),
        post("", "hello").replace("\r\n", "\n"),
        get("").replace("\r\n", "\n"),
        get("").replace("\r\n", "\r"),
        get("").replace("\r\n", "\n\r"),
    ]
    .map(String::into_bytes)
    .into()
}
