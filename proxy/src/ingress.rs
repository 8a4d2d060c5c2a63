//! How did traffic come in, and what does it say about where it goes?
//!
//! `identity` tells whose it is, by what `interface` knows too; `explicit` answers the requests on a forward proxy's port;
//! `detect` tells what a tunnel speaks; `prefixed` puts back what was read to find out.

pub(crate) mod detect;
pub(crate) mod explicit;
pub(crate) mod identity;
pub(crate) mod interface;
pub(crate) mod prefixed;
