//! Which entries match a host? Look-up by label suffix, at the same cost for 10 and 100,000.

use std::collections::HashMap;
use std::net::IpAddr;

use smallvec::SmallVec;

use crate::address::AddressClass;
use crate::host::{Host, Name};
use crate::pattern::{HostPattern, reached};

/// Indices of the entries with one and the same pattern, in the order of the file.
type Group = SmallVec<[u32; 2]>;

/// The entries by their patterns.
#[derive(Debug, Default)]
pub(super) struct Index {
    names: HashMap<Name, AtName>,
    addresses: HashMap<IpAddr, Group>,
    any: Group,
    /// Labels of the deepest `*.name`: above it no suffix is looked up, so that a name of a
    /// hundred labels costs no more than the policy's own depth.
    deepest: usize,
}

#[derive(Debug, Default)]
struct AtName {
    exact: Group,
    subdomains: Group,
}

/// The groups that match one host, most specific first.
pub(super) struct Groups<'p>(SmallVec<[&'p [u32]; 4]>);

impl Index {
    pub(super) fn new<'e>(patterns: impl ExactSizeIterator<Item = &'e HostPattern>) -> Index {
        let mut index = Index { names: HashMap::with_capacity(patterns.len()), ..Index::default() };
        for (entry, pattern) in (0u32..).zip(patterns) {
            index.group_mut(pattern).push(entry);
        }
        index
    }

    pub(super) fn groups(&self, host: &Host) -> Groups<'_> {
        let mut groups = Groups(SmallVec::new());
        match host {
            Host::Name(name) => {
                let labels = name.labels();
                if let Some(at) = self.names.get(name.as_str()) {
                    groups.push(&at.exact);
                }
                let too_deep = (labels - 1).saturating_sub(self.deepest);
                for parent in name.parents().skip(too_deep) {
                    if let Some(at) = self.names.get(parent) {
                        groups.push(&at.subdomains);
                    }
                }
                if labels >= 2 {
                    groups.push(&self.any);
                }
            }
            Host::Address(address) => {
                if let Some(group) = self.addresses.get(&reached(*address)) {
                    groups.push(group);
                }
                if AddressClass::of(*address).is_none() {
                    groups.push(&self.any);
                }
            }
        }
        groups
    }

    pub(super) fn has_any(&self) -> bool {
        !self.any.is_empty()
    }

    fn group_mut(&mut self, pattern: &HostPattern) -> &mut Group {
        match pattern {
            HostPattern::Exact(name) => &mut self.names.entry(name.clone()).or_default().exact,
            HostPattern::Subdomains(name) => {
                self.deepest = self.deepest.max(name.labels());
                &mut self.names.entry(name.clone()).or_default().subdomains
            }
            HostPattern::Address(address) => self.addresses.entry(*address).or_default(),
            HostPattern::Any => &mut self.any,
        }
    }
}

impl<'p> Groups<'p> {
    fn push(&mut self, group: &'p Group) {
        if !group.is_empty() {
            self.0.push(group);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The group that alone decides.
    pub(super) fn deciding(&self) -> &'p [u32] {
        self.0.first().copied().unwrap_or_default()
    }

    pub(super) fn most_specific_first(&self) -> impl Iterator<Item = &'p [u32]> {
        self.0.iter().copied()
    }
}
