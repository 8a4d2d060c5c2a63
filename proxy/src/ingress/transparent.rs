//! Where does a connection go whose client knows of no gateway?
//!
//! To the host that its TLS or HTTP names, else to the name that the gateway's DNS gave the address
//! out for, else to the address; always to the port that the client connected to. Whose it is, is
//! known from the listener, the source address and the interface, and can't be asked.

use std::net::SocketAddr;
use std::sync::Arc;

use outgate_policy::{Denial, Destination, Host, Reason};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::client_hello::{self, ClientHello};
use super::detect::{Protocol, detect};
use super::meaning::meant;
use super::original_destination;
use super::prefixed::Prefixed;
use crate::audit::{Beginning, Record};
use crate::gate::{self, Mode};
use crate::gateway::Gateway;
use crate::listener::{Accepted, Socket};
use crate::snapshot::Environment;
use crate::tunnel::{self, Alert, Naming, Passage, Tunnel};
use crate::upstream::Trail;

/// Serves one connection until it is closed.
pub(crate) async fn serve(gateway: Arc<Gateway>, accepted: Accepted) {
    let Accepted { ingress, client, interface, owner, .. } = &accepted;
    let provenance = gateway.environments().of_connection(owner, *client, *interface);
    let environment = provenance.known().cloned();
    let id = environment.as_ref().map(|environment| environment.id().clone());
    let beginning = Beginning { ingress: *ingress, client: *client, environment: id };
    let mut record = match gateway.audit().tunnel(beginning).await {
        Ok(record) => record,
        Err(full) => return tracing::warn!(%full, "a connection is refused"),
    };
    let (environment, destination, _place) = match open(&accepted, environment, &mut record) {
        Ok(opened) => opened,
        Err(denial) => {
            record.refused(denial.reason);
            return tunnel::close(record, &denial.message);
        }
    };
    let (destination, held) = match meant(&destination.host, &environment) {
        Some((host, held)) => (Destination { host, ..destination }, Some(held)),
        None => (destination, None),
    };
    record.goes_to(&destination, None);
    let tunnel = Tunnel {
        ingress: *ingress,
        environment,
        destination,
        naming: Naming::Fixed,
        client: *client,
        held,
        trail: Trail::default(),
        record,
    };
    let io = Prefixed::new(Default::default(), accepted.socket);
    Box::pin(go_on(gateway, tunnel, io)).await;
}

/// What must hold before anything is read: whose it is, a place, and another destination than the
/// gateway itself.
fn open(
    accepted: &Accepted,
    environment: Option<Arc<Environment>>,
    record: &mut Record,
) -> Result<(Arc<Environment>, Destination, OwnedSemaphorePermit), Denial> {
    let original = original(&accepted.socket)?;
    let destination = Destination { host: Host::Address(original.ip()), port: original.port() };
    record.goes_to(&destination, None);
    let environment = environment.ok_or_else(|| {
        Denial::new(
            Reason::ProxyAuthenticationRequired,
            "neither the listener nor the client's address or interface says which environment \
             this is: see source_addresses and interface in the operator's file",
        )
    })?;
    if accepted.listener.is_none_or(|own| original_destination::is_listener(original, own)) {
        let message = "this port of the gateway is for connections to elsewhere";
        return Err(Denial::new(Reason::AddressNotAllowed, message));
    }
    let place = environment.place()?;
    Ok((environment, destination, place))
}

fn original(socket: &Socket) -> Result<SocketAddr, Denial> {
    let found = match socket {
        Socket::Tcp(socket) => original_destination::of(socket).map_err(|error| error.to_string()),
        Socket::Unix(_) => Err("a Unix socket leads nowhere else".to_owned()),
    };
    found.map_err(|error| {
        let message = format!("where the client wanted to go is not known: {error}");
        Denial::new(Reason::AddressNotAllowed, message)
    })
}

/// Splices at once where any bytes may pass, and else finds out what the client speaks, and of whom.
async fn go_on<IO>(gateway: Arc<Gateway>, mut tunnel: Tunnel, io: Prefixed<IO>)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let judged = gate::admit(&tunnel.destination, &tunnel.environment);
    let presumed = judged.map(|grant| grant.mode()).map_err(|denial| denial.reason);
    if presumed == Ok(Mode::Splice) {
        return match Box::pin(tunnel.admit(&gateway)).await {
            Ok(passage) => tunnel::run(gateway, tunnel, passage, io).await,
            Err(_) => tunnel.record.finish(),
        };
    }
    let deadline = Instant::now() + gateway.limits().client_handshake;
    let detected = timeout_at(deadline, detect(io)).await;
    let (why, io) = match detected {
        Ok(Ok((Protocol::Tls, io))) => return secure(gateway, tunnel, io, deadline).await,
        Ok(Ok((protocol @ (Protocol::Http1 | Protocol::Http2), io))) => {
            tunnel.naming = Naming::ByRequest;
            return tunnel::clear(gateway, tunnel, io, protocol == Protocol::Http2).await;
        }
        Ok(Ok((Protocol::Other, io))) => ("neither TLS nor HTTP", Some(io)),
        Ok(Ok((Protocol::Silence, _))) => ("the client closed without a word", None),
        Ok(Err(_)) => ("the client broke off", None),
        Err(_) => ("the client said nothing that tells a protocol", None),
    };
    match presumed {
        Err(reason) => tunnel.record.refused(reason),
        Ok(_) if io.is_some() => tunnel.record.refused(Reason::ProtocolNotAllowed),
        Ok(_) => {}
    }
    tunnel::close(tunnel.record, why);
}

/// Goes on with a client that begins TLS, to the host that it names.
async fn secure<IO>(gateway: Arc<Gateway>, mut tunnel: Tunnel, io: Prefixed<IO>, deadline: Instant)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (hello, io) = match timeout_at(deadline, client_hello::read(io)).await {
        Ok(Ok(read)) => read,
        Ok(Err(_)) => return tunnel::close(tunnel.record, "the client broke off"),
        Err(_) => return tunnel::close(tunnel.record, "the client's hello took too long"),
    };
    let hello = match hello {
        Ok(hello) => hello,
        Err(error) => {
            tunnel.record.refused(error.reason());
            tunnel::close(tunnel.record, &error.to_string());
            return error.alert().send_and_close(io).await;
        }
    };
    if let Err(mismatch) = name(&mut tunnel, hello) {
        tunnel.record.refused(Reason::NameMismatch);
        tunnel::close(tunnel.record, &mismatch);
        return Alert::UnrecognizedName.send_and_close(io).await;
    }
    let passage = match Box::pin(tunnel.admit(&gateway)).await {
        Ok(passage) => passage,
        Err(refused) if refused.is_readable_inside => Passage::Refusals,
        Err(_) => {
            tunnel.record.finish();
            return Alert::AccessDenied.send_and_close(io).await;
        }
    };
    // What the look-up took was not the client's fault.
    let deadline = Instant::now() + gateway.limits().client_handshake;
    tunnel::secure(gateway, tunnel, passage, io, deadline).await;
}

/// Lets the client's SNI name the tunnel's host. RFC 6066 §3 has no addresses there; clients that
/// send one all the same connect to that address, or lie.
fn name(tunnel: &mut Tunnel, hello: ClientHello) -> Result<(), String> {
    match hello.server_name {
        None => Ok(()),
        Some(name @ Host::Name(_)) => {
            tunnel.destination.host = name;
            tunnel.record.goes_to(&tunnel.destination, None);
            Ok(())
        }
        Some(address @ Host::Address(_)) if address == tunnel.destination.host => Ok(()),
        Some(address @ Host::Address(_)) => Err(format!(
            "the client's SNI says {address}, the connection is to {}",
            tunnel.destination
        )),
    }
}
