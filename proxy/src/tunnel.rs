//! What happens in a tunnel once it is open?
//!
//! Where any bytes may pass they are relayed at once. Otherwise the first bytes tell what it speaks:
//! TLS is intercepted, or passed on where it ends at the origin; plain HTTP is served as such, each
//! request judged by itself; anything else is closed.

mod admission;
mod alert;
mod door;
mod intercept;
mod passthrough;
pub(crate) mod relay;
mod splice;
mod streams;

use std::net::IpAddr;
use std::sync::Arc;

use outgate_policy::{Destination, Reason, Scheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};

pub(crate) use self::admission::{NotAdmitted, Passage};
pub(crate) use self::alert::Alert;
use self::door::{Target, TunnelDoor};
use self::intercept::intercept;
use self::passthrough::passthrough;
use self::splice::splice;
use crate::audit::{Beginning, Record};
use crate::connection::end;
use crate::exchange::client_io::Deadlines;
use crate::exchange::serve::{self, Ended};
use crate::exchange::{self, TunnelTarget};
use crate::gateway::Gateway;
use crate::ingress::Ingress;
use crate::ingress::detect::{Protocol, detect};
use crate::ingress::prefixed::Prefixed;
use crate::names::Hold;
use crate::snapshot::Environment;
use crate::upstream::Trail;

/// A tunnel that a client opened.
pub(crate) struct Tunnel {
    /// How the client came in.
    pub(crate) ingress: Ingress,
    pub(crate) environment: Arc<Environment>,
    pub(crate) destination: Destination,
    pub(crate) naming: Naming,
    pub(crate) client: Option<IpAddr>,
    /// Keeps the name at the address that the client connected to.
    pub(crate) held: Option<Hold>,
    /// The gateways that it came through.
    pub(crate) trail: Trail,
    /// Written if no request comes to write its own line.
    pub(crate) record: Record,
}

/// Who says where requests in clear go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// Whoever opened the tunnel.
    Fixed,
    /// The first of them; the tunnel's own destination is what else is known.
    ByRequest,
}

/// Serves what comes through `tunnel` until it ends.
pub(crate) async fn run<IO>(
    gateway: Arc<Gateway>,
    tunnel: Tunnel,
    passage: Passage,
    io: Prefixed<IO>,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if let Passage::Bytes(spliced) = passage {
        return Box::pin(splice(tunnel, spliced, io, gateway.limits())).await;
    }
    let deadline = Instant::now() + gateway.limits().client_handshake;
    let (protocol, io) = match timeout_at(deadline, detect(io)).await {
        Ok(Ok(detected)) => detected,
        Ok(Err(error)) => return close(tunnel.record, &format!("the client broke off: {error}")),
        Err(_) => {
            return close(tunnel.record, "the client said nothing that tells a protocol");
        }
    };
    match protocol {
        Protocol::Tls => Box::pin(secure(gateway, tunnel, passage, io, deadline)).await,
        Protocol::Http1 => clear(gateway, tunnel, io, false).await,
        Protocol::Http2 => clear(gateway, tunnel, io, true).await,
        Protocol::Other => refuse(tunnel, io).await,
        Protocol::Silence => close(tunnel.record, "the client closed without a word"),
    }
}

/// Goes on with a tunnel in which the client begins HTTP in clear.
pub(crate) async fn clear<IO>(gateway: Arc<Gateway>, tunnel: Tunnel, io: IO, http2: bool)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    Box::pin(serve(gateway, tunnel, io, Scheme::Http, http2)).await;
}

/// Goes on with a tunnel in which the client begins TLS.
pub(crate) async fn secure<IO>(
    gateway: Arc<Gateway>,
    mut tunnel: Tunnel,
    passage: Passage,
    io: Prefixed<IO>,
    deadline: Instant,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let only_refusals = match passage {
        Passage::Requests => false,
        Passage::Refusals => true,
        Passage::OriginTls(route) => {
            return Box::pin(passthrough(&gateway, tunnel, route, io, deadline)).await;
        }
        Passage::Bytes(spliced) => {
            return Box::pin(splice(tunnel, spliced, io, gateway.limits())).await;
        }
    };
    let secured = Box::pin(intercept(&gateway, &mut tunnel, only_refusals, io));
    match timeout_at(deadline, secured).await {
        Ok(Ok(session)) => {
            let http2 = session.get_ref().1.alpn_protocol() == Some(b"h2");
            Box::pin(serve(gateway, tunnel, session, Scheme::Https, http2)).await;
        }
        Ok(Err(error)) => close(tunnel.record, &error.to_string()),
        Err(_) => close(tunnel.record, "the client's TLS handshake took too long"),
    }
}

/// Closes a tunnel in which the client speaks something else.
async fn refuse<IO: AsyncRead + AsyncWrite + Unpin>(mut tunnel: Tunnel, io: IO) {
    tunnel.record.refused(Reason::ProtocolNotAllowed);
    close(tunnel.record, "neither TLS nor HTTP");
    serve::close(io).await;
}

async fn serve<IO>(gateway: Arc<Gateway>, tunnel: Tunnel, io: IO, scheme: Scheme, http2: bool)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Tunnel { ingress, environment, destination, naming, client, held, trail, record } = tunnel;
    let _held = held;
    let target = Target::new(TunnelTarget::new(destination, scheme, trail), naming);
    let of = Beginning { ingress, client, environment: Some(environment.id().clone()) };
    let door = Arc::new(TunnelDoor::new(Arc::clone(&gateway), environment, target, of, record));
    let limits = gateway.limits();
    let deadlines = Deadlines::new(limits.idle_tunnel, limits);
    if http2 {
        let served = serve::http2(io, &door, deadlines, limits, gateway.draining()).await;
        door.ended().await;
        return match (door.take_record(), served) {
            (Some(record), Ok(())) => close(record, "the client closed before a request"),
            (Some(record), Err(error)) => close(record, &format!("not HTTP/2: {error}")),
            (None, _) => {}
        };
    }
    let (io, ended) = serve::http1(io, &door, deadlines, limits, gateway.draining()).await;
    settle(door.take_record(), &ended);
    match door.take_upgrade() {
        Some(upgrade) => exchange::splice(*upgrade, io, &gateway).await,
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

/// Finishes the line of a tunnel that ends before a request.
pub(crate) fn close(mut record: Record, why: &str) {
    record.error(why);
    record.finish();
}
