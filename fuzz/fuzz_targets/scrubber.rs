//! Does a value stay out of a stream in every form, however the stream is cut, and nothing else?

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| outgate_credentials::fuzzing::scrubbed(input));
