//! What is it like to dial an address where nobody ever answers?
//!
//! Linux drops the SYN to a listener whose queue is full, as a firewall would drop it.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// The kernel answers within this if it answers at all: it is the same machine.
const ANSWER: Duration = Duration::from_millis(200);

/// More than a queue of length 0 ever holds.
const MOST: usize = 8;

/// An address that lets every further connection attempt time out.
pub struct Blackhole {
    _listener: Socket,
    _queue: Vec<TcpStream>,
}

impl Blackhole {
    /// Takes `ADDRESS:PORT`.
    ///
    /// # Panics
    /// When the address is none or taken, or when connections go on being established.
    pub fn start(address: &str) -> Self {
        let address: SocketAddr = address
            .parse()
            .unwrap_or_else(|_| panic!("{address} is no address, as 11.22.33.44:443 is"));
        let listen = || {
            let domain = Domain::for_address(address);
            let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
            if address.is_ipv6() {
                socket.set_freebind_v6(true)?;
            }
            socket.bind(&address.into())?;
            socket.listen(0)?;
            Ok(socket)
        };
        let listener = listen()
            .unwrap_or_else(|fault: std::io::Error| panic!("cannot listen on {address}: {fault}"));
        let mut queue = Vec::new();
        while let Ok(filler) = TcpStream::connect_timeout(&address, ANSWER) {
            queue.push(filler);
            assert!(queue.len() < MOST, "{address} still answers");
        }
        Self { _listener: listener, _queue: queue }
    }
}
