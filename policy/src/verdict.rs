//! What can the answer be? Verdicts, denials, and the one list of reason codes.

use http::{HeaderName, HeaderValue};
use smallvec::SmallVec;

use crate::entry::{Protocol, Strip, TlsMode};
use crate::id::{CredentialId, EnvironmentId};

/// A connection may be opened: what it may carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelVerdict {
    /// Index in the file of the entry that decided; 0 where the network is open without a list.
    pub entry: usize,
    /// What may be spoken.
    pub protocol: Protocol,
    /// Whether TLS ends here.
    pub tls: TlsMode,
    /// Whether a spliced ClientHello may hide its name.
    pub allow_ech: bool,
}

/// A request may be sent: with what changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestVerdict {
    /// Index in the file of the entry that decided; 0 where the network is open without a list.
    pub entry: usize,
    /// Headers to set, each once, values marked sensitive.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Credentials to apply, the most specific entry's first.
    pub credentials: SmallVec<[Named; 1]>,
    /// Every entry that injects allows plain HTTP.
    pub allow_plaintext: bool,
    /// Every entry that decides allows it: what a placeholder stands for may go over plain HTTP.
    pub allow_plaintext_placeholders: bool,
    /// Injected values that come back are replaced.
    pub scrub: bool,
    /// `Set-Cookie` is removed from the response.
    pub drop_set_cookie: bool,
    /// Placeholders are looked for in WebSocket text frames.
    pub websocket_text: bool,
    /// Other carriers of credentials to remove from the request.
    pub strip: Vec<Strip>,
}

/// A credential that an entry names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its id.
    pub id: CredentialId,
    /// So many of the verdict's headers are set by more specific entries, and win over what the
    /// credential sets.
    pub behind: usize,
}

impl RequestVerdict {
    /// Whether the entries put anything on the wire that the client didn't send.
    pub fn injects(&self) -> bool {
        !self.headers.is_empty() || !self.credentials.is_empty()
    }
}

/// A no, with its reason for a program and for a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Denial {
    /// The stable code.
    pub reason: Reason,
    /// One sentence for the client; names no internal address, no path of the gateway, no secret.
    pub message: String,
    /// An allowlist entry that would allow it, where one would.
    pub fix: Option<serde_json::Value>,
}

impl Denial {
    /// A denial that no allowlist entry would lift.
    pub fn new(reason: Reason, message: impl Into<String>) -> Denial {
        Denial { reason, message: message.into(), fix: None }
    }

    /// The same denial with the entry that would lift it.
    pub fn with_fix(mut self, fix: serde_json::Value) -> Denial {
        self.fix = Some(fix);
        self
    }

    /// Names the environment at the end of a message about its policy; policy doesn't know whose
    /// it is. Messages about anything else are left alone.
    pub fn in_environment(mut self, id: &EnvironmentId) -> Denial {
        if self.reason.is_about_the_allowlist() {
            self.message = format!("{} of environment {}", self.message, id.as_str());
        }
        self
    }
}

/// The first 64 bytes of what a client sent, escaped: a refusal repeats no more than that.
pub fn excerpt(text: &[u8]) -> String {
    const MAX: usize = 64;
    let shown = text.get(..MAX).unwrap_or(text).escape_ascii().to_string();
    if text.len() > MAX { format!("{shown}…") } else { shown }
}

macro_rules! reasons {
    ($( $name:ident $code:literal $status:literal $status_name:ident $summary:literal )*) => {
        /// Why something was refused. The codes are stable: clients, audit and metrics carry them.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $( #[doc = $summary] $name, )*
        }

        impl Reason {
            /// Every reason, in the order of the README's table.
            pub const ALL: &[Reason] = &[ $( Reason::$name, )* ];

            /// The code in `outgate-reason`, audit and metrics.
            pub const fn code(self) -> &'static str {
                match self { $( Reason::$name => $code, )* }
            }

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self { $( Reason::$name => $status, )* }
            }

            /// The google.rpc name that goes with the status.
            pub const fn status_name(self) -> &'static str {
                match self { $( Reason::$name => stringify!($status_name), )* }
            }

            /// One sentence for a person.
            pub const fn summary(self) -> &'static str {
                match self { $( Reason::$name => $summary, )* }
            }
        }
    };
}

reasons! {
    DomainNotAllowed "domain_not_allowed"
        403 PERMISSION_DENIED "No allowlist entry matches the host."
    DeniedByEntry "denied_by_entry"
        403 PERMISSION_DENIED "The entry that decides for the host says `deny`."
    PortNotAllowed "port_not_allowed"
        403 PERMISSION_DENIED "The host is allowed, but not on this port."
    MethodNotAllowed "method_not_allowed"
        403 PERMISSION_DENIED "The host is allowed, but not with this method."
    PathNotAllowed "path_not_allowed"
        403 PERMISSION_DENIED "The host is allowed, but not this path."
    AddressNotAllowed "address_not_allowed"
        403 PERMISSION_DENIED "The host is or resolves to an address that is never dialled, such as a private or loopback one."
    NetworkDisabled "network_disabled"
        403 PERMISSION_DENIED "The environment has no network at all."
    InjectionNeedsTls "injection_needs_tls"
        403 PERMISSION_DENIED "The request would carry an injected value over plain HTTP."
    PlaceholderNotTrusted "placeholder_not_trusted"
        403 PERMISSION_DENIED "A placeholder stands where, or goes where, its credential is not trusted."
    CredentialUnavailable "credential_unavailable"
        403 PERMISSION_DENIED "The credential that the entry names is missing or can't be read."
    EchInPassthrough "ech_in_passthrough"
        403 PERMISSION_DENIED "An encrypted ClientHello would hide the name of a connection that is not intercepted."
    ProtocolNotAllowed "protocol_not_allowed"
        403 PERMISSION_DENIED "The bytes are neither TLS nor HTTP, and no entry allows anything else; or \
         a WebSocket where answers are scrubbed."
    MalformedRequest "malformed_request"
        400 INVALID_ARGUMENT "The request is not valid HTTP, could be read in two ways, or can't be signed anew."
    MalformedHost "malformed_host"
        400 INVALID_ARGUMENT "The host is not a valid name or address."
    MalformedPort "malformed_port"
        400 INVALID_ARGUMENT "The port is not a number from 1 to 65535."
    AmbiguousPath "ambiguous_path"
        400 INVALID_ARGUMENT "A rule on paths applies, and servers could read this path in different ways."
    TraceRefused "trace_refused"
        405 INVALID_ARGUMENT "TRACE would send injected values back to the client."
    ConnectInTunnel "connect_in_tunnel"
        405 INVALID_ARGUMENT "CONNECT is not accepted inside a tunnel."
    ProxyAuthenticationRequired "proxy_authentication_required"
        407 UNAUTHENTICATED "The gateway can't tell which environment the client belongs to."
    RequestTimeout "request_timeout"
        408 DEADLINE_EXCEEDED "The request did not arrive in time: its head, or a body that is read \
         before it is sent."
    BodyTooLarge "body_too_large"
        413 INVALID_ARGUMENT "The body has to be read whole before it is sent, and is too large for that."
    EncodedBody "encoded_body"
        415 INVALID_ARGUMENT "The body is compressed, and placeholders have to be looked for in it."
    NameMismatch "name_mismatch"
        421 FAILED_PRECONDITION "The request names another host or port than its tunnel."
    HeadTooLarge "head_too_large"
        431 INVALID_ARGUMENT "The request's head is too large."
    OriginDns "origin_dns"
        502 UNAVAILABLE "The host could not be resolved."
    OriginConnect "origin_connect"
        502 UNAVAILABLE "No connection to the host could be made."
    OriginTls "origin_tls"
        502 UNAVAILABLE "The host's certificate or TLS handshake failed."
    OriginProtocol "origin_protocol"
        502 UNAVAILABLE "The host's answer is not valid HTTP, or broke off."
    TooManyConnections "too_many_connections"
        503 UNAVAILABLE "The environment has as many connections or HTTP/2 streams open as it may."
    NotReady "not_ready"
        503 UNAVAILABLE "The gateway is starting, draining, or can't write its audit log."
    CredentialTemporarilyUnavailable "credential_temporarily_unavailable"
        503 UNAVAILABLE "The credential's token endpoint does not answer."
    OriginTimeout "origin_timeout"
        504 DEADLINE_EXCEEDED "The host did not answer in time."
}

impl Reason {
    /// Whether the message speaks of the environment's own `network`.
    const fn is_about_the_allowlist(self) -> bool {
        matches!(
            self,
            Reason::DomainNotAllowed
                | Reason::DeniedByEntry
                | Reason::PortNotAllowed
                | Reason::MethodNotAllowed
                | Reason::PathNotAllowed
                | Reason::NetworkDisabled
        )
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

impl std::fmt::Display for Denial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Denial {}
