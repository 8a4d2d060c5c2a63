//! What must a sandbox trust?

use crate::{Authority, OriginRoots, pem};

/// The CA first, then every root that we trust ourselves, as one PEM text.
///
/// Clients that are pointed at a file of roots believe that file alone. With only the CA in it,
/// an origin whose TLS is passed through untouched would be refused.
pub fn bundle(authority: &Authority, roots: &OriginRoots) -> String {
    let mut text = authority.certificate_pem().to_owned();
    text.push_str(&pem::encode(roots.certificates()));
    text
}
