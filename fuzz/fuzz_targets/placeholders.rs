//! Does a value take its placeholder's place and nothing else's, whatever stands around it?

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| outgate_credentials::fuzzing::substituted(input));
