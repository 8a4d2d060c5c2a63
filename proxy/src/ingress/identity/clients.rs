//! How are an environment's clients known?

use std::ffi::CString;
use std::net::IpAddr;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use ipnet::IpNet;

use super::Unidentified;
use crate::ingress::interface::Interface;
use crate::snapshot::Environment;

/// What the operator says of an environment's clients. Where both addresses and an interface are
/// given, both must hold.
#[derive(Clone, Default)]
pub struct Clients {
    /// Where they come from.
    pub source_addresses: Vec<IpNet>,
    /// The interface of the gateway's own that they come in by.
    pub interface: Option<CString>,
    /// What they say in `Proxy-Authorization`.
    pub token: Option<Token>,
}

/// A shared secret that proves a client's environment. Compared in constant time, never shown.
#[derive(Clone)]
pub struct Token(Option<Arc<[u8]>>);

/// The ways that lead from a connection to an environment, the narrowest block first.
#[derive(Default)]
pub(super) struct Ways(Vec<Way>);

struct Way {
    /// Any address, where there is none.
    block: Option<IpNet>,
    interface: Option<CString>,
    environment: Arc<Environment>,
}

impl Clients {
    pub(super) fn are_provable(&self) -> bool {
        self.token.is_some() || self.are_seen()
    }

    /// Whether they are known without a word of theirs.
    pub(super) fn are_seen(&self) -> bool {
        self.interface.is_some() || !self.source_addresses.is_empty()
    }
}

impl Token {
    /// A token as it stands in its file; blanks around it don't count.
    pub fn new(text: &str) -> Option<Token> {
        let text = text.trim();
        (!text.is_empty()).then(|| Token(Some(text.as_bytes().into())))
    }

    /// A token that there should be, but that could not be read: nobody has it.
    pub fn unread() -> Token {
        Token(None)
    }

    pub(super) fn matches(&self, claim: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|token| verify_slices_are_equal(token, claim).is_ok())
    }
}

impl Ways {
    pub(super) fn add(&mut self, clients: &Clients, environment: &Arc<Environment>) {
        let way = |block| Way {
            block,
            interface: clients.interface.clone(),
            environment: Arc::clone(environment),
        };
        match clients.source_addresses.as_slice() {
            [] if clients.interface.is_some() => self.0.push(way(None)),
            blocks => self.0.extend(blocks.iter().map(|block| way(Some(*block)))),
        }
        self.0.sort_by_key(|way| std::cmp::Reverse(way.block.map(|block| block.prefix_len())));
    }

    /// Whose clients come from an address of `block` too.
    pub(super) fn overlapping(&self, block: &IpNet) -> Option<&Arc<Environment>> {
        let overlaps = |other: &IpNet| other.contains(block) || block.contains(other);
        let found = self.0.iter().find(|way| way.block.as_ref().is_some_and(overlaps));
        found.map(|way| &way.environment)
    }

    /// Where a connection of `client` belongs. Who comes in by an interface that some environment
    /// names belongs to one that names it, or to nobody: an address can be made up, the interface
    /// can't.
    pub(super) fn lead(
        &self,
        client: IpAddr,
        interface: Option<Interface>,
    ) -> Result<Option<&Arc<Environment>>, Unidentified> {
        let came_by = match interface {
            // Nobody asks for its name where no environment is known by one.
            Some(interface) if self.0.iter().any(|way| way.interface.is_some()) => {
                Some(interface.name().ok_or(Unidentified)?)
            }
            Some(_) | None => None,
        };
        let claimed =
            came_by.filter(|name| self.0.iter().any(|way| way.interface.as_ref() == Some(name)));
        let leads = |way: &&Way| {
            way.interface == claimed && way.block.is_none_or(|block| block.contains(&client))
        };
        match (self.0.iter().find(leads), claimed.is_some()) {
            // A file of later and an environment of the API may say the same: then neither proves it.
            (Some(way), _) if self.0.iter().any(|other| way.contradicts(other)) => {
                Err(Unidentified)
            }
            (Some(way), _) => Ok(Some(&way.environment)),
            (None, true) => Err(Unidentified),
            (None, false) => Ok(None),
        }
    }
}

impl Way {
    /// Whether the same connections lead to another environment by it.
    fn contradicts(&self, other: &Way) -> bool {
        self.block == other.block
            && self.interface == other.interface
            && !Arc::ptr_eq(&self.environment, &other.environment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_without_content_is_no_token() {
        assert!(Token::new(" \n").is_none());
        let token = Token::new(" secret\n").expect("a token");
        assert!(token.matches(b"secret"));
        assert!(!token.matches(b"secret2"));
    }

    #[test]
    fn nobody_has_a_token_that_could_not_be_read() {
        assert!(!Token::unread().matches(b""));
    }
}
