//! Does a network's gateway, set up as `docs/network-gateway.md` says, hold what is behind it?
//!
//! The page's own commands build the gateway's machine and the sandboxes, with the rule files of
//! `deploy/nft` as they stand; what leaves is judged at the far end of the gateway's cable.

/// Twenty kills, on a busy machine.
const LONGEST: Duration = Duration::from_secs(600);

/// The same promise for each kind of sandbox.
macro_rules! for_every_kind {
    ($($promise:ident),* $(,)?) => {
        $(mod $promise {
            use super::*;

            #[test]
            fn veth() {
                isolated_for(LONGEST, || super::$promise(Kind::Veth));
            }

            #[test]
            fn container() {
                isolated_for(LONGEST, || super::$promise(Kind::Container));
            }

            #[test]
            fn vm() {
                isolated_for(LONGEST, || super::$promise(Kind::Vm));
            }
        })*
    };
}

#[path = "network/attacks.rs"]
mod attacks;
#[path = "network/down.rs"]
mod down;
#[path = "network/governed.rs"]
mod governed;
#[path = "network/held.rs"]
mod held;
#[path = "network/names.rs"]
mod names;
#[path = "network/own.rs"]
mod own;
#[path = "network/scene.rs"]
mod scene;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};

use outgate_tests::network::{Packet, Recorder, isolated_for};
use outgate_tests::prelude::*;

use scene::{Kind, Scene};

const API: &str = "api.example.com";
const API4: &str = "11.22.33.44";
const API6: &str = "2a00:1122:3344::44";
const API_ORIGINS: [&str; 2] = ["11.22.33.44:443", "[2a00:1122:3344::44]:443"];
const EVIL: &str = "evil.example.test";
const EVIL4: &str = "11.22.33.66";
const EVIL6: &str = "2a00:1122:3344::66";

/// What a client waits at most for a refusal: a person's "at once".
const AT_ONCE: Duration = Duration::from_secs(1);

/// What came to a sandbox, but for its kernels' talk about their link.
fn beyond_the_link(recorder: &Recorder) -> Vec<Packet> {
    let packets = recorder.packets().into_iter();
    packets.filter(|one| !one.is_address_resolution() && !one.is_about_its_link()).collect()
}

/// Connects, or says within a second why it can't; `TimedOut` is silence.
fn connect(to: &str) -> Result<TcpStream, ErrorKind> {
    let to: SocketAddr = to.parse().expect("an address and a port");
    TcpStream::connect_timeout(&to, AT_ONCE).map_err(|fault| fault.kind())
}

/// Sends a datagram, and says what came back within a second: a length, or why nothing will.
fn datagram(to: &str, content: &[u8]) -> Result<usize, ErrorKind> {
    let to: SocketAddr = to.parse().expect("an address and a port");
    let any: IpAddr = if to.is_ipv4() { [0, 0, 0, 0].into() } else { [0u16; 8].into() };
    let exchange = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(to)?;
        socket.set_read_timeout(Some(AT_ONCE))?;
        socket.send(content)?;
        socket.recv(&mut [0; 2048])
    };
    exchange().map_err(|fault: std::io::Error| fault.kind())
}
