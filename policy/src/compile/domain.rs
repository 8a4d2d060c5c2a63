//! Which destinations does an entry name, can it ever reach them, and is that more than was meant?

use std::net::{IpAddr, SocketAddr};

use smallvec::SmallVec;

use super::object::Object;
use super::report::{Report, quoted};
use crate::address::{AddressClass, AddressRules, is_local_name};
use crate::document::{Document, Place};
use crate::entry::{Entry, Ports};
use crate::header_rule::usually_carries_a_secret;
use crate::host::Host;
use crate::pattern::HostPattern;

/// The pattern, with the port if one is written behind it.
pub(super) fn read_pattern(
    object: &Object<'_>,
    report: &mut Report,
) -> Option<(HostPattern, Option<u16>)> {
    let text = object.required("domain", report)?;
    let parsed = HostPattern::parse(text);
    if let Err(error) = &parsed {
        // What stands before an `@` may be a password.
        let shown = if text.contains('@') { String::new() } else { format!("{}: ", quoted(text)) };
        report.problem(&object.place.key("domain"), format!("{shown}{error}"));
    }
    parsed.ok()
}

/// `ports`, or the port behind the domain, or the default.
pub(super) fn read_ports(
    object: &Object<'_>,
    in_domain: Option<u16>,
    deny: bool,
    report: &mut Report,
) -> Ports {
    let place = object.place.key("ports");
    let mut ports = SmallVec::new();
    for (index, item) in object.list("ports", report).iter().enumerate() {
        let number = match item {
            Document::Number(number) => number.as_u64().and_then(|port| u16::try_from(port).ok()),
            _ => None,
        };
        match number.filter(|port| *port != 0) {
            Some(port) if ports.contains(&port) => {
                report.warning(&place.index(index), format!("{port} is there twice"));
            }
            Some(port) => ports.push(port),
            None => report.problem(&place.index(index), "expected a number from 1 to 65535"),
        }
    }
    match in_domain {
        Some(_) if object.get("ports").is_some() => {
            report.problem(&place, "the port is in `domain` already; keep one of the two");
        }
        Some(port) => ports.push(port),
        None => {}
    }
    match (ports.is_empty(), deny) {
        (false, _) => Ports::Listed(ports),
        (true, true) => Ports::Every,
        (true, false) => Ports::web(),
    }
}

/// Refuses an entry that no request can ever use.
pub(super) fn check_reach(
    entry: &Entry,
    place: &Place<'_>,
    addresses: &AddressRules,
    report: &mut Report,
) {
    if entry.deny {
        return;
    }
    match &entry.pattern {
        HostPattern::Exact(name) | HostPattern::Subdomains(name) => {
            if is_local_name(&Host::Name(name.clone())) {
                let message = format!(
                    "\"{}\": never looked up, so this never works; give the service a name of its \
                     own, and its address a line in the operator's [addresses]",
                    entry.pattern
                );
                report.problem(place, message);
            }
        }
        HostPattern::Address(address) => check_address(entry, *address, (place, addresses), report),
        HostPattern::Any => {}
    }
}

fn check_address(
    entry: &Entry,
    address: IpAddr,
    (place, addresses): (&Place<'_>, &AddressRules),
    report: &mut Report,
) {
    let Ports::Listed(ports) = &entry.ports else {
        return;
    };
    let refused = |port: &u16| addresses.judge(SocketAddr::new(address, *port)).err();
    let Some(refusals) = ports.iter().map(refused).collect::<Option<Vec<_>>>() else {
        return;
    };
    let Some(class) = refusals.first().map(|refusal| refusal.class) else {
        return;
    };
    match class {
        // Whoever checks a file may not have the operator's ranges at hand.
        AddressClass::Private | AddressClass::Shared => {
            let message = format!(
                "{address} is {class}: it works only where the operator opens its range in \
                 [addresses] allow"
            );
            report.warning(place, message);
        }
        _ => {
            let message = format!(
                "{address}: {class}; never dialled, so this never works; only the operator can \
                 open an address, in [addresses]"
            );
            report.problem(place, message);
        }
    }
}

/// Warns of patterns that cover what strangers own, the more so with a secret.
pub(super) fn warn_of_width(entry: &Entry, place: &Place<'_>, report: &mut Report) {
    if entry.deny {
        return;
    }
    let width = match &entry.pattern {
        HostPattern::Any => "every domain",
        HostPattern::Subdomains(name) if is_public_suffix(name.as_str()) => {
            let message = format!(
                "\"{}\": {name} is a public suffix, below which domains belong to different owners",
                entry.pattern
            );
            report.warning(&place.key("domain"), message);
            "domains of different owners"
        }
        HostPattern::Subdomains(_) | HostPattern::Exact(_) | HostPattern::Address(_) => return,
    };
    if entry.credential.is_some() {
        report.warning(
            &place.key("credential"),
            format!("the secret goes to {width}; name the domain that needs it"),
        );
    }
    for (name, _) in entry.headers.iter().filter(|(name, _)| usually_carries_a_secret(name)) {
        let message = format!("what {name} carries goes to {width}");
        report.warning(&place.key("transform"), message);
    }
}

/// Only suffixes that the list really has: its fallback takes every unknown last label for one.
fn is_public_suffix(name: &str) -> bool {
    psl::suffix(name.as_bytes())
        .is_some_and(|suffix| suffix.is_known() && suffix.as_bytes() == name.as_bytes())
}
