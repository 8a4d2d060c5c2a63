//! Whatever header block a client sends over HTTP/2, is what leaves over HTTP/1.1 one request that
//! another parser reads the same way?

#![no_main]

mod origin;

use libfuzzer_sys::fuzz_target;
use outgate_proxy::fuzzing::forwarded_http2;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
/// END_STREAM and END_HEADERS.
const FLAGS: u8 = 0x5;

fuzz_target!(|block: &[u8]| {
    let block = &block[..block.len().min(16_000)];
    let [_, a, b, c] = u32::try_from(block.len()).expect("short").to_be_bytes();
    let mut input = PREFACE.to_vec();
    input.extend_from_slice(&[a, b, c, 0x1, FLAGS, 0, 0, 0, 1]);
    input.extend_from_slice(block);
    for request in forwarded_http2(&input) {
        origin::check(&request);
    }
});
