//! How is a request told that it gets no value?

use outgate_policy::{CredentialId, Denial, Destination, Reason};

use super::trust::Place;
use crate::live::LiveError;

/// A credential that can't be used, and why.
pub(super) struct Refused<'a>(pub(super) &'a CredentialId, pub(super) Why);

/// Why a credential can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Missing,
    /// It is for variables of the sandbox, and an entry names it.
    Variable,
    Unreadable,
    /// Its token endpoint says that it is no good any more.
    Revoked,
    /// Its token endpoint is down.
    Down,
}

impl From<&LiveError> for Why {
    fn from(error: &LiveError) -> Why {
        match error {
            LiveError::Source(_) | LiveError::Value(_) => Why::Unreadable,
            LiveError::Token(error) if error.passes_by_itself() => Why::Down,
            LiveError::Token(error) if error.is_final() => Why::Revoked,
            LiveError::Token(_) => Why::Unreadable,
        }
    }
}

impl Refused<'_> {
    pub(super) fn denial(&self) -> Denial {
        let Refused(id, why) = self;
        let (reason, what) = match why {
            Why::Missing => (Reason::CredentialUnavailable, "is not stored"),
            Why::Variable => {
                (Reason::CredentialUnavailable, "is for a variable, and no entry can name it")
            }
            Why::Unreadable => (Reason::CredentialUnavailable, "can't be read"),
            Why::Revoked => {
                (Reason::CredentialUnavailable, "is refused by its token endpoint; renew it")
            }
            Why::Down => (
                Reason::CredentialTemporarilyUnavailable,
                "waits for its token endpoint; try again",
            ),
        };
        Denial::new(reason, format!("the credential {id} {what}"))
    }
}

pub(super) fn untrusted(why: &str) -> Denial {
    Denial::new(Reason::PlaceholderNotTrusted, why)
}

pub(super) fn misplaced(id: &CredentialId, place: Place) -> Denial {
    let place = match place {
        Place::Header => "a header",
        Place::Query => "the query",
        Place::Body => "the body",
    };
    untrusted(&format!(
        "the placeholder of {id} stands in {place}; its injection_location is another"
    ))
}

pub(super) fn stranger(id: &CredentialId, to: &Destination) -> Denial {
    untrusted(&format!("{} is not among the trusted_domains of {id}", to.host))
}
