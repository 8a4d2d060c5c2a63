//! Which block of addresses does the operator mean?

use std::net::IpAddr;

use ipnet::{IpNet, Ipv6Net};
use serde::Deserialize;

use super::ConfigError;

/// `10.1.2.0/24`, or one address.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Block(IpNet);

/// An IPv6 prefix behind which IPv4 addresses are.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Nat64Prefix(Ipv6Net);

impl TryFrom<String> for Block {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Block(address.into()));
        }
        let block: IpNet = text.parse().map_err(|_| ConfigError::Block(text))?;
        // `10.1.2.3/8` is a slip whose meaning is not for us to guess.
        if block != block.trunc() {
            return Err(ConfigError::BlockBits { given: block, meant: block.trunc() });
        }
        Ok(Block(block))
    }
}

impl TryFrom<String> for Nat64Prefix {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        match Block::try_from(text.clone())?.0 {
            IpNet::V6(prefix) => Ok(Nat64Prefix(prefix)),
            IpNet::V4(_) => Err(ConfigError::Nat64(text)),
        }
    }
}

impl From<Block> for IpNet {
    fn from(block: Block) -> IpNet {
        block.0
    }
}

impl From<Nat64Prefix> for Ipv6Net {
    fn from(prefix: Nat64Prefix) -> Ipv6Net {
        prefix.0
    }
}
