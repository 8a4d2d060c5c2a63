//! Is the sandbox's loopback the host's, and are the host's own addresses its own?

use std::net::{IpAddr, SocketAddr, UdpSocket};

use super::counters::watched;
use super::streams::knock_at_all;
use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

pub(super) fn loopback(brief: &Brief, finding: &mut Finding) {
    let tcp = brief.tcp.iter().filter(|it| it.ip().is_loopback()).chain(&brief.neighbours);
    knock_at_all(&doors(tcp), finding);
    let udp = brief.udp.iter().filter(|it| it.ip().is_loopback());
    send(brief, udp, finding);
}

pub(super) fn interfaces(brief: &Brief, finding: &mut Finding) {
    let outer = |it: &&SocketAddr| !it.ip().is_loopback();
    knock_at_all(&doors(brief.tcp.iter().filter(outer)), finding);
    send(brief, brief.udp.iter().filter(outer), finding);
}

fn doors<'a>(addresses: impl Iterator<Item = &'a SocketAddr>) -> Vec<(IpAddr, u16)> {
    addresses.map(|address| (address.ip(), address.port())).collect()
}

/// The witness tells whether it arrived.
fn send<'a>(brief: &Brief, addresses: impl Iterator<Item = &'a SocketAddr>, finding: &mut Finding) {
    let text = format!("outgate-verify {} {}", finding.probe, brief.canary);
    watched(finding, |_| {
        for address in addresses {
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            // A refusal is what is hoped for.
            let _ = UdpSocket::bind(any).and_then(|it| it.send_to(text.as_bytes(), address));
        }
    });
}
