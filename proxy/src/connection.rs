//! What is the way of one connection?
//!
//! The spine: HTTP on the proxy's port first; then, if an answer handed the socket over, the
//! tunnel or the upgraded protocol; then the close.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::audit::Beginning;
use crate::exchange::TunnelTarget;
use crate::exchange::client_io::Deadlines;
use crate::exchange::serve::{self, Ended};
use crate::exchange::splice;
use crate::gateway::Gateway;
use crate::ingress::explicit::{ExplicitDoor, Next};
use crate::ingress::prefixed::Prefixed;
use crate::ingress::{Ingress, socks5, transparent};
use crate::listener::Accepted;
use crate::tunnel;

/// Serves one connection until it is closed.
pub(crate) async fn serve(gateway: Arc<Gateway>, accepted: Accepted) {
    match accepted.ingress {
        Ingress::Explicit => explicit(gateway, accepted).await,
        Ingress::Transparent => Box::pin(transparent::serve(gateway, accepted)).await,
        Ingress::Socks => Box::pin(socks5::serve(gateway, accepted)).await,
    }
}

async fn explicit(gateway: Arc<Gateway>, accepted: Accepted) {
    let door = Arc::new(ExplicitDoor::new(Arc::clone(&gateway), &accepted));
    let limits = gateway.limits();
    if let Err(denial) = door.take_place() {
        let io = Prefixed::new(Bytes::new(), accepted.socket);
        return end(&gateway, door.beginning(), None, io, Ended::Refused(denial)).await;
    }
    let deadlines = Deadlines::new(limits.idle_keep_alive, limits).promptly();
    // Boxed, each stage gives its memory back before the next begins: tunnels idle for long.
    let served =
        Box::pin(serve::http1(accepted.socket, &door, deadlines, limits, gateway.draining()));
    let (io, ended) = served.await;
    match door.take_next() {
        Some(Next::Tunnel(opened)) => {
            let (tunnel, passage) = *opened;
            Box::pin(tunnel::run(Arc::clone(&gateway), tunnel, passage, io)).await;
        }
        Some(Next::Upgrade(upgrade)) => Box::pin(splice(*upgrade, io, &gateway)).await,
        None => end(&gateway, door.beginning(), None, io, ended).await,
    }
}

/// The end of a connection that was HTTP to its last byte. What could not be read as a request has
/// its audit line here, with the tunnel's `target` where there is one.
pub(crate) async fn end<IO>(
    gateway: &Gateway,
    beginning: Beginning,
    target: Option<&TunnelTarget>,
    io: Prefixed<IO>,
    ended: Ended,
) where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    match ended {
        Ended::Left => {}
        Ended::Done => serve::close(io).await,
        Ended::Refused(denial) => {
            if let Ok(mut record) = gateway.audit().request(beginning).await {
                if let Some(target) = target {
                    record.goes_to(&target.destination, Some(target.scheme));
                }
                record.refused(denial.reason);
                record.error(denial.message.as_str());
                record.finish();
            }
            serve::refuse_and_close(io, &denial).await;
        }
    }
}
