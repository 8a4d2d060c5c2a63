//! How is each refusal said to the client, and which entry would lift it?

use serde_json::{Value, json};

use crate::address::AddressClass;
use crate::destination::Destination;
use crate::host::Host;
use crate::verdict::{Denial, Reason, excerpt};

/// A destination that is being refused.
pub(super) struct Refusing<'a>(pub(super) &'a Destination);

impl Refusing<'_> {
    pub(super) fn network_disabled(&self) -> Denial {
        let message = format!("{} is out of reach of the disabled network", self.0.host);
        Denial::new(Reason::NetworkDisabled, message)
    }

    pub(super) fn local_name(&self) -> Denial {
        let message =
            format!("{} means the gateway's own machine and is never dialled", self.0.host);
        Denial::new(Reason::AddressNotAllowed, message)
    }

    /// A literal that only `*` could have matched.
    pub(super) fn not_public(&self, class: AddressClass) -> Denial {
        let message =
            format!("{} is not a public address ({class}), and `*` covers no other", self.0.host);
        Denial::new(Reason::AddressNotAllowed, message)
    }

    pub(super) fn not_listed(&self) -> Denial {
        let message = format!("{} is not in network.allowlist", self.0.host);
        let denial = Denial::new(Reason::DomainNotAllowed, message);
        if self.can_be_listed() { denial.with_fix(self.entry()) } else { denial }
    }

    pub(super) fn by_entry(&self, index: usize) -> Denial {
        let message = format!("{} is denied by network.allowlist[{index}]", self.0.host);
        Denial::new(Reason::DeniedByEntry, message)
    }

    pub(super) fn port(&self) -> Denial {
        let Destination { host, port } = self.0;
        let message = format!("port {port} of {host} is not allowed by network.allowlist");
        let mut fix = self.entry();
        fix["ports"] = json!([port]);
        Denial::new(Reason::PortNotAllowed, message).with_fix(fix)
    }

    pub(super) fn method(&self, method: &str) -> Denial {
        let shown = excerpt(method.as_bytes());
        let message = format!("{shown} to {} is not allowed by network.allowlist", self.0.host);
        let mut fix = self.entry();
        fix["methods"] = json!([shown]);
        Denial::new(Reason::MethodNotAllowed, message).with_fix(fix)
    }

    pub(super) fn path(&self, path: &str) -> Denial {
        let shown = excerpt(path.as_bytes());
        let message =
            format!("path {shown} of {} is not allowed by network.allowlist", self.0.host);
        let denial = Denial::new(Reason::PathNotAllowed, message);
        // A path that was shortened, escaped or holds a star would be another rule as a glob.
        if shown != path || path.contains('*') || path.is_empty() {
            return denial;
        }
        let mut fix = self.entry();
        fix["paths"] = json!([path]);
        denial.with_fix(fix)
    }

    pub(super) fn ambiguous_path(&self, path: &str) -> Denial {
        let message = format!(
            "path {} can be read in several ways, and a rule on paths applies to {}; send it \
             without dot segments, backslashes and empty segments",
            excerpt(path.as_bytes()),
            self.0.host
        );
        Denial::new(Reason::AmbiguousPath, message)
    }

    pub(super) fn http_over_tcp(&self, index: usize) -> Denial {
        let message = format!(
            "network.allowlist[{index}] opens {} for plain TCP; open a tunnel to it with CONNECT",
            self.0
        );
        Denial::new(Reason::ProtocolNotAllowed, message)
    }

    pub(super) fn trace(&self) -> Denial {
        let message = format!("TRACE to {} would show values that are injected", self.0.host);
        Denial::new(Reason::TraceRefused, message)
    }

    pub(super) fn plaintext(&self) -> Denial {
        let message = format!(
            "a request to {} carries injected values, which are sent over TLS only; use https://",
            self.0.host
        );
        Denial::new(Reason::InjectionNeedsTls, message)
    }

    /// An entry for this host and port.
    fn entry(&self) -> Value {
        let mut entry = json!({"domain": self.0.host.to_string()});
        if !matches!(self.0.port, 80 | 443) {
            entry["ports"] = json!([self.0.port]);
        }
        entry
    }

    /// Whether an entry for the host could ever work.
    fn can_be_listed(&self) -> bool {
        match self.0.host {
            Host::Name(_) => true,
            Host::Address(address) => {
                AddressClass::of(address).is_none_or(AddressClass::opens_by_range)
            }
        }
    }
}
