//! May this TLS pass that ends at the origin?
//!
//! All that can be seen of it is its ClientHello: that must name the tunnel's own host, in the one
//! way in which every server reads it, and must not hide another name. Browsers put a made-up ECH
//! extension into every hello (RFC 9849 §6.2); nobody on the way can tell it from a real one, so
//! that one is refused too.

use outgate_policy::{Host, Reason};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};

use super::alert::Alert;
use super::splice::{Route, splice};
use super::{Tunnel, close};
use crate::gate::TunnelGrant;
use crate::gateway::Gateway;
use crate::ingress::client_hello::{self, ClientHello, HelloError};
use crate::ingress::prefixed::Prefixed;
use crate::upstream::turn;

/// Why a hello does not pass.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the client's hello can't be read: {0}")]
    Unreadable(#[from] HelloError),
    #[error("the client's SNI says {sni}, the tunnel is to {host}")]
    NameMismatch { sni: Host, host: Host },
    #[error("the client's hello has an ECH extension: turn ECH off, or say allow_ech in the entry")]
    HidesName,
}

/// Passes on what comes from `io` if its hello may pass.
pub(super) async fn passthrough<IO: AsyncRead + AsyncWrite + Unpin>(
    gateway: &Gateway,
    mut tunnel: Tunnel,
    route: Route,
    io: Prefixed<IO>,
    deadline: Instant,
) {
    let (hello, io) = match timeout_at(deadline, client_hello::read(io)).await {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => return close(tunnel.record, &format!("the client broke off: {error}")),
        Err(_) => return close(tunnel.record, "the client's hello took too long"),
    };
    let checked = hello.map_err(Refusal::from).and_then(|hello| check(&hello, route.grant()));
    if let Err(refusal) = checked {
        tunnel.record.refused(refusal.reason());
        close(tunnel.record, &refusal.to_string());
        return refusal.alert().send_and_close(io).await;
    }
    let taken = async {
        let _turn = turn(&tunnel.environment, gateway.limits()).await?;
        route.take(gateway, &tunnel.trail, &mut tunnel.record).await
    };
    match taken.await {
        Ok(spliced) => splice(tunnel, spliced, io, gateway.limits()).await,
        Err(error) => {
            error.note(&mut tunnel.record);
            tunnel.record.finish();
            Alert::InternalError.send_and_close(io).await;
        }
    }
}

/// No SNI is no claim: clients that connect to an address send none.
fn check(hello: &ClientHello, grant: &TunnelGrant) -> Result<(), Refusal> {
    let host = &grant.destination().host;
    match &hello.server_name {
        Some(sni) if sni != host => {
            Err(Refusal::NameMismatch { sni: sni.clone(), host: host.clone() })
        }
        _ if hello.hides_name && !grant.allows_ech() => Err(Refusal::HidesName),
        _ => Ok(()),
    }
}

impl Refusal {
    fn reason(&self) -> Reason {
        match self {
            Refusal::Unreadable(error) => error.reason(),
            Refusal::NameMismatch { .. } => Reason::NameMismatch,
            Refusal::HidesName => Reason::EchInPassthrough,
        }
    }

    fn alert(&self) -> Alert {
        match self {
            Refusal::Unreadable(error) => error.alert(),
            Refusal::NameMismatch { .. } => Alert::UnrecognizedName,
            Refusal::HidesName => Alert::AccessDenied,
        }
    }
}
