//! Are the stored credentials there that a request needs?

use outgate_credentials::Credentials;
use outgate_policy::Denial;

use super::Allowed;
use crate::config::Settings;
use crate::store;

/// What is known of the credentials that an allowed request needs.
pub(super) enum Stored {
    /// They are there, or there are none.
    Known,
    /// Nobody could look, and why.
    Unknown(String),
}

/// Looks into the store of the state folder that `run` and `serve` would use, if it has one.
/// Nothing is made there.
pub(super) fn look_up(allowed: Allowed, settings: &Settings) -> Result<Allowed, Denial> {
    let ids = allowed.credentials();
    let Allowed::Request(verdict, _) = allowed else { return Ok(allowed) };
    if ids.is_empty() {
        return Ok(Allowed::Request(verdict, Stored::Known));
    }
    let unknown = |why| Ok(Allowed::Request(verdict.clone(), Stored::Unknown(why)));
    let credentials = match store::open_if_there(&settings.state_dir, &settings.store_key) {
        Ok(Some(credentials)) => credentials,
        Ok(None) => {
            let folder = settings.state_dir.display();
            return unknown(format!("{folder} has no store; --state-dir names another folder"));
        }
        Err(failure) => return unknown(failure.message().unwrap_or_default().to_owned()),
    };
    credentials.foresee(&ids)?;
    // This process may see other files and variables than the one that will serve.
    match credentials.unreadable().into_iter().find(|one| ids.contains(&one.id)) {
        Some(one) => unknown(format!("the value of {}, seen from here: {}", one.id, one.why)),
        None => Ok(Allowed::Request(verdict, Stored::Known)),
    }
}

/// The same by the process that serves.
pub(super) fn look_up_served(
    allowed: Allowed,
    credentials: &Credentials,
) -> Result<Allowed, Denial> {
    credentials.foresee_values(&allowed.credentials()).map(|()| allowed)
}
