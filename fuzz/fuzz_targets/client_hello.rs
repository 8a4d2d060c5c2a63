//! Is a ClientHello read the same, whatever way it is cut?

#![no_main]

use libfuzzer_sys::fuzz_target;
use outgate_proxy::fuzzing::{detected, server_name};

fuzz_target!(|input: (Vec<u8>, &[u8])| {
    let (cuts, hello) = input;
    let cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut)).collect();
    assert_eq!(detected(hello, &[]), detected(hello, &cuts));
    assert_eq!(server_name(hello, &[]), server_name(hello, &cuts));
});
