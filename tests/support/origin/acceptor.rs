//! How many connections were opened to an address, to the last one?
//!
//! A count that lags behind would let "0 connections" pass by luck. So whoever asks for the count
//! takes what waits in the kernel's queue first.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};

/// More than any test opens at once.
const BACKLOG: i32 = 4096;

/// How long a dropped acceptor may go on waiting, in milliseconds.
const BETWEEN_LOOKS: u16 = 20;

/// Accepts connections and counts them.
pub(super) struct Acceptor {
    queue: Arc<Queue>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

type Handler = dyn Fn(TcpStream) + Send + Sync;

struct Queue {
    listener: TcpListener,
    count: Mutex<usize>,
    handle: Box<Handler>,
}

impl Acceptor {
    pub(super) fn start(
        address: SocketAddr,
        handle: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = bind(address);
        let queue = Arc::new(Queue { listener, count: Mutex::default(), handle: Box::new(handle) });
        let stopped = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (queue, stopped) = (Arc::clone(&queue), Arc::clone(&stopped));
            move || queue.accept_until(&stopped)
        });
        Self { queue, stopped, thread: Some(thread) }
    }

    pub(super) fn count(&self) -> usize {
        self.queue.take_waiting()
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It holds the listener: only after its end is the address free.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn accept_until(&self, stopped: &AtomicBool) {
        while !stopped.load(Ordering::Relaxed) {
            let mut waiting = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
            // An interrupted wait is a look too early, no more.
            let _ = poll(&mut waiting, PollTimeout::from(BETWEEN_LOOKS));
            self.take_waiting();
        }
    }

    fn take_waiting(&self) -> usize {
        let mut count = self.count.lock().expect("no handler panics");
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => {
                    *count += 1;
                    (self.handle)(socket);
                }
                Err(fault) if fault.kind() == ErrorKind::WouldBlock => return *count,
                Err(fault) if fault.kind() == ErrorKind::Interrupted => {}
                // Opened and gone again: still a SYN that came.
                Err(fault) if fault.kind() == ErrorKind::ConnectionAborted => *count += 1,
                Err(fault) => panic!("cannot accept on {:?}: {fault}", self.listener),
            }
        }
    }
}

/// A listener that says nothing and only counts: for addresses that must see no connection at all.
pub struct SilentListener {
    acceptor: Acceptor,
}

impl SilentListener {
    /// Listens on `ADDRESS:PORT`.
    ///
    /// # Panics
    /// When the address is none, or taken.
    pub fn start(address: &str) -> Self {
        let address: SocketAddr = address.parse().unwrap_or_else(|_| {
            panic!("{address} is no address to listen on, as 127.0.0.1:443 is")
        });
        // Kept open: a peer that comes by mistake finds silence, not an end.
        let open = Mutex::new(Vec::new());
        let keep = move |socket| open.lock().expect("a push never panics").push(socket);
        Self { acceptor: Acceptor::start(address, keep) }
    }

    /// How many connections were opened to it until now.
    pub fn connections(&self) -> usize {
        self.acceptor.count()
    }
}

fn bind(address: SocketAddr) -> TcpListener {
    let listen = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        // A route makes an IPv6 address local, but only one given to an interface may be bound
        // without this option.
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
            socket.set_freebind_v6(true)?;
        }
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(TcpListener::from(socket))
    };
    listen().unwrap_or_else(|fault: std::io::Error| panic!("cannot listen on {address}: {fault}"))
}
