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

use super::proxy::ProxyError;
use crate::limits::Limits;
use crate::resolve::PinnedAddresses;

/// Why no connection was made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("no connection within {0:?}")]
    Timeout(Duration),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the upstream proxy {at} {error}")]
    Proxy { at: String, error: ProxyError },
}

/// A connection to one of `addresses`, and which.
pub(crate) async fn dial(
    addresses: &PinnedAddresses,
    limits: &Limits,
) -> Result<(TcpStream, SocketAddr), DialError> {
    let order = families_in_turn(addresses.iter(), SocketAddr::is_ipv6);
    let one = |address| async move { Ok((connect(address).await?, address)) };
    let race = race(order, limits.happy_eyeballs, one);
    match tokio::time::timeout(limits.connect, race).await {
        Ok(result) => result,
        Err(_) => Err(DialError::Timeout(limits.connect)),
    }
}

/// What `connect` makes of the first of `waiting` where it makes something.
pub(super) async fn race<T, F>(
    mut waiting: VecDeque<SocketAddr>,
    head_start: Duration,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<T, DialError>
where
    F: Future<Output = Result<T, DialError>>,
{
    let mut running = FuturesUnordered::new();
    let mut last_error = DialError::Io(io::Error::from(io::ErrorKind::AddrNotAvailable));
    loop {
        if let Some(next) = waiting.pop_front() {
            running.push(connect(next));
        }
        let turn = tokio::time::sleep(head_start);
        tokio::pin!(turn);
        tokio::select! {
            result = running.next(), if !running.is_empty() => match result {
                Some(Ok(connected)) => return Ok(connected),
                Some(Err(error)) if error.is_of_every_address() => return Err(error),
                Some(Err(error)) => last_error = error,
                None => {}
            },
            () = &mut turn, if !waiting.is_empty() => {}
            else => return Err(last_error),
        }
    }
}

/// A socket that is connected to `address`.
#[expect(clippy::disallowed_methods, reason = "this is the one place that dials")]
pub(super) async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // What was judged is what is connected, whatever redirects this machine may have.
    if stream.peer_addr()? != address {
        return Err(io::Error::other("connected to another address than the one that was judged"));
    }
    // Without it a new connection waits 40 ms for a delayed ACK behind TLS session tickets.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The families take turns, the resolver's order kept within each; the one that is `first` begins.
pub(super) fn families_in_turn(
    addresses: impl Iterator<Item = SocketAddr>,
    first: impl Fn(&SocketAddr) -> bool,
) -> VecDeque<SocketAddr> {
    let (mut one, mut other): (VecDeque<_>, VecDeque<_>) = addresses.partition(first);
    let mut order = VecDeque::with_capacity(one.len() + other.len());
    while !(one.is_empty() && other.is_empty()) {
        order.extend(one.pop_front());
        order.extend(other.pop_front());
    }
    order
}

impl DialError {
    /// Whether another address would fare no better.
    fn is_of_every_address(&self) -> bool {
        match self {
            DialError::Proxy { error, .. } => error.is_of_the_proxy(),
            DialError::Timeout(_) | DialError::Io(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let all = ["1.1.1.1:1", "1.1.1.2:1", "[2a00::1]:1", "1.1.1.3:1"];
        let all = || all.iter().map(|a| a.parse().expect("address"));
        let shown =
            |order: VecDeque<SocketAddr>| order.iter().map(ToString::to_string).collect::<Vec<_>>();
        let six_first = shown(families_in_turn(all(), SocketAddr::is_ipv6));
        assert_eq!(six_first, ["[2a00::1]:1", "1.1.1.1:1", "1.1.1.2:1", "1.1.1.3:1"]);
        let four_first = shown(families_in_turn(all(), SocketAddr::is_ipv4));
        assert_eq!(four_first, ["1.1.1.1:1", "[2a00::1]:1", "1.1.1.2:1", "1.1.1.3:1"]);
    }
}
