//! Who takes a TCP connection?

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use super::counters::watched;
use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

/// For documentation (RFC 5737, RFC 3849): what is sent there by a sandbox that doesn't hold
/// reaches nobody.
pub(super) const FOREIGN_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
pub(super) const FOREIGN_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// One of each class: reserved, remote shell, mail, names, web, proxies, a store, the last.
pub(super) const PORTS: [u16; 12] = [1, 22, 25, 53, 80, 443, 853, 3128, 5353, 6379, 8080, 65535];

/// The gateway is reached at once, and a refusal comes at once.
pub(super) const SOON: Duration = Duration::from_secs(2);

/// Link-local and other addresses at which clouds give out keys (SPEC 3).
const METADATA: [&str; 8] = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
];

/// In the ranges that the gateway's DNS gives addresses from, but of no name that was asked for.
const SYNTHETIC: [&str; 3] = ["198.18.77.77", "198.19.255.254", "fd6f:7574:6761:7465::7777"];

pub(super) fn raw_ipv4(_: &Brief, finding: &mut Finding) {
    knock_at_all(&PORTS.map(|port| (FOREIGN_V4, port)), finding);
}

pub(super) fn raw_ipv6(_: &Brief, finding: &mut Finding) {
    knock_at_all(&PORTS.map(|port| (FOREIGN_V6, port)), finding);
}

pub(super) fn metadata(_: &Brief, finding: &mut Finding) {
    knock_at_all(&addresses(&METADATA, 80), finding);
}

pub(super) fn unknown_synthetic(_: &Brief, finding: &mut Finding) {
    let all = [addresses(&SYNTHETIC, 80), addresses(&SYNTHETIC, 8443)].concat();
    knock_at_all(&all, finding);
}

fn addresses(texts: &[&str], port: u16) -> Vec<(IpAddr, u16)> {
    let address = |text: &&str| text.parse().expect("a literal of this file");
    texts.iter().map(|text| (address(text), port)).collect()
}

/// Each of them at the same time.
pub(super) fn knock_at_all(doors: &[(IpAddr, u16)], finding: &mut Finding) {
    watched(finding, |finding| {
        let taken = thread::scope(|scope| {
            let knocks: Vec<_> = doors
                .iter()
                .map(|door| scope.spawn(move || knock(SocketAddr::from(*door))))
                .collect();
            knocks.into_iter().map(|knock| knock.join().unwrap_or(true)).collect::<Vec<_>>()
        });
        for ((address, port), _) in doors.iter().zip(taken).filter(|(_, taken)| *taken) {
            finding.taken(address, *port);
        }
    });
}

/// Whether somebody took the connection. It then asks for something, so that whoever it is has
/// something to write down.
fn knock(door: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&door, SOON) else { return false };
    let request = format!("GET / HTTP/1.1\r\nHost: {door}\r\nConnection: close\r\n\r\n");
    let asked = stream
        .set_read_timeout(Some(SOON))
        .and_then(|()| stream.set_write_timeout(Some(SOON)))
        .and_then(|()| stream.write_all(request.as_bytes()));
    // What is answered makes no difference, and nobody need wait for it: the address alone is
    // enough for the gateway to write it down.
    let _ = asked.and_then(|()| stream.take(1 << 16).read_to_end(&mut Vec::new()));
    true
}
