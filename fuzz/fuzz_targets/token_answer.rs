//! Does what a token endpoint says become a token that fits on the wire, or a sentence of ours?

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((first, body)) = input.split_first() else { return };
    let status = if *first < 192 { 200 } else { 400 + u16::from(first % 128) };
    outgate_credentials::fuzzing::token_answer(status, body);
});
