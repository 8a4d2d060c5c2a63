//! Is the address in one of these ranges? A sorted list, asked by binary search.

use std::net::IpAddr;

use ipnet::IpNet;

/// Ranges without overlap, by first address. IPv4 is held in its mapped form, so that one list
/// serves both families and a mapped address is in the set when its IPv4 is.
#[derive(Clone, Debug, Default)]
pub(super) struct AddressSet {
    ranges: Vec<(u128, u128)>,
}

impl AddressSet {
    pub(super) fn new(nets: impl IntoIterator<Item = IpNet>) -> AddressSet {
        let mut ranges: Vec<_> =
            nets.into_iter().map(|net| (bits(net.network()), bits(net.broadcast()))).collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, end)) if first <= *end => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        AddressSet { ranges: merged }
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let address = bits(address);
        let after = self.ranges.partition_point(|(first, _)| *first <= address);
        after > 0 && self.ranges[after - 1].1 >= address
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_addresses_in_nested_and_touching_ranges() {
        let nets = ["10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/32", "fd00::/8", "0.0.0.0/32"];
        let set = AddressSet::new(nets.map(|net| net.parse().expect("a range")));
        let has = |text: &str| set.contains(text.parse().expect("an address"));
        for inside in
            ["10.0.0.0", "10.255.255.255", "11.0.0.0", "fdff::1", "0.0.0.0", "::ffff:10.2.3.4"]
        {
            assert!(has(inside), "{inside}");
        }
        for outside in ["9.255.255.255", "11.0.0.1", "fe00::", "fcff::1", "0.0.0.1", "::"] {
            assert!(!has(outside), "{outside}");
        }
        assert!(!AddressSet::default().contains(IpAddr::from([1, 2, 3, 4])));
    }
}
