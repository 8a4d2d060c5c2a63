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

/// Addresses of one name that are tried beside each other: a name may have many that lead nowhere.
const AT_A_TIME: usize = 4;

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
    let patience = patience(order.len(), limits.connect);
    let one = |address| async move {
        match tokio::time::timeout(patience, connect(address)).await {
            Ok(stream) => Ok((stream?, address)),
            Err(_) => Err(DialError::Timeout(patience)),
        }
    };
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
        if running.len() < AT_A_TIME
            && let Some(next) = waiting.pop_front()
        {
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

/// How long each of so many addresses is waited for, so that all of them have a turn within `all`.
fn patience(addresses: usize, all: Duration) -> Duration {
    let turns = addresses.div_ceil(AT_A_TIME).max(1);
    all / u32::try_from(turns).unwrap_or(u32::MAX)
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_addresses_that_lead_nowhere_take_few_sockets_and_hide_no_good_one() {
        const ALL: Duration = Duration::from_secs(10);
        let addresses = |many: u8| (1..=many).map(|last| SocketAddr::from(([11, 0, 0, last], 1)));
        for many in [1, 4, 5, 16] {
            let patience = patience(usize::from(many), ALL);
            let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let connect = |address: SocketAddr| {
                let now = running.fetch_add(1, Ordering::Relaxed) + 1;
                most.fetch_max(now, Ordering::Relaxed);
                let running = &running;
                async move {
                    let answers = address == SocketAddr::from(([11, 0, 0, many], 1));
                    let slow = Duration::from_millis(if answers { 500 } else { 1_000_000 });
                    let done = tokio::time::timeout(patience, tokio::time::sleep(slow)).await;
                    running.fetch_sub(1, Ordering::Relaxed);
                    done.map(|()| address).map_err(|_| DialError::Timeout(patience))
                }
            };
            let begun = Instant::now();
            let order = addresses(many).collect();
            let reached = race(order, Duration::from_millis(250), connect).await;
            assert!(reached.is_ok(), "{many}");
            assert!(begun.elapsed() < ALL, "{many}: {:?}", begun.elapsed());
            assert!(most.into_inner() <= AT_A_TIME, "{many}");
        }
    }

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
