//! Why did a permitted request get no answer, and who is told what?
//!
//! The client learns which origin and what kind of trouble; addresses and details are for the
//! audit line.

use std::io;
use std::time::Duration;

use outgate_policy::{Denial, Destination, Reason};

use super::dial::DialError;
use super::tls::TlsError;
use crate::audit::Record;
use crate::exchange::body::Breach;
use crate::resolve::ResolveError;

/// Why a permitted request got no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// It wants another TLS client than us.
    #[error("the origin ended the TLS session: {0}")]
    Unwelcome(&'static str),
    /// What came back is not HTTP, or came to a sudden end.
    #[error("{0}")]
    Protocol(String),
    /// There is no room for what came back.
    #[error("{0}")]
    Crowded(String),
    /// gRPC needs HTTP/2, and the origin has none.
    #[error("the origin speaks HTTP/1.1 only, and gRPC needs HTTP/2")]
    OnlyHttp1,
    /// The client broke its own upload off.
    #[error(transparent)]
    Upload(#[from] Breach),
    #[error("no answer within {0:?} of the request's end")]
    Timeout(Duration),
}

impl UpstreamError {
    pub(super) fn of_exchange(error: &hyper::Error) -> UpstreamError {
        let cause = std::error::Error::source(error);
        if error.is_user() {
            // What counts as ours is that the connection's task has ended.
            return UpstreamError::Protocol("the connection ended too early".to_owned());
        }
        if let Some(class) = cause.and_then(client_refused) {
            return UpstreamError::Unwelcome(class);
        }
        UpstreamError::Protocol(match cause {
            Some(cause) => match cause.downcast_ref::<h2::Error>().and_then(h2::Error::reason) {
                // Its words may be the origin's own, and hold what was put on the request.
                Some(reason) => format!("{error}: {}", reason.description()),
                None => format!("{error}: {cause}"),
            },
            None => error.to_string(),
        })
    }

    fn reason(&self) -> Reason {
        match self {
            UpstreamError::Resolve(ResolveError::NoAddress(_) | ResolveError::Trouble { .. }) => {
                Reason::OriginDns
            }
            UpstreamError::Resolve(ResolveError::Refused { .. } | ResolveError::Own(_)) => {
                Reason::AddressNotAllowed
            }
            UpstreamError::Dial(_) => Reason::OriginConnect,
            UpstreamError::Tls(_) | UpstreamError::Unwelcome(_) => Reason::OriginTls,
            UpstreamError::Protocol(_) | UpstreamError::OnlyHttp1 => Reason::OriginProtocol,
            UpstreamError::Crowded(_) => Reason::TooManyConnections,
            UpstreamError::Upload(_) => Reason::MalformedRequest,
            UpstreamError::Timeout(_) => Reason::OriginTimeout,
        }
    }

    /// What the client is told: which origin and what kind of trouble, no address.
    pub(crate) fn denial(&self, destination: &Destination) -> Denial {
        let Destination { host, port } = destination;
        let message = match self {
            UpstreamError::Resolve(ResolveError::NoAddress(_)) => {
                format!("{host} has no address: is the name right?")
            }
            UpstreamError::Resolve(ResolveError::Trouble { .. }) => {
                format!("{host} could not be looked up: try again")
            }
            UpstreamError::Resolve(ResolveError::Refused { .. } | ResolveError::Own(_)) => format!(
                "{host} is or leads to an address that is never dialled, such as a private or \
                 loopback one"
            ),
            UpstreamError::Dial(DialError::Timeout(_)) => {
                format!("no connection to {host} port {port} could be made in time")
            }
            UpstreamError::Dial(DialError::Io(error)) => {
                format!("no connection to {host} port {port}: {}", said_by_system(error))
            }
            UpstreamError::Dial(DialError::Proxy { error, .. }) => format!(
                "no connection to {host} port {port}: the upstream proxy {}",
                error.said_to_client()
            ),
            UpstreamError::Tls(TlsError::Refused { class, .. })
            | UpstreamError::Unwelcome(class) => {
                format!("no TLS session with {host} port {port}: {class}")
            }
            UpstreamError::Tls(TlsError::Timeout(_) | TlsError::Name { .. })
            | UpstreamError::Timeout(_)
            | UpstreamError::Crowded(_)
            | UpstreamError::Upload(_) => self.to_string(),
            UpstreamError::OnlyHttp1 => {
                format!("{host} port {port} speaks HTTP/1.1 only, and gRPC needs HTTP/2")
            }
            UpstreamError::Protocol(what) => format!("{host} port {port} broke HTTP: {what}"),
        };
        Denial::new(self.reason(), message)
    }

    /// Puts the whole truth into the audit line.
    pub(crate) fn note(&self, record: &mut Record) {
        match self.reason() {
            reason @ (Reason::AddressNotAllowed | Reason::MalformedRequest) => {
                record.refused(reason);
            }
            reason => record.failed(reason),
        }
        record.error(self.to_string());
    }
}

/// Whether it is the origin's no to our certificate, or to our having none.
fn client_refused(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    let mut next = Some(cause);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return outgate_certs::client_refused(error);
        }
        next = error.source();
    }
    None
}

/// The kind alone: the full text may hold an address.
fn said_by_system(error: &io::Error) -> String {
    error.kind().to_string()
}
