//! Do values take the place of placeholders in a body the same way, however it is cut?

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<u8>, &[u8])| {
    let (pieces, body) = input;
    let pieces: Vec<usize> = pieces.into_iter().map(usize::from).collect();
    outgate_credentials::fuzzing::body(body, &pieces);
});
