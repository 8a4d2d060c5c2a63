//! How does every TCP connection come to the gateway, whatever its port?
//!
//! One nf_tables table, sent as one batch of nfnetlink messages: either all of it is in force, or
//! nothing. As `nft` would show it, with `OWN` for the sandbox's own address of either family:
//!
//! ```text
//! table inet outgate {
//!   chain capture {
//!     type nat hook output priority dstnat; policy accept;
//!     ip daddr 127.0.0.0/8 accept
//!     ip6 daddr ::1 accept
//!     ip daddr OWN tcp dport 53 accept
//!     ip6 daddr OWN tcp dport 53 accept
//!     meta nfproto ipv4 meta l4proto tcp dnat ip to OWN:1
//!     meta nfproto ipv6 meta l4proto tcp dnat ip6 to [OWN]:1
//!   }
//!   chain confine {
//!     type filter hook output priority filter; policy drop;
//!     ct state established,related accept
//!     ip daddr 127.0.0.0/8 accept
//!     ip6 daddr ::1 accept
//!     ip daddr OWN tcp dport { 1, 53 } accept        (and for ip6)
//!     meta l4proto udp accept
//!     ip protocol icmp icmp type destination-unreachable accept
//!     ip6 nexthdr icmpv6 icmpv6 type destination-unreachable accept
//!   }
//!   chain refuse {
//!     type filter hook input priority filter; policy accept;
//!     ct state established,related accept
//!     ip daddr 127.0.0.0/8 accept
//!     ip6 daddr ::1 accept
//!     ip daddr OWN udp dport 53 accept               (and for ip6)
//!     meta l4proto udp reject with icmpx port-unreachable
//!   }
//! }
//! ```
//!
//! Datagrams are refused where they come in: a rule that did so where they go out would let
//! sendto(2) fail with EPERM, which nobody takes for a port that is closed.
//!
//! A redirect would lead to 127.0.0.1, which is the sandbox's own; hence dnat. The numbers are
//! those of linux/netfilter/nf_tables.h.

mod rule;

use std::io;
use std::net::Ipv6Addr;

use nix::sys::socket::SockProtocol;

use self::rule::{Family, Rule, Verdict};
use super::netlink::{Bytes, NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, ask};
use super::{OWN_V4, OWN_V6};

const TABLE: &str = "outgate";
const CAPTURE: &str = "capture";
const CONFINE: &str = "confine";
const REFUSE: &str = "refuse";

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = 10;
const NEWTABLE: u16 = SUBSYSTEM << 8;
const NEWCHAIN: u16 = (SUBSYSTEM << 8) | 3;
const NEWRULE: u16 = (SUBSYSTEM << 8) | 6;

const TABLE_NAME: u16 = 1;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;

const FAMILY_INET: u8 = 1;
const INPUT: u32 = 1;
const OUTPUT: u32 = 3;
const DSTNAT: i32 = -100;
const FILTER: i32 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Puts the rules in force.
pub(super) fn install(dns: u16, gateway: u16) -> io::Result<()> {
    let mut messages = vec![
        (NEWTABLE, NLM_F_CREATE, Bytes::of(&inet()).text(TABLE_NAME, TABLE)),
        (NEWCHAIN, NLM_F_CREATE, chain(CAPTURE, ("nat", OUTPUT, DSTNAT), Verdict::Accept)),
        (NEWCHAIN, NLM_F_CREATE, chain(CONFINE, ("filter", OUTPUT, FILTER), Verdict::Drop)),
        (NEWCHAIN, NLM_F_CREATE, chain(REFUSE, ("filter", INPUT, FILTER), Verdict::Accept)),
    ];
    let chains =
        [(CAPTURE, capture(dns, gateway)), (CONFINE, confine(dns, gateway)), (REFUSE, refuse(dns))];
    for (chain, rules) in chains {
        let rules = rules.into_iter().map(|rule| in_chain(chain, rule));
        messages.extend(rules.map(|rule| (NEWRULE, NLM_F_CREATE | NLM_F_APPEND, rule)));
    }
    // An error anywhere undoes all and is told first; the last one's success is everyone's.
    messages.last_mut().expect("there are rules").1 |= NLM_F_ACK;

    let border = Bytes::of(&generic(0, SUBSYSTEM));
    let mut batch = border.message(BATCH_BEGIN, 0, 0);
    for (sequence, (kind, flags, payload)) in (1..).zip(messages) {
        batch.extend(payload.message(kind, flags, sequence));
    }
    batch.extend(border.message(BATCH_END, 0, 0));
    ask(SockProtocol::NetlinkNetFilter, &batch)
}

fn capture(dns: u16, gateway: u16) -> Vec<Bytes> {
    let [dns_v4, dns_v6] = to_own().map(|own| own.protocol(TCP).port(dns));
    let tcp = |family| Rule::of(family).protocol(TCP);
    vec![
        to_loopback_v4().end(Verdict::Accept),
        to_loopback_v6().end(Verdict::Accept),
        dns_v4.end(Verdict::Accept),
        dns_v6.end(Verdict::Accept),
        tcp(Family::V4).send_to(&OWN_V4.octets(), gateway),
        tcp(Family::V6).send_to(&OWN_V6.octets(), gateway),
    ]
}

fn confine(dns: u16, gateway: u16) -> Vec<Bytes> {
    let mut rules = of_the_sandbox();
    for port in [gateway, dns] {
        rules.extend(to_own().map(|own| own.protocol(TCP).port(port).end(Verdict::Accept)));
    }
    // Who sent a datagram that is refused is told by type 3 of RFC 792, or type 1 of RFC 4443.
    rules.extend([
        Rule::default().protocol(UDP).end(Verdict::Accept),
        Rule::of(Family::V4).protocol(ICMP).icmp_type(3).end(Verdict::Accept),
        Rule::of(Family::V6).protocol(ICMPV6).icmp_type(1).end(Verdict::Accept),
    ]);
    rules
}

fn refuse(dns: u16) -> Vec<Bytes> {
    let mut rules = of_the_sandbox();
    rules.extend(to_own().map(|own| own.protocol(UDP).port(dns).end(Verdict::Accept)));
    rules.push(Rule::default().protocol(UDP).reject());
    rules
}

/// What both ways begin with.
fn of_the_sandbox() -> Vec<Bytes> {
    vec![
        Rule::default().of_known_flow().end(Verdict::Accept),
        to_loopback_v4().end(Verdict::Accept),
        to_loopback_v6().end(Verdict::Accept),
    ]
}

fn to_loopback_v4() -> Rule {
    // The first byte is the whole prefix.
    Rule::of(Family::V4).destination(&[127])
}

fn to_loopback_v6() -> Rule {
    Rule::of(Family::V6).destination(&Ipv6Addr::LOCALHOST.octets())
}

fn to_own() -> [Rule; 2] {
    [
        Rule::of(Family::V4).destination(&OWN_V4.octets()),
        Rule::of(Family::V6).destination(&OWN_V6.octets()),
    ]
}

fn chain(name: &str, (kind, hook, priority): (&str, u32, i32), policy: Verdict) -> Bytes {
    let hook = Bytes::default()
        .number(HOOK_NUMBER, hook)
        .attribute(HOOK_PRIORITY, &priority.to_be_bytes());
    Bytes::of(&inet())
        .text(CHAIN_TABLE, TABLE)
        .text(CHAIN_NAME, name)
        .nested(CHAIN_HOOK, hook)
        .number(CHAIN_POLICY, policy as u32)
        .text(CHAIN_TYPE, kind)
}

fn in_chain(chain: &str, expressions: Bytes) -> Bytes {
    Bytes::of(&inet())
        .text(RULE_TABLE, TABLE)
        .text(RULE_CHAIN, chain)
        .nested(RULE_EXPRESSIONS, expressions)
}

fn inet() -> [u8; 4] {
    generic(FAMILY_INET, 0)
}

/// struct nfgenmsg: family, version, resource in network byte order.
fn generic(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}
