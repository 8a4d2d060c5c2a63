//! Is a client's AWS signature read without a fault, and the request signed anew as AWS reads it?

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| outgate_credentials::fuzzing::signed(input));
