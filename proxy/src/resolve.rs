//! Which addresses does a name have, and which of them may be dialled?
//!
//! `/etc/hosts` first, then absolute DNS look-ups at the servers of `/etc/resolv.conf`; no search
//! list, no NSS. The C library would read numeric odd forms as loopback and can't be given a
//! deadline. Every answer, wherever it is from, passes the address rules; what is left is the only
//! source of [`PinnedAddresses`], and those are the only thing that can be dialled. The operator's
//! own upstream proxy alone is not judged.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

use hickory_resolver::config::{ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, TokioResolver};
use outgate_policy::{AddressRefusal, AddressRules, Destination, Host};
use smallvec::SmallVec;

use crate::limits::Limits;

/// Answers are kept at least this long, so that a TTL of 0 doesn't ask for every connection.
const SHORTEST_TTL: Duration = Duration::from_secs(1);
/// And at most this long, so that a moved service is found again.
const LONGEST_TTL: Duration = Duration::from_secs(300);
/// Answers kept.
const CACHED_ANSWERS: u64 = 4096;
/// What the other address family is still waited for once one has answered (RFC 8305 §3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
/// One try at one server; the deadline over all tries is [`Limits::dns`].
const TRY: Duration = Duration::from_secs(2);
/// Addresses of one name that are considered.
const MOST_ADDRESSES: usize = 16;

/// The gateway's own resolver.
pub struct Resolver {
    dns: Option<TokioResolver>,
    hosts: Hosts,
    deadline: Duration,
    own: OnceLock<Vec<SocketAddr>>,
}

/// Addresses that passed the rules. Only the resolver makes them; never empty.
pub(crate) struct PinnedAddresses(SmallVec<[SocketAddr; 4]>);

/// Why a name can't be dialled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResolveError {
    /// There is no such name, or it has no address.
    #[error("{0} has no address")]
    NoAddress(Host),
    /// The servers failed, or took too long.
    #[error("{host} could not be looked up: {why}")]
    Trouble { host: Host, why: String },
    /// Every address it has is one that is never dialled.
    #[error("{host} has no address that may be dialled: {refusal}")]
    Refused { host: Host, refusal: AddressRefusal },
    /// It leads back to the gateway itself.
    #[error("{0} is the gateway itself")]
    Own(Host),
}

impl Resolver {
    /// Reads `/etc/resolv.conf` and `/etc/hosts`. Without a usable name server only the hosts file
    /// and literals resolve; that is logged.
    pub fn system(limits: &Limits) -> Resolver {
        let hosts = Hosts::from_system().unwrap_or_else(|error| {
            tracing::warn!(%error, "/etc/hosts can't be read");
            Hosts::default()
        });
        let dns = hickory_resolver::system_conf::read_system_conf()
            .and_then(|(config, _)| {
                // The search list is left behind: look-ups are absolute.
                let config = ResolverConfig::from_parts(None, Vec::new(), config.name_servers);
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
                    .with_options(options())
                    .build()
            })
            .inspect_err(|error| tracing::warn!(%error, "no name server: check /etc/resolv.conf"))
            .ok();
        Resolver { dns, hosts, deadline: limits.dns, own: OnceLock::new() }
    }

    /// Knows only what `hosts` says, in the format of `/etc/hosts`.
    pub fn from_hosts(hosts: &str, limits: &Limits) -> std::io::Result<Resolver> {
        let mut known = Hosts::default();
        known.read_hosts_conf(hosts.as_bytes())?;
        Ok(Resolver { dns: None, hosts: known, deadline: limits.dns, own: OnceLock::new() })
    }

    /// The gateway's listeners, known once they are bound; they are never dialled.
    pub(crate) fn own_listeners(&self, listeners: Vec<SocketAddr>) {
        if self.own.set(listeners).is_err() {
            tracing::error!("listeners were bound twice");
        }
    }

    /// The addresses of `host` that may be dialled on `port`.
    pub(crate) async fn pin(
        &self,
        host: &Host,
        port: u16,
        rules: &AddressRules,
    ) -> Result<PinnedAddresses, ResolveError> {
        self.choose(host, port, |address| rules.judge(address)).await
    }

    /// The addresses of the upstream proxy, which the operator vouches for: no rule judges them.
    pub(crate) async fn find_proxy(
        &self,
        host: &Host,
        port: u16,
    ) -> Result<PinnedAddresses, ResolveError> {
        self.choose(host, port, |_| Ok(())).await
    }

    /// Whether `at` is one of the gateway's listeners, as far as can be told without asking anybody.
    pub(crate) fn is_own_listener(&self, at: &Destination) -> bool {
        let addresses = match &at.host {
            Host::Address(address) => SmallVec::from_slice(&[*address]),
            Host::Name(name) => match absolute(name.as_str()) {
                Ok(name) => self.listed(&name),
                Err(_) => SmallVec::new(),
            },
        };
        addresses
            .iter()
            .any(|address| self.is_own(SocketAddr::new(address.to_canonical(), at.port)))
    }

    /// Those of `host`'s addresses that `judge` lets through; never the gateway's own.
    async fn choose(
        &self,
        host: &Host,
        port: u16,
        judge: impl Fn(SocketAddr) -> Result<(), AddressRefusal>,
    ) -> Result<PinnedAddresses, ResolveError> {
        let addresses = match host {
            Host::Address(address) => SmallVec::from_slice(&[*address]),
            Host::Name(name) => self.look_up(host, name.as_str()).await?,
        };
        let mut good = SmallVec::new();
        let mut why_not = ResolveError::NoAddress(host.clone());
        for address in addresses {
            let address = SocketAddr::new(address.to_canonical(), port);
            match judge(address) {
                Ok(()) if self.is_own(address) => why_not = ResolveError::Own(host.clone()),
                Ok(()) => good.push(address),
                Err(refusal) => why_not = ResolveError::Refused { host: host.clone(), refusal },
            }
        }
        if good.is_empty() { Err(why_not) } else { Ok(PinnedAddresses(good)) }
    }

    async fn look_up(
        &self,
        host: &Host,
        name: &str,
    ) -> Result<SmallVec<[IpAddr; 4]>, ResolveError> {
        let trouble = |why: String| ResolveError::Trouble { host: host.clone(), why };
        let absolute = absolute(name).map_err(&trouble)?;
        let listed = self.listed(&absolute);
        if !listed.is_empty() {
            return Ok(listed);
        }
        let dns = self.dns.as_ref().ok_or_else(|| trouble("no name server is known".to_owned()))?;
        match tokio::time::timeout(self.deadline, both_families(dns, absolute)).await {
            Ok(Ok(addresses)) if addresses.is_empty() => Err(ResolveError::NoAddress(host.clone())),
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) if error.is_no_records_found() => {
                Err(ResolveError::NoAddress(host.clone()))
            }
            Ok(Err(error)) => Err(trouble(error.to_string())),
            Err(_) => Err(trouble(format!("no answer within {:?}", self.deadline))),
        }
    }

    fn listed(&self, name: &Name) -> SmallVec<[IpAddr; 4]> {
        [RecordType::AAAA, RecordType::A]
            .into_iter()
            .filter_map(|kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind)))
            .flat_map(|lookup| addresses(lookup.answers()))
            .take(MOST_ADDRESSES)
            .collect()
    }

    /// A listener bound to every address is met at each address of this machine.
    fn is_own(&self, address: SocketAddr) -> bool {
        self.own.get().into_iter().flatten().any(|own| {
            own.port() == address.port()
                && (own.ip().to_canonical() == address.ip()
                    || (own.ip().is_unspecified() && is_of_this_machine(address)))
        })
    }
}

impl PinnedAddresses {
    pub(crate) fn iter(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().copied()
    }
}

fn absolute(name: &str) -> Result<Name, String> {
    let mut absolute = Name::from_str(name).map_err(|error| error.to_string())?;
    absolute.set_fqdn(true);
    Ok(absolute)
}

fn options() -> ResolverOpts {
    let mut options = ResolverOpts::default();
    options.ndots = 0;
    options.timeout = TRY;
    options.attempts = 2;
    options.cache_size = CACHED_ANSWERS;
    options.use_hosts_file = ResolveHosts::Never;
    options.positive_min_ttl = Some(SHORTEST_TTL);
    options.positive_max_ttl = Some(LONGEST_TTL);
    options.negative_max_ttl = Some(LONGEST_TTL);
    options.edns0 = true;
    options
}

/// A and AAAA at once; when one has answered the other gets little more time, so that a server
/// that is silent about one family stalls nobody.
async fn both_families(dns: &TokioResolver, name: Name) -> Result<SmallVec<[IpAddr; 4]>, NetError> {
    let mut six = Box::pin(dns.lookup(name.clone(), RecordType::AAAA));
    let mut four = Box::pin(dns.lookup(name, RecordType::A));
    let (six, four) = tokio::select! {
        six = &mut six => {
            let four = if six.is_ok() { late(four).await } else { Some(four.await) };
            (Some(six), four)
        }
        four = &mut four => {
            let six = if four.is_ok() { late(six).await } else { Some(six.await) };
            (six, Some(four))
        }
    };
    let mut found = SmallVec::new();
    let mut trouble = None;
    for answer in [six, four].into_iter().flatten() {
        match answer {
            Ok(lookup) => found.extend(addresses(lookup.answers()).take(MOST_ADDRESSES)),
            Err(error) => trouble = Some(error),
        }
    }
    match trouble {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

async fn late<F: Future>(other: F) -> Option<F::Output> {
    tokio::time::timeout(RESOLUTION_DELAY, other).await.ok()
}

fn addresses(
    answers: &[hickory_resolver::proto::rr::Record],
) -> impl Iterator<Item = IpAddr> + use<> {
    answers
        .iter()
        .filter_map(|record| record.data.ip_addr())
        .collect::<SmallVec<[IpAddr; 4]>>()
        .into_iter()
}

/// The kernel picks as source the address itself when it is one of its own. No packet is sent.
fn is_of_this_machine(address: SocketAddr) -> bool {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = std::net::UdpSocket::bind((any, 0))
        .and_then(|socket| socket.connect(address).and_then(|()| socket.local_addr()));
    source.is_ok_and(|source| source.ip() == address.ip())
}

#[cfg(test)]
mod tests {
    use outgate_policy::{AddressConfig, AddressRules};

    use super::*;

    fn rules() -> AddressRules {
        AddressRules::new(AddressConfig::default()).expect("rules")
    }

    async fn pin(hosts: &str, host: &str) -> Result<Vec<String>, ResolveError> {
        let resolver = Resolver::from_hosts(hosts, &Limits::default()).expect("hosts");
        let host = Host::from_wire(host.as_bytes()).expect("a host");
        let pinned = resolver.pin(&host, 443, &rules()).await?;
        Ok(pinned.iter().map(|address| address.to_string()).collect())
    }

    #[tokio::test]
    async fn of_a_mixed_answer_only_the_good_addresses_are_dialled() {
        let hosts = "127.0.0.1 mix.test\n11.22.33.55 mix.test\n::1 mix.test\n10.0.0.1 mix.test\n";
        assert_eq!(pin(hosts, "mix.test").await, Ok(vec!["11.22.33.55:443".to_owned()]));
    }

    #[tokio::test]
    async fn a_hosts_file_opens_no_private_address() {
        let refused = pin("10.0.0.9 a.ok.test\n", "a.ok.test").await;
        assert!(matches!(refused, Err(ResolveError::Refused { .. })), "{refused:?}");
    }

    #[tokio::test]
    async fn a_mapped_literal_is_judged_and_dialled_as_ipv4() {
        assert_eq!(pin("", "[::ffff:11.22.33.44]").await, Ok(vec!["11.22.33.44:443".to_owned()]));
        let refused = pin("", "[::ffff:127.0.0.1]").await;
        assert!(matches!(refused, Err(ResolveError::Refused { .. })), "{refused:?}");
    }

    #[tokio::test]
    async fn the_gateways_own_listeners_are_never_dialled() {
        let resolver = Resolver::from_hosts("", &Limits::default()).expect("hosts");
        resolver.own_listeners(vec!["11.22.33.44:443".parse().expect("address")]);
        let host = Host::from_wire(b"11.22.33.44").expect("a host");
        let own = resolver.pin(&host, 443, &rules()).await;
        assert!(matches!(own, Err(ResolveError::Own(_))));
        assert!(resolver.pin(&host, 444, &rules()).await.is_ok());
    }
}
