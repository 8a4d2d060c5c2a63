//! Does a datagram get anywhere?

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use super::counters::watched;
use super::streams::{FOREIGN_V4, FOREIGN_V6, knock_at_all};
use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

/// Names, time, management, discovery, games, the last.
const PORTS: [u16; 9] = [1, 53, 123, 161, 500, 1900, 5353, 33434, 65535];

/// A sandbox refuses at once. Elsewhere somebody may answer.
const ANSWER: Duration = Duration::from_millis(500);

/// Of IPv4 to all on the link, and to all who listen.
const TO_MANY: [&str; 3] = ["255.255.255.255", "224.0.0.251", "ff02::fb"];

pub(super) fn udp(brief: &Brief, finding: &mut Finding) {
    let text = format!("outgate-verify {} {}", finding.probe, brief.canary).into_bytes();
    let many = TO_MANY.map(|address| address.parse::<IpAddr>().expect("a literal of this file"));
    let addresses = [FOREIGN_V4, FOREIGN_V6].into_iter().chain(many);
    let doors = addresses.flat_map(|address| PORTS.map(|port| (address, port).into()));
    send_to_all(&doors.collect::<Vec<_>>(), &text, finding);
    send_to_all(&brief.udp, &text, finding);
}

/// A long packet whose first byte says "Initial", and whose version nobody speaks, so that a server
/// must tell which it does (RFC 9000 §6).
pub(super) fn quic(_: &Brief, finding: &mut Finding) {
    let mut packet = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8];
    packet.extend([1; 8]);
    packet.push(0);
    packet.resize(1200, 0);
    let doors = [FOREIGN_V4, FOREIGN_V6].into_iter();
    let doors = doors.flat_map(|address| [80, 443, 8443].map(|port| (address, port).into()));
    send_to_all(&doors.collect::<Vec<_>>(), &packet, finding);
}

/// A question to a server that the sandbox was not given, over both ways.
pub(super) fn dns(brief: &Brief, finding: &mut Finding) {
    let mut question = vec![0x13, 0x37, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 32];
    question.extend(brief.canary.as_bytes());
    question.extend(b"\x07example\0\0\x01\0\x01");
    let doors = [FOREIGN_V4, FOREIGN_V6].into_iter();
    let doors: Vec<_> = doors.flat_map(|address| [(address, 53), (address, 5353)]).collect();
    let datagrams: Vec<_> = doors.iter().copied().map(SocketAddr::from).collect();
    send_to_all(&datagrams, &question, finding);
    knock_at_all(&doors, finding);
}

fn send_to_all(doors: &[SocketAddr], datagram: &[u8], finding: &mut Finding) {
    watched(finding, |finding| {
        let answered = thread::scope(|scope| {
            let asking: Vec<_> =
                doors.iter().map(|door| scope.spawn(move || ask(*door, datagram))).collect();
            asking.into_iter().map(|asked| asked.join().unwrap_or(true)).collect::<Vec<_>>()
        });
        for (door, _) in doors.iter().zip(answered).filter(|(_, answered)| *answered) {
            finding.open(format_args!("{door} answered over UDP"));
        }
    });
}

/// Whether somebody answered.
fn ask(door: SocketAddr, datagram: &[u8]) -> bool {
    let any = if door.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let asked = || {
        let socket = UdpSocket::bind(any)?;
        socket.set_broadcast(door.is_ipv4())?;
        socket.set_read_timeout(Some(ANSWER))?;
        // From then on a refusal is told here.
        socket.connect(door)?;
        socket.send(datagram)?;
        socket.recv(&mut [0; 2048])
    };
    match asked() {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::Interrupted => ask(door, datagram),
        Err(_) => false,
    }
}
