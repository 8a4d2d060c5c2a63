//! May this leave? The policy of one sandbox: pure and synchronous, no IO, no clock.
//!
//! An environment file is compiled once ([`compile`], every problem said at once) into an
//! [`Environment`] with its [`Policy`]. From then on there are three questions, in this order:
//!
//! 1. [`Policy::judge_tunnel`]: may a connection to this [`Destination`] be opened at all?
//! 2. [`AddressRules::judge`]: may this address, to which its name resolved, be dialled?
//! 3. [`Policy::judge_request`]: may this request be sent, and what is put into it?
//!
//! A no is a [`Denial`] with one of the stable [`Reason`] codes, a sentence for the client, and
//! the allowlist entry that would lift it. This crate never answers "maybe": what it can't read in
//! one way only, it refuses.
//!
//! Text becomes a value at the edge and is compared as a value inside. [`Host`] and [`Authority`]
//! are the project's only parsers of hosts, ports and authorities; whatever way a name arrives, it
//! ends up as the same [`Host`]. [`HostPattern`] is what an entry matches.
//!
//! ```
//! use outgate_policy::{Authority, Destination, Reason, Request, Scheme, compile};
//!
//! let file = r#"{"network": {"allowlist": [
//!     {"domain": "*.example.com"},
//!     {"domain": "api.example.com", "methods": ["GET"], "transform": {"X-Team": "blue"}}
//! ]}}"#;
//! let environment = compile(file, "env_one")?;
//!
//! let authority = Authority::from_wire(b"API.Example.com.:443")?;
//! let destination = Destination { host: authority.host, port: authority.port.unwrap_or(443) };
//! let request =
//!     Request { destination: &destination, scheme: Scheme::Https, method: "GET", path: "/v1" };
//!
//! // The most specific pattern decides, so the entry with index 1.
//! let verdict = environment.policy.judge_request(&request)?;
//! assert_eq!(verdict.entry, 1);
//! assert_eq!(verdict.headers[0].0, "x-team");
//!
//! let denial = environment.policy.judge_request(&Request { method: "POST", ..request });
//! assert_eq!(denial.map_err(|denial| denial.reason), Err(Reason::MethodNotAllowed));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where to look: `compile` reads the file, `policy` decides, `address` knows which addresses are
//! never dialled, `verdict` holds every reason code, `header_rule` says what may be injected.

mod address;
mod authority;
mod compile;
mod destination;
mod document;
mod entry;
mod environment;
mod header_rule;
mod host;
mod id;
mod path;
mod pattern;
mod policy;
mod problem;
mod source;
mod variable;
mod verdict;

pub use address::{
    AddressClass, AddressConfig, AddressRefusal, AddressRules, SYNTHETIC_IPV4, SYNTHETIC_IPV6,
    is_local_name,
};
pub use authority::{Authority, AuthorityError};
pub use compile::{Object, Report, compile, compile_under, did_you_mean, one_of, quoted};
pub use destination::{Destination, Scheme};
pub use document::{Document, Place, refuse_repeated_keys};
pub use entry::{ClientFiles, MinTls, OriginOptions, Protocol, Strip, TlsMode};
pub use environment::{Environment, is_environment_document};
pub use header_rule::{HeaderRuleError, SHORTEST_SCRUBBED, injectable_name, injectable_value};
pub use host::{Host, HostError, Name, PortError, parse_port};
pub use id::{CredentialId, EnvironmentId, IdError};
pub use pattern::{HostPattern, PatternError};
pub use policy::{Policy, Request};
pub use problem::{Problem, Problems};
pub use source::{Source, Target, TargetError};
pub use variable::EnvValue;
pub use verdict::{Denial, Named, Reason, RequestVerdict, TunnelVerdict, excerpt};
