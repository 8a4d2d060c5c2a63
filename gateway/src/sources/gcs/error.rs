//! Why did a `gs://` source not come?

use std::io;

use http::StatusCode;
use outgate_policy::Denial;
use outgate_proxy::ContentError;

use super::listing::ListingError;
use super::object::NameError;
use super::{BYTES, OBJECTS, SILENCE, WHOLE};

/// `what` is the object, or the prefix whose objects are listed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GcsError {
    /// The gateway refused it, or could not ask, as it would a request of the sandbox.
    #[error("{what}: {}: {denial}", denial.reason)]
    Refused { what: String, denial: Denial },
    /// The service did not give it.
    #[error("{what}: the service answered {status}{}", hint(*status))]
    Status { what: String, status: StatusCode },
    /// The answer was too long, or broke off.
    #[error("{what}: {error}")]
    Content { what: String, error: ContentError },
    /// The answer was no list of objects.
    #[error("{what}: the list of objects can't be read: {error}")]
    Listing { what: String, error: ListingError },
    /// The service wants to be asked for what can't be asked for.
    #[error("{what}: the list of objects can't be asked for: {error}")]
    Url { what: String, error: http::Error },
    /// The object's name would be no path below the target.
    #[error("{what}: {error}; leave it out by naming a narrower prefix")]
    Name { what: String, error: NameError },
    /// There is no such object.
    #[error("{0}: no object has this name or lies below it")]
    Nothing(String),
    /// More than is fetched.
    #[error("{0}: more than {OBJECTS} objects or {gib} GiB; name a narrower prefix", gib = BYTES >> 30)]
    TooMuch(String),
    /// The service is silent.
    #[error("{0}: nothing came for {seconds} s", seconds = SILENCE.as_secs())]
    Silent(String),
    /// It takes too long.
    #[error("{0}: not fetched within {minutes} min; name a narrower prefix", minutes = WHOLE.as_secs() / 60)]
    Late(String),
    /// It can't be put where it belongs.
    #[error("{what}: can't be written: {error}")]
    Write { what: String, error: io::Error },
}

/// What to do about it.
fn hint(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            "; give the entry for storage.googleapis.com a credential that may read it"
        }
        StatusCode::NOT_FOUND => "; check the name of the bucket",
        _ => "",
    }
}
