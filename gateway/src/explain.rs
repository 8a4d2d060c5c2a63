//! `outgate explain`: what would happen to this request, and why?
//!
//! Asks the same evaluator as the data path, of the same values; only the address that a name
//! resolves to, and what is behind a credential that is there, is not known here.

mod said;
mod stored;
mod wanted;

use std::io;
use std::net::SocketAddr;

use outgate_credentials::Credentials;
use outgate_policy::{
    AddressRules, CredentialId, Denial, EnvironmentId, Host, Policy, Protocol, Reason, Request,
    RequestVerdict, Scheme, TlsMode, compile_under,
};
use outgate_proxy::Environment as ServedEnvironment;
use serde_json::Value;

use self::said::{as_json, as_text, domain};
use self::stored::Stored;
use self::wanted::Wanted;
use crate::cli::{ExplainArgs, ServeArgs};
use crate::config::Settings;
use crate::console::{Style, complain, say};
use crate::environments::{address_rules, default_id, read_text};
use crate::failure::Failure;
use crate::surroundings::Surroundings;

/// Prints the verdict. A deny ends the program with 1.
pub(crate) fn run(args: &ExplainArgs, surroundings: &Surroundings) -> Result<(), Failure> {
    let (method, url) = args.request();
    let wanted = Wanted::parse(method, url).map_err(Failure::input)?;
    let serve = ServeArgs { operator: args.operator.clone(), ..ServeArgs::default() };
    let settings = Settings::resolve(&serve, surroundings).map_err(Failure::input)?;
    let rules = address_rules(&settings.addresses, &settings.environments, &[])?;
    let text = read_text(&args.environment)?;
    let environment =
        compile_under(&text, &default_id(&args.environment), &rules).map_err(|found| {
            for problem in &found.problems {
                complain(format_args!("{}: {problem}", args.environment.display()));
            }
            Failure::shown()
        })?;
    let verdict = judge(&wanted, (&environment.id, &environment.policy), &rules);
    let verdict = verdict.and_then(|allowed| stored::look_up(allowed, &settings));
    let document = serde_json::from_str(&text).unwrap_or_default();
    if args.json {
        say(as_json(&verdict, &environment.id, |index| domain(index, &document)))?;
    } else {
        let style = Style::of(&io::stdout(), surroundings.no_color.as_deref());
        say(as_text(&verdict, &document, style))?;
    }
    verdict.map(drop).map_err(|_| Failure::shown())
}

/// The same of an environment that is served, for the management API.
pub(crate) fn of_environment(
    environment: &ServedEnvironment,
    credentials: &Credentials,
    method: &str,
    url: &str,
) -> Result<Value, String> {
    let wanted = Wanted::parse(method, url)?;
    let snapshot = environment.snapshot();
    let policy = &snapshot.policy;
    let verdict = judge(&wanted, (environment.id(), policy), &snapshot.addresses);
    let verdict = verdict.and_then(|allowed| stored::look_up_served(allowed, credentials));
    let domain = |index| policy.pattern(index).map(ToString::to_string);
    Ok(as_json(&verdict, environment.id(), domain))
}

/// What is allowed.
enum Allowed {
    Request(RequestVerdict, Stored),
    /// The TLS that carries it: nobody sees the request. By this entry, and its field.
    Unread(usize, &'static str),
}

impl Allowed {
    fn entry(&self) -> usize {
        match self {
            Allowed::Request(verdict, _) => verdict.entry,
            Allowed::Unread(entry, _) => *entry,
        }
    }

    /// Names, never values.
    fn injected(&self) -> Vec<&str> {
        match self {
            Allowed::Request(verdict, _) => {
                verdict.headers.iter().map(|(name, _)| name.as_str()).collect()
            }
            Allowed::Unread(..) => Vec::new(),
        }
    }

    /// Ids of stored ones.
    fn credentials(&self) -> Vec<CredentialId> {
        match self {
            Allowed::Request(verdict, _) => {
                verdict.credentials.iter().map(|named| named.id.clone()).collect()
            }
            Allowed::Unread(..) => Vec::new(),
        }
    }

    /// Why nobody knows whether those are there.
    fn not_looked_up(&self) -> Option<&str> {
        match self {
            Allowed::Request(_, Stored::Unknown(why)) => Some(why),
            Allowed::Request(_, Stored::Known) | Allowed::Unread(..) => None,
        }
    }

    fn unread(&self) -> Option<&'static str> {
        match self {
            Allowed::Request(..) => None,
            Allowed::Unread(_, field) => Some(field),
        }
    }
}

fn judge(
    wanted: &Wanted<'_>,
    (id, policy): (&EnvironmentId, &Policy),
    rules: &AddressRules,
) -> Result<Allowed, Denial> {
    let judged = || -> Result<Allowed, Denial> {
        if wanted.scheme == Scheme::Https {
            let tunnel = policy.judge_tunnel(&wanted.destination)?;
            match (tunnel.protocol, tunnel.tls) {
                (Protocol::Tcp, _) => return Ok(Allowed::Unread(tunnel.entry, "protocol tcp")),
                (_, TlsMode::Passthrough) => {
                    return Ok(Allowed::Unread(tunnel.entry, "tls passthrough"));
                }
                (Protocol::Http, TlsMode::Intercept) => {}
            }
        }
        let Wanted { scheme, destination, method, path } = wanted;
        let request = Request { destination, scheme: *scheme, method, path };
        let verdict = policy.judge_request(&request)?;
        Ok(Allowed::Request(verdict, Stored::Known))
    };
    let verdict = judged().map_err(|denial| denial.in_environment(id))?;
    if let Host::Address(address) = &wanted.destination.host {
        rules
            .judge(SocketAddr::new(*address, wanted.destination.port))
            .map_err(|refusal| Denial::new(Reason::AddressNotAllowed, refusal.to_string()))?;
    }
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FILE: &str = r#"{"environment_id": "e", "network": {"allowlist": [
        {"domain": "api.example.com", "methods": ["GET"], "transform": {"Authorization": "Bearer s3cret"}},
        {"domain": "stored.example.com", "credential": "token"},
        {"domain": "*"}]}}"#;

    fn explained(method: &str, url: &str) -> (String, Value) {
        explained_in(FILE, method, url)
    }

    fn explained_in(file: &str, method: &str, url: &str) -> (String, Value) {
        let rules = AddressRules::default();
        let environment = compile_under(file, "e", &rules).unwrap();
        let wanted = Wanted::parse(method, url).unwrap();
        let verdict = judge(&wanted, (&environment.id, &environment.policy), &rules);
        let document = serde_json::from_str(file).unwrap();
        let json = as_json(&verdict, &environment.id, |index| domain(index, &document));
        (as_text(&verdict, &document, Style::Plain), json)
    }

    #[test]
    fn an_allowed_request_names_its_entry_and_what_is_injected_never_its_value() {
        let (text, json) = explained("GET", "https://API.example.com?q#f");
        assert_eq!(text, "allow   network.allowlist[0] api.example.com\ninject  authorization");
        assert_eq!(json["injected"], json!(["authorization"]));
        assert!(!json.to_string().contains("s3cret"));
    }

    #[test]
    fn a_denied_request_has_its_reason() {
        let (text, json) = explained("POST", "https://api.example.com/");
        assert!(text.starts_with("deny    method_not_allowed: "), "{text}");
        assert_eq!(json["reason"], "method_not_allowed");
        assert_eq!(explained("GET", "https://a.example.com:8443/").1["reason"], "port_not_allowed");
        assert_eq!(explained("GET", "http://api.example.com/").1["reason"], "injection_needs_tls");
        assert_eq!(explained("GET", "http://x.localhost/").1["reason"], "address_not_allowed");
        assert_eq!(explained("GET", "http://10.0.0.1/").1["reason"], "address_not_allowed");
        let (text, stored) = explained("GET", "https://stored.example.com/");
        assert!(text.ends_with("\ninject  the credential token"), "{text}");
        assert_eq!(stored["credentials"], json!(["token"]));
    }

    #[test]
    fn what_passes_unread_is_said_to() {
        let file = r#"{"network": {"allowlist": [
            {"domain": "db.example.com", "ports": [5432], "protocol": "tcp"},
            {"domain": "pinned.example.com", "tls": "passthrough"}]}}"#;
        let (text, json) = explained_in(file, "GET", "https://db.example.com:5432/");
        assert!(text.starts_with("allow   network.allowlist[0]"), "{text}");
        assert_eq!(json["unread"], "protocol tcp");
        let (text, json) = explained_in(file, "PUT", "https://pinned.example.com/");
        assert!(text.contains("\nunread  tls passthrough: "), "{text}");
        assert_eq!(json["unread"], "tls passthrough");
        let clear = explained_in(file, "GET", "http://pinned.example.com/").1;
        assert_eq!((&clear["verdict"], &clear["unread"]), (&json!("allow"), &Value::Null));
        let clear = explained_in(file, "GET", "http://db.example.com:5432/").1;
        assert_eq!(clear["reason"], "protocol_not_allowed");
    }

    #[test]
    fn an_origin_that_is_met_otherwise_is_said_to_be() {
        let file = r#"{"network": {"allowlist": [{"domain": "*"}, {"domain": "erp.example.com",
            "origin": {"roots": "corp.pem", "min_tls": "1.3"}}]}}"#;
        let (text, _) = explained_in(file, "GET", "https://erp.example.com/");
        assert!(text.ends_with("\norigin  met by its own min_tls, roots"), "{text}");
        let (text, _) = explained_in(file, "GET", "https://api.example.com/");
        assert!(!text.contains("origin"), "{text}");
    }

    #[test]
    fn an_environment_without_network_says_so() {
        let (text, json) = explained_in("{}", "GET", "https://a.example.com/");
        assert!(text.starts_with("allow   the file has no network"), "{text}");
        assert_eq!(json["domain"], Value::Null);
    }
}
