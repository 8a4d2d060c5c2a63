//! May this resolved address be dialled? Asked of the very address that is then dialled.
//!
//! By itself nothing but the public internet may be ([`AddressClass::of`]). The operator opens
//! more with `allow`, one address and port at a time with `dangerously_allow`, and shuts anything
//! with `deny`, which is stronger than both. No allowlist entry makes an exception.

mod class;
mod rules;
mod set;

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use crate::host::Host;

pub use class::AddressClass;
pub(crate) use class::embedded_ipv4;
pub use rules::{AddressConfig, AddressRefusal, AddressRules};

/// Addresses that the gateway's DNS hands out in place of real ones; never real ones.
pub const SYNTHETIC_IPV4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15);
/// The same for IPv6: a unique local prefix (RFC 4193 §3.1) whose bytes are `\xfdoutgate`.
pub const SYNTHETIC_IPV6: Ipv6Net =
    Ipv6Net::new_assert(Ipv6Addr::new(0xfd6f, 0x7574, 0x6761, 0x7465, 0, 0, 0, 0), 64);

/// Names that mean this machine wherever they are looked up; they never are.
pub fn is_local_name(host: &Host) -> bool {
    let Host::Name(name) = host else { return false };
    let name = name.as_str();
    matches!(name, "localhost" | "ip6-localhost" | "localhost.localdomain")
        || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_names_of_this_machine() {
        let is_local =
            |text: &str| is_local_name(&Host::from_wire(text.as_bytes()).expect("a host"));
        for name in [
            "localhost",
            "LOCALHOST.",
            "x.localhost",
            "a.b.localhost",
            "ip6-localhost",
            "localhost.localdomain",
        ] {
            assert!(is_local(name), "{name}");
        }
        for name in
            ["localhost.example.com", "notlocalhost", "a.localhost.localdomain.test", "127.0.0.1"]
        {
            assert!(!is_local(name), "{name}");
        }
    }
}
