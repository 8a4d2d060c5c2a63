//! What happens in a tunnel once it is open?
//!
//! The first bytes tell what it speaks. TLS is intercepted, plain HTTP is served as such, each
//! request judged by itself; anything else is closed.

mod door;
mod intercept;
pub(crate) mod relay;

use std::net::IpAddr;
use std::sync::Arc;

use outgate_policy::{Destination, Reason, Scheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};

use self::door::TunnelDoor;
use self::intercept::intercept;
use crate::audit::Record;
use crate::connection::end;
use crate::exchange::client_io::Deadlines;
use crate::exchange::serve::{self, Ended};
use crate::exchange::{self, TunnelTarget};
use crate::gateway::Gateway;
use crate::ingress::detect::{Protocol, detect};
use crate::ingress::prefixed::Prefixed;
use crate::snapshot::Environment;

/// A tunnel that a client opened.
pub(crate) struct Tunnel {
    pub(crate) environment: Arc<Environment>,
    pub(crate) destination: Destination,
    pub(crate) admission: Admission,
    pub(crate) client: Option<IpAddr>,
    /// Written if no request comes to write its own line.
    pub(crate) record: Record,
}

/// Whether the tunnel leads anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The gate admitted it, and its name leads to an address that may be dialled.
    Granted,
    /// It is open only so that its requests can be told why not.
    Refused,
}

/// Serves what comes through `tunnel` until it ends.
pub(crate) async fn run<IO>(gateway: Arc<Gateway>, mut tunnel: Tunnel, io: Prefixed<IO>)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let deadline = Instant::now() + gateway.limits().client_handshake;
    let (protocol, io) = match timeout_at(deadline, detect(io)).await {
        Ok(Ok(detected)) => detected,
        Ok(Err(error)) => return close(tunnel.record, &format!("the client broke off: {error}")),
        Err(_) => {
            return close(tunnel.record, "the client said nothing that tells a protocol");
        }
    };
    match protocol {
        Protocol::Tls => {
            let secured = timeout_at(deadline, Box::pin(intercept(&gateway, &mut tunnel, io)));
            match secured.await {
                Ok(Ok(session)) => {
                    let http2 = session.get_ref().1.alpn_protocol() == Some(b"h2");
                    Box::pin(serve(gateway, tunnel, session, Scheme::Https, http2)).await;
                }
                Ok(Err(error)) => close(tunnel.record, &error.to_string()),
                Err(_) => close(tunnel.record, "the client's TLS handshake took too long"),
            }
        }
        Protocol::Http1 => Box::pin(serve(gateway, tunnel, io, Scheme::Http, false)).await,
        Protocol::Http2 => Box::pin(serve(gateway, tunnel, io, Scheme::Http, true)).await,
        Protocol::Other => {
            tunnel.record.refused(Reason::ProtocolNotAllowed);
            close(tunnel.record, "neither TLS nor HTTP");
            serve::close(io).await;
        }
        Protocol::Silence => close(tunnel.record, "the client closed without a word"),
    }
}

async fn serve<IO>(gateway: Arc<Gateway>, tunnel: Tunnel, io: IO, scheme: Scheme, http2: bool)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Tunnel { environment, destination, client, record, .. } = tunnel;
    let target = TunnelTarget::new(destination, scheme);
    let door = TunnelDoor::new(Arc::clone(&gateway), environment, target, client, record);
    let door = Arc::new(door);
    let limits = gateway.limits();
    let deadlines = Deadlines::new(limits.idle_tunnel, limits);
    if http2 {
        let served = serve::http2(io, &door, deadlines, limits, gateway.draining()).await;
        return match (door.take_record(), served) {
            (Some(record), Ok(())) => close(record, "the client closed before a request"),
            (Some(record), Err(error)) => close(record, &format!("not HTTP/2: {error}")),
            (None, _) => {}
        };
    }
    let (io, ended) = serve::http1(io, &door, deadlines, limits, gateway.draining()).await;
    settle(door.take_record(), &ended);
    match door.take_upgrade() {
        Some(upgrade) => exchange::splice(*upgrade, io, limits).await,
        None => end(&gateway, door.beginning(), Some(door.target()), io, ended).await,
    }
}

/// A tunnel whose requests each have a line has none of its own.
fn settle(unused: Option<Record>, ended: &Ended) {
    match (unused, ended) {
        (Some(record), Ended::Done | Ended::Left) => {
            close(record, "the client closed before a request")
        }
        // What could not be read as a request has a line of its own.
        (Some(record), Ended::Refused(_)) => record.discard(),
        (None, _) => {}
    }
}

fn close(mut record: Record, why: &str) {
    record.error(why);
    record.finish();
}
