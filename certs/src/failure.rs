//! Why was an origin refused, in one word?

use std::error::Error;
use std::io::{self, ErrorKind};

use rustls::{AlertDescription, CertificateError, InvalidMessage, OtherError, PeerIncompatible};

/// The class of a failed handshake with an origin, for the audit line and the refusal's sentence.
///
/// The classes are stable: `expired`, `not_yet_valid`, `wrong_name`, `unknown_issuer`,
/// `bad_signature`, `weak_algorithm`, `wrong_usage`, `revoked`, `bad_certificate`,
/// `no_shared_version`, `no_shared_protocol`, `incompatible`, `unrecognized_name`,
/// `client_certificate_required`, `alert`, `not_tls`, `misbehaved`, `timeout`, `closed`, `failed`.
pub fn failure_class(error: &io::Error) -> &'static str {
    match tls_error(error) {
        Some(error) => tls_class(error),
        None => io_class(error.kind()),
    }
}

/// The class, where an origin has thought again: TLS 1.3 lets a client go on before its certificate
/// is looked at, so that a no to it, or to none, comes in place of an answer.
pub fn client_refused(error: &io::Error) -> Option<&'static str> {
    use AlertDescription as Alert;
    match tls_error(error)? {
        rustls::Error::AlertReceived(Alert::CertificateRequired) => {
            Some("client_certificate_required")
        }
        rustls::Error::AlertReceived(
            Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied,
        ) => Some("client_certificate_refused"),
        _ => None,
    }
}

/// rustls' own error, however often it is wrapped.
fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let mut next = error.get_ref().map(|inner| inner as &(dyn Error + 'static));
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = match error.downcast_ref::<io::Error>() {
            // `source` of an io::Error skips the error it wraps.
            Some(wrapper) => wrapper.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

fn tls_class(error: &rustls::Error) -> &'static str {
    use rustls::Error as Tls;
    match error {
        Tls::InvalidCertificate(error) => certificate_class(error),
        Tls::NoCertificatesPresented => "bad_certificate",
        Tls::AlertReceived(alert) => alert_class(*alert),
        Tls::PeerIncompatible(error) => incompatible_class(error),
        Tls::NoApplicationProtocol => "no_shared_protocol",
        Tls::InvalidMessage(InvalidMessage::InvalidContentType) => "not_tls",
        Tls::InvalidMessage(InvalidMessage::UnknownProtocolVersion) => "no_shared_version",
        Tls::InvalidMessage(_)
        | Tls::InappropriateMessage { .. }
        | Tls::InappropriateHandshakeMessage { .. }
        | Tls::DecryptError
        | Tls::PeerMisbehaved(_)
        | Tls::PeerSentOversizedRecord => "misbehaved",
        _ => "failed",
    }
}

fn certificate_class(error: &CertificateError) -> &'static str {
    use CertificateError as Certificate;
    match error {
        Certificate::Expired | Certificate::ExpiredContext { .. } => "expired",
        Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => "not_yet_valid",
        Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => "wrong_name",
        Certificate::UnknownIssuer => "unknown_issuer",
        Certificate::BadSignature => "bad_signature",
        Certificate::UnsupportedSignatureAlgorithmContext { .. }
        | Certificate::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => "weak_algorithm",
        Certificate::InvalidPurpose | Certificate::InvalidPurposeContext { .. } => "wrong_usage",
        Certificate::Revoked => "revoked",
        Certificate::Other(error) => path_class(error),
        _ => "bad_certificate",
    }
}

/// Faults of the path that rustls has no name for.
fn path_class(error: &OtherError) -> &'static str {
    match error.0.downcast_ref::<webpki::Error>() {
        Some(webpki::Error::CaUsedAsEndEntity | webpki::Error::EndEntityUsedAsCa) => "wrong_usage",
        Some(webpki::Error::NameConstraintViolation) => "wrong_name",
        _ => "bad_certificate",
    }
}

fn alert_class(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::ProtocolVersion => "no_shared_version",
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            "incompatible"
        }
        AlertDescription::NoApplicationProtocol => "no_shared_protocol",
        AlertDescription::UnrecognisedName => "unrecognized_name",
        AlertDescription::CertificateRequired => "client_certificate_required",
        _ => "alert",
    }
}

fn incompatible_class(error: &PeerIncompatible) -> &'static str {
    match error {
        PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig => "no_shared_version",
        _ => "incompatible",
    }
}

fn io_class(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::TimedOut => "timeout",
        ErrorKind::UnexpectedEof
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe => "closed",
        _ => "failed",
    }
}
