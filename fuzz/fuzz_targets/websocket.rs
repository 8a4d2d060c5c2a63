//! Does an origin read in our frames what a client has said in its own?

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<u8>, &[u8])| {
    let (pieces, frames) = input;
    let pieces: Vec<usize> = pieces.into_iter().map(usize::from).collect();
    outgate_proxy::fuzzing::websocket(frames, &pieces);
});
