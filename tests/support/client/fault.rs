//! Why did a TLS handshake with the gateway fail?

use std::{fmt, io};

use rustls::{AlertDescription, CertificateError};

use crate::http::ReadFault;

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq)]
pub enum TlsFault {
    /// The gateway said why.
    Alert(AlertDescription),
    /// The client did not accept the gateway's certificate.
    Certificate(CertificateError),
    /// The gateway closed or reset the connection without a word of TLS.
    Closed,
    /// Nothing came in time.
    TimedOut,
    /// Anything else, in words.
    Other(String),
}

impl From<io::Error> for TlsFault {
    fn from(fault: io::Error) -> Self {
        let tls = fault.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match (tls, ReadFault::from(io::Error::from(fault.kind()))) {
            (Some(rustls::Error::AlertReceived(alert)), _) => Self::Alert(*alert),
            (Some(rustls::Error::InvalidCertificate(why)), _) => Self::Certificate(why.clone()),
            (None, ReadFault::Truncated { .. } | ReadFault::Reset { .. }) => Self::Closed,
            (None, ReadFault::TimedOut) => Self::TimedOut,
            _ => Self::Other(fault.to_string()),
        }
    }
}

impl fmt::Display for TlsFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alert(alert) => write!(formatter, "the gateway sent the alert {alert:?}"),
            Self::Certificate(fault) => write!(formatter, "the gateway's certificate: {fault}"),
            Self::Closed => formatter.write_str("the gateway closed the connection"),
            Self::TimedOut => formatter.write_str("nothing came in time"),
            Self::Other(fault) => formatter.write_str(fault),
        }
    }
}
