//! Is a ClientHello read the same, whatever way it is cut, and as rustls reads it?

#![no_main]

use libfuzzer_sys::fuzz_target;
use outgate_policy::Host;
use outgate_proxy::fuzzing::{detected, hello, server_name};

fuzz_target!(|input: (Vec<u8>, &[u8])| {
    let (cuts, bytes) = input;
    let cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut)).collect();
    assert_eq!(detected(bytes, &[]), detected(bytes, &cuts));
    let rustls = server_name(bytes, &[]);
    assert_eq!(rustls, server_name(bytes, &cuts));
    let ours = hello(bytes, &[]);
    assert_eq!(ours, hello(bytes, &cuts));
    if let (Some(Some(theirs)), Some((name, _))) = (rustls, ours) {
        let host = Host::from_wire(theirs.as_bytes()).expect("ours would have refused it");
        assert_eq!(Some(host.to_string()), name);
    }
});
