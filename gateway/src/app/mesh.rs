//! Does the proxy of a service mesh share this network namespace?
//!
//! Its rules lead every connection of the namespace through it, those that outgate accepts and
//! those that it makes: who a client is and which address is dialled would be decided elsewhere.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};

use crate::failure::Failure;

/// Where a mesh's proxy listens for what goes out and for what comes in, and how a pod does
/// without it.
const MESHES: [(&str, [u16; 2], &str); 2] = [
    ("Istio", [15001, 15006], "the label sidecar.istio.io/inject: \"false\""),
    ("Linkerd", [4140, 4143], "the annotation linkerd.io/inject: disabled"),
];

/// Fails where one is there.
pub(super) fn refuse() -> Result<(), Failure> {
    let found = MESHES.iter().find(|(_, ports, _)| ports.iter().all(|port| is_taken(*port)));
    found.map_or(Ok(()), |(mesh, [out, back], without)| {
        Err(Failure::start(format_args!(
            "the proxy of {mesh} is in this network namespace (ports {out} and {back} are taken) \
             and would take over what outgate accepts and dials: run it in a pod with {without}"
        )))
    })
}

/// Whether somebody listens there on loopback, or on every address.
fn is_taken(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
}
