//! What kind of address is this? Public, or one of the kinds that are never dialled unasked.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not dialled.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// 0.0.0.0/8 and `::`: this host, and on Linux another spelling of loopback.
    Unspecified,
    /// 127.0.0.0/8 and `::1`.
    Loopback,
    /// RFC 1918, unique local and site-local.
    Private,
    /// 169.254.0.0/16 and fe80::/10.
    LinkLocal,
    /// 100.64.0.0/10, behind carrier-grade NAT.
    Shared,
    /// One to many.
    Multicast,
    /// 255.255.255.255.
    Broadcast,
    /// Blocks for examples in texts.
    Documentation,
    /// 198.18.0.0/15.
    Benchmarking,
    /// Assigned to protocols, or to nobody.
    Reserved,
    /// A cloud's metadata service, which hands out credentials.
    Metadata,
    /// A sandbox: its own address, or one that the gateway's DNS made up.
    Sandbox,
    /// Shut by the operator.
    Denied,
}

impl AddressClass {
    /// The class of an address by itself, `None` if it is public. IPv4 inside IPv6 counts as that
    /// IPv4.
    pub fn of(address: IpAddr) -> Option<AddressClass> {
        match address {
            IpAddr::V4(address) => of_ipv4(address),
            IpAddr::V6(address) => match embedded_ipv4(address) {
                Some(inner) => of_ipv4(inner),
                None => of_ipv6(address),
            },
        }
    }

    /// Whether a range in `allow` opens it. The others take `dangerously_allow`, or never work.
    pub fn opens_by_range(self) -> bool {
        match self {
            AddressClass::Private
            | AddressClass::LinkLocal
            | AddressClass::Shared
            | AddressClass::Documentation
            | AddressClass::Benchmarking
            | AddressClass::Reserved => true,
            AddressClass::Unspecified
            | AddressClass::Loopback
            | AddressClass::Multicast
            | AddressClass::Broadcast
            | AddressClass::Metadata
            | AddressClass::Sandbox
            | AddressClass::Denied => false,
        }
    }

    /// Whether no TCP connection can be made to it whatever the operator says.
    pub fn never_works(self) -> bool {
        matches!(self, AddressClass::Multicast | AddressClass::Broadcast)
    }

    /// A word or two for the log.
    pub fn as_str(self) -> &'static str {
        match self {
            AddressClass::Unspecified => "unspecified",
            AddressClass::Loopback => "loopback",
            AddressClass::Private => "private",
            AddressClass::LinkLocal => "link-local",
            AddressClass::Shared => "shared (carrier-grade NAT)",
            AddressClass::Multicast => "multicast",
            AddressClass::Broadcast => "broadcast",
            AddressClass::Documentation => "documentation",
            AddressClass::Benchmarking => "benchmarking",
            AddressClass::Reserved => "reserved",
            AddressClass::Metadata => "cloud metadata",
            AddressClass::Sandbox => "a sandbox",
            AddressClass::Denied => "denied by the operator",
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The IPv4 address that an IPv6 one stands for: mapped, compatible, or behind the well-known
/// NAT64 prefix (RFC 4291 §2.5.5, RFC 6052 §2.1). `::` and `::1` stand for themselves.
pub(crate) fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let low = Ipv4Addr::from(address.to_bits() as u32);
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => Some(low),
        _ => None,
    }
}

/// The IANA IPv4 special-purpose address registry, every block whole, with multicast, by first
/// address. Blocks don't overlap, so the last one that begins at or before an address decides.
const IPV4_BLOCKS: [(Ipv4Addr, u8, AddressClass); 19] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, AddressClass::Unspecified),
    (Ipv4Addr::new(10, 0, 0, 0), 8, AddressClass::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, AddressClass::Shared),
    (Ipv4Addr::new(127, 0, 0, 0), 8, AddressClass::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, AddressClass::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, AddressClass::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, AddressClass::Documentation),
    (Ipv4Addr::new(192, 31, 196, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(192, 52, 193, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(192, 88, 99, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(192, 168, 0, 0), 16, AddressClass::Private),
    (Ipv4Addr::new(192, 175, 48, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(198, 18, 0, 0), 15, AddressClass::Benchmarking),
    (Ipv4Addr::new(198, 51, 100, 0), 24, AddressClass::Documentation),
    (Ipv4Addr::new(203, 0, 113, 0), 24, AddressClass::Documentation),
    (Ipv4Addr::new(224, 0, 0, 0), 4, AddressClass::Multicast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, AddressClass::Reserved),
    (Ipv4Addr::BROADCAST, 32, AddressClass::Broadcast),
];

fn of_ipv4(address: Ipv4Addr) -> Option<AddressClass> {
    if is_ipv4_metadata(address) {
        return Some(AddressClass::Metadata);
    }
    let after = IPV4_BLOCKS.partition_point(|(first, ..)| *first <= address);
    let (first, prefix, class) = IPV4_BLOCKS.get(after.checked_sub(1)?)?;
    let differing = first.to_bits() ^ address.to_bits();
    // 64-bit, since a shift by the whole width is an overflow.
    (u64::from(differing) >> (32 - prefix) == 0).then_some(*class)
}

/// AWS (instance, ECS task, EKS pod identity, DNS), Oracle, Alibaba, Azure.
fn is_ipv4_metadata(address: Ipv4Addr) -> bool {
    matches!(
        address.octets(),
        [169, 254, 169, 254]
            | [169, 254, 170, 2]
            | [169, 254, 170, 23]
            | [169, 254, 169, 253]
            | [192, 0, 0, 192]
            | [100, 100, 100, 200]
            | [168, 63, 129, 16]
    )
}

/// AWS (instance, DNS, EKS pod identity), Google.
fn is_ipv6_metadata(address: Ipv6Addr) -> bool {
    matches!(
        address.segments(),
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254 | 0x253 | 0x23] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]
    )
}

/// Only 2000::/3 is in use as global unicast, and not all of it.
fn of_ipv6(address: Ipv6Addr) -> Option<AddressClass> {
    if is_ipv6_metadata(address) {
        return Some(AddressClass::Metadata);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(AddressClass::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(AddressClass::Loopback),
        // 2001::/23 is for protocols (Teredo, ORCHID, benchmarking, …).
        [0x2001, 0..=0x1ff, ..] => Some(AddressClass::Reserved),
        [0x2001, 0xdb8, ..] => Some(AddressClass::Documentation),
        // 6to4 carries any IPv4 address, private ones too.
        [0x2002, ..] => Some(AddressClass::Reserved),
        [0x3fff, 0..=0xfff, ..] => Some(AddressClass::Documentation),
        [0x2000..=0x3fff, ..] => None,
        [0xfc00..=0xfdff, ..] => Some(AddressClass::Private),
        [0xfe80..=0xfebf, ..] => Some(AddressClass::LinkLocal),
        [0xfec0..=0xfeff, ..] => Some(AddressClass::Private),
        [0xff00..=0xffff, ..] => Some(AddressClass::Multicast),
        _ => Some(AddressClass::Reserved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(text: &str) -> Option<AddressClass> {
        AddressClass::of(text.parse().expect("an address"))
    }

    #[test]
    fn keeps_the_block_table_in_order_and_apart() {
        for pair in IPV4_BLOCKS.windows(2) {
            let [(first, prefix, _), (next, ..)] = pair else { panic!("pairs") };
            let last = u64::from(first.to_bits()) + (1u64 << (32 - prefix)) - 1;
            let is_broadcast = *next == Ipv4Addr::BROADCAST;
            assert!(last < u64::from(next.to_bits()) || is_broadcast, "{first} and {next}");
        }
    }

    #[test]
    fn judges_ipv4_inside_ipv6_as_that_ipv4() {
        for text in ["::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "64:ff9b::7f00:1"] {
            assert_eq!(class(text), Some(AddressClass::Loopback), "{text}");
        }
        assert_eq!(class("::ffff:a9fe:a9fe"), Some(AddressClass::Metadata));
        assert_eq!(class("::ffff:11.22.33.44"), None);
        assert_eq!(class("64:ff9b::11.22.33.44"), None);
        assert_eq!(class("64:ff9b:1::11.22.33.44"), Some(AddressClass::Reserved));
    }

    #[test]
    fn refuses_every_metadata_service() {
        for text in [
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "169.254.169.253",
            "192.0.0.192",
            "100.100.100.200",
            "168.63.129.16",
            "fd00:ec2::254",
            "fd00:ec2::253",
            "fd00:ec2::23",
            "fd20:ce::254",
        ] {
            assert_eq!(class(text), Some(AddressClass::Metadata), "{text}");
        }
        assert_eq!(class("168.63.129.15"), None);
        assert_eq!(class("168.63.129.17"), None);
    }

    #[test]
    fn names_the_class_of_each_kind() {
        let table = [
            ("0.0.0.0", "unspecified"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("10.1.2.3", "private"),
            ("fc00::1", "private"),
            ("fec0::1", "private"),
            ("fe80::1", "link-local"),
            ("ff02::1", "multicast"),
            ("255.255.255.255", "broadcast"),
            ("198.18.0.1", "benchmarking"),
            ("2002::1", "reserved"),
            ("192.0.2.1", "documentation"),
            ("4000::1", "reserved"),
            ("100.64.0.1", "shared (carrier-grade NAT)"),
        ];
        for (text, name) in table {
            assert_eq!(class(text).map(AddressClass::as_str), Some(name), "{text}");
        }
    }
}
