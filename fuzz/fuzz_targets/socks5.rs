//! Does a SOCKS5 request lead to one place only, whatever way it is cut?

#![no_main]

use libfuzzer_sys::fuzz_target;
use outgate_policy::Authority;
use outgate_proxy::fuzzing::socks_request;

fuzz_target!(|input: (Vec<u8>, &[u8])| {
    let (cuts, request) = input;
    let cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut)).collect();
    let whole = socks_request(request, &[]);
    assert_eq!(whole, socks_request(request, &cuts));
    if let Some((destination, _)) = whole {
        // What leads anywhere is a host as every other way in has it.
        let authority = Authority::from_wire(destination.as_bytes()).expect("a canonical form");
        assert!(authority.port.is_some_and(|port| port > 0));
        assert_eq!(&request[..3], [5, 1, 0]);
    }
});
