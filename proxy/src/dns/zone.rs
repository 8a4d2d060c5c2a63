//! What does a sandbox's name server know?
//!
//! An address for every name, whether policy allows it or not: a refusal is then read where the
//! client can understand it, and no question tells anything to anybody outside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use hickory_proto::op::Query;
use hickory_proto::rr::{DNSClass, Name, RecordType};
use ipnet::IpNet;
use outgate_policy::{Host, is_local_name};

use super::message::{Answer, Failure};
use crate::names::{Meaning, Names};
use crate::snapshot::Environment;

/// The names of one environment, as its own DNS tells them.
pub(crate) struct Zone<'a> {
    names: &'a Names,
    /// Connections to IPv6 addresses come here too.
    ipv6: bool,
}

impl<'a> Zone<'a> {
    pub(super) fn new(names: &'a Names, ipv6: bool) -> Zone<'a> {
        Zone { names, ipv6 }
    }

    /// The zone of `environment`; none while its network is disabled.
    pub(super) fn of(environment: &'a Environment, ipv6: bool) -> Option<Zone<'a>> {
        let disabled = environment.snapshot().policy.is_disabled();
        (!disabled).then(|| Zone::new(&environment.names, ipv6))
    }

    pub(super) fn answer(&self, query: &Query) -> Answer {
        if query.query_class != DNSClass::IN {
            return Answer::Nothing;
        }
        match query.query_type {
            RecordType::A => self.address(&query.name, Family::V4),
            RecordType::AAAA => self.address(&query.name, Family::V6),
            RecordType::PTR => self.pointer(&query.name),
            // HTTPS and SVCB too: what they say would lead to QUIC, and to addresses of their own.
            _ => Answer::Nothing,
        }
    }

    fn address(&self, name: &Name, family: Family) -> Answer {
        let Some(host) = host(name) else { return Answer::Nothing };
        if is_local_name(&host) {
            return Answer::Address(family.loopback());
        }
        match (&host, family) {
            (Host::Address(_), _) => Answer::Nothing,
            (Host::Name(_), Family::V6) if !self.ipv6 => Answer::Nothing,
            (Host::Name(name), family) => match (self.names.address_of(name), family) {
                (Ok(given), Family::V4) => Answer::Address(given.v4.into()),
                (Ok(given), Family::V6) => Answer::Address(given.v6.into()),
                (Err(error), _) => {
                    // Not louder: a sandbox could fill the log with it.
                    tracing::debug!(%error, "a name has no address");
                    Answer::Failure(Failure::Exhausted)
                }
            },
        }
    }

    fn pointer(&self, name: &Name) -> Answer {
        let Some(address) = reversed(name) else { return Answer::Nothing };
        match self.names.name_of(address) {
            Meaning::Name(host, _) => {
                Name::from_str(&format!("{host}.")).map_or(Answer::Nothing, Answer::Pointer)
            }
            Meaning::NotSynthetic | Meaning::Unknown => Answer::Nothing,
        }
    }
}

#[derive(Clone, Copy)]
enum Family {
    V4,
    V6,
}

impl Family {
    fn loopback(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::LOCALHOST.into(),
            Family::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }
}

/// The host that a name on the wire stands for. A label may hold any byte there, dots too, which
/// no host can.
fn host(name: &Name) -> Option<Host> {
    let labels: Vec<&[u8]> = name.iter().collect();
    if labels.iter().any(|label| label.contains(&b'.')) {
        return None;
    }
    Host::from_wire(&labels.join(&b'.')).ok()
}

/// The address under `in-addr.arpa` or `ip6.arpa` (RFC 1035 §3.5, RFC 3596 §2.5).
fn reversed(name: &Name) -> Option<IpAddr> {
    match name.parse_arpa_name().ok()? {
        IpNet::V4(net) if net.prefix_len() == 32 => Some(net.addr().into()),
        IpNet::V6(net) if net.prefix_len() == 128 => Some(net.addr().into()),
        IpNet::V4(_) | IpNet::V6(_) => None,
    }
}
