//! Whatever a client sends as HTTP/1.1, is each request that leaves one that another parser reads
//! the same way?

#![no_main]

mod origin;

use libfuzzer_sys::fuzz_target;
use outgate_proxy::fuzzing::forwarded_http1;

fuzz_target!(|input: &[u8]| {
    for request in forwarded_http1(input) {
        origin::check(&request);
    }
});
