//! How did traffic come in, and what does it say about where it goes?
//!
//! `identity` tells whose it is, by what `interface` knows too; `explicit` answers the requests on a
//! forward proxy's port, `socks5` those of SOCKS; `transparent` finds out where a connection goes whose client knows of no
//! proxy, from its `original_destination` on; `meaning` tells which name an address of the gateway's
//! own DNS stands for; `detect` tells what a tunnel speaks, `client_hello` which host its TLS names;
//! `prefixed` puts back what was read to find out.

pub(crate) mod client_hello;
pub(crate) mod detect;
pub(crate) mod explicit;
pub(crate) mod identity;
pub(crate) mod interface;
pub(crate) mod meaning;
mod original_destination;
pub(crate) mod prefixed;
pub(crate) mod socks5;
pub(crate) mod transparent;

/// How clients of a listener speak to the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingress {
    /// They know that it is a forward proxy: CONNECT and absolute-form requests.
    Explicit,
    /// They know that it is a SOCKS5 proxy.
    Socks,
    /// They know of no proxy: the network leads their connections here.
    Transparent,
}

impl Ingress {
    /// How audit lines call it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Ingress::Explicit => "explicit",
            Ingress::Socks => "socks",
            Ingress::Transparent => "transparent",
        }
    }
}
