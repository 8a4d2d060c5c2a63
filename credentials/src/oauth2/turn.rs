//! Whose turn is it to call for a credential, and with which refresh token?
//!
//! The store says which one counts, at the time of the call: another process may have got a new one,
//! and a change by the owner makes another minter. Within a process one call at a time is made for a
//! credential, whichever minter makes it.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::TokenError;
use crate::secret::Secret;

/// Held over a call. What is in it is made durable before the next one.
pub(crate) type Turn = Arc<Mutex<Option<Unsaved>>>;

/// A refresh token that an endpoint gave in place of `used`, and that is in memory alone.
#[derive(Clone, Debug)]
pub(crate) struct Unsaved {
    pub(super) used: Secret,
    pub(super) new: Secret,
}

/// Where the refresh tokens of one credential are kept.
pub(crate) trait Rotation: Send + Sync {
    /// The same one for every minter of the credential.
    fn turn(&self) -> Turn;

    /// The refresh token that counts now.
    fn in_force(&self) -> Result<Secret, String>;

    /// Makes a rotated refresh token durable. `used` is the one that it takes the place of.
    fn rotated(&self, used: &Secret, new: &Secret) -> Result<(), String>;
}

/// The refresh token for a call. The disk may take its time.
pub(super) async fn in_force(rotation: &Arc<dyn Rotation>) -> Result<Secret, TokenError> {
    let rotation = Arc::clone(rotation);
    tokio::task::spawn_blocking(move || rotation.in_force())
        .await
        .map_err(|error| TokenError::NoRefreshToken(error.to_string()))?
        .map_err(TokenError::NoRefreshToken)
}

/// Makes durable what is in memory alone; if that fails, it stays there: the endpoint takes the one
/// before it no more.
pub(super) async fn save(
    rotation: &Arc<dyn Rotation>,
    unsaved: &mut Option<Unsaved>,
) -> Result<(), TokenError> {
    let Some(Unsaved { used, new }) = unsaved.clone() else { return Ok(()) };
    let rotation = Arc::clone(rotation);
    tokio::task::spawn_blocking(move || rotation.rotated(&used, &new))
        .await
        .map_err(|error| TokenError::NotDurable(error.to_string()))?
        .map_err(TokenError::NotDurable)?;
    *unsaved = None;
    Ok(())
}
