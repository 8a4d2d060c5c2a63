//! What carries the bytes: TCP, or TLS over it?

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::DerefMut;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::{ConnectionCommon, SideData, StreamOwned};

/// Of what passes below TLS only the start is of interest: the handshake.
const LONGEST_WIRE: usize = 256 * 1024;

/// A connection that a test reads, writes and ends.
pub(crate) trait Transport: Read + Write + Send {
    fn socket(&self) -> &TcpStream;

    /// Says that nothing more will be written; over TLS with `close_notify` first.
    fn finish(&mut self) -> io::Result<()>;
}

/// TCP as it is.
pub(crate) struct Plain {
    socket: TcpStream,
    /// Bytes that were read already and are to be read again.
    before: Vec<u8>,
    /// The first bytes that came from the peer.
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Plain {
    /// # Panics
    /// When the socket is closed already.
    pub(crate) fn new(socket: TcpStream, read_timeout: Duration) -> Self {
        socket.set_read_timeout(Some(read_timeout)).expect("a timeout above zero can be set");
        // Without it small pieces would be held back and joined.
        socket.set_nodelay(true).expect("TCP has this option");
        Self { socket, before: Vec::new(), seen: Arc::default() }
    }

    /// Puts back what was read too far.
    pub(crate) fn put_back(&mut self, bytes: Vec<u8>) {
        self.before = bytes;
    }

    pub(crate) fn seen(&self) -> Arc<Mutex<Vec<u8>>> {
        Arc::clone(&self.seen)
    }
}

impl Read for Plain {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.before.is_empty() {
            let length = into.len().min(self.before.len());
            into[..length].copy_from_slice(&self.before[..length]);
            self.before.drain(..length);
            return Ok(length);
        }
        let received = self.socket.read(into)?;
        let mut seen = self.seen.lock().expect("nobody panics while holding the lock");
        let room = LONGEST_WIRE.saturating_sub(seen.len());
        seen.extend_from_slice(&into[..received.min(room)]);
        Ok(received)
    }
}

impl Write for Plain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl Transport for Plain {
    fn socket(&self) -> &TcpStream {
        &self.socket
    }

    fn finish(&mut self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }
}

impl<C, S> Transport for StreamOwned<C, Plain>
where
    C: DerefMut<Target = ConnectionCommon<S>> + Send,
    S: SideData,
{
    fn socket(&self) -> &TcpStream {
        &self.sock.socket
    }

    fn finish(&mut self) -> io::Result<()> {
        self.conn.send_close_notify();
        while self.conn.wants_write() {
            self.conn.write_tls(&mut self.sock)?;
        }
        self.sock.finish()
    }
}

/// Runs a handshake to its end, on either side.
pub(crate) fn shake_hands<S: SideData>(
    tls: &mut ConnectionCommon<S>,
    transport: &mut Plain,
) -> io::Result<()> {
    while tls.is_handshaking() {
        tls.complete_io(transport)?;
    }
    // A client's last flight, a server's session tickets.
    while tls.wants_write() {
        tls.write_tls(transport)?;
    }
    Ok(())
}
