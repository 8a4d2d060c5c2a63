//! Which name does a client mean by an address that the gateway's DNS gave out?

use outgate_policy::Host;

use crate::names::{Hold, Meaning};
use crate::snapshot::Environment;

/// The name that `host` stands for, for whatever way in it was named by. A synthetic address that
/// stands for none stays as it is, and is refused by the gate.
pub(crate) fn meant(host: &Host, environment: &Environment) -> Option<(Host, Hold)> {
    let Host::Address(address) = host else { return None };
    match environment.names.name_of(*address) {
        Meaning::Name(name, hold) => Some((name, hold)),
        Meaning::NotSynthetic | Meaning::Unknown => None,
    }
}
