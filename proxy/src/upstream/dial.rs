//! How is a TCP connection to pinned addresses made?
//!
//! The only place that dials. Happy eyeballs (RFC 8305): families take turns, each address gets a
//! head start before the next is tried beside it, the first that is established wins.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;

use crate::limits::Limits;
use crate::resolve::PinnedAddresses;

/// Why no connection was made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("no connection within {0:?}")]
    Timeout(Duration),
    #[error("{0}")]
    Io(io::Error),
}

/// A connection to one of `addresses`, and which.
pub(crate) async fn dial(
    addresses: &PinnedAddresses,
    limits: &Limits,
) -> Result<(TcpStream, SocketAddr), DialError> {
    let race = race(interleave(addresses.iter()), limits.happy_eyeballs);
    match tokio::time::timeout(limits.connect, race).await {
        Ok(result) => result.map_err(DialError::Io),
        Err(_) => Err(DialError::Timeout(limits.connect)),
    }
}

async fn race(
    mut waiting: VecDeque<SocketAddr>,
    head_start: Duration,
) -> io::Result<(TcpStream, SocketAddr)> {
    let mut running = FuturesUnordered::new();
    let mut last_error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        if let Some(next) = waiting.pop_front() {
            running.push(connect(next));
        }
        let turn = tokio::time::sleep(head_start);
        tokio::pin!(turn);
        tokio::select! {
            result = running.next(), if !running.is_empty() => match result {
                Some(Ok(connected)) => return Ok(connected),
                Some(Err(error)) => last_error = error,
                None => {}
            },
            () = &mut turn, if !waiting.is_empty() => {}
            else => return Err(last_error),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that dials")]
async fn connect(address: SocketAddr) -> io::Result<(TcpStream, SocketAddr)> {
    let stream = TcpStream::connect(address).await?;
    // What was judged is what is connected, whatever redirects this machine may have.
    if stream.peer_addr()? != address {
        return Err(io::Error::other("connected to another address than the one that was judged"));
    }
    // Without it a new connection waits 40 ms for a delayed ACK behind TLS session tickets.
    stream.set_nodelay(true)?;
    Ok((stream, address))
}

/// The families take turns, the resolver's order kept within each; IPv6 begins.
fn interleave(addresses: impl Iterator<Item = SocketAddr>) -> VecDeque<SocketAddr> {
    let (mut six, mut four): (VecDeque<_>, VecDeque<_>) = addresses.partition(SocketAddr::is_ipv6);
    let mut order = VecDeque::with_capacity(six.len() + four.len());
    while !(six.is_empty() && four.is_empty()) {
        order.extend(six.pop_front());
        order.extend(four.pop_front());
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let all = ["1.1.1.1:1", "1.1.1.2:1", "[2a00::1]:1", "1.1.1.3:1"];
        let order = interleave(all.iter().map(|a| a.parse().expect("address")));
        let order: Vec<_> = order.iter().map(ToString::to_string).collect();
        assert_eq!(order, ["[2a00::1]:1", "1.1.1.1:1", "1.1.1.2:1", "1.1.1.3:1"]);
    }
}
