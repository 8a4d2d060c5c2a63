//! What is sent for an access token where there is a refresh token (RFC 6749 §6)?

use std::sync::Arc;

use zeroize::Zeroizing;

use super::turn::{Unsaved, in_force, save};
use super::{Granted, Means, TokenError, ask};
use crate::credential::{OAuth2, TokenUrl};
use crate::query::escape;
use crate::secret::{Fit, Secret};
use crate::source::{Files, Held};

/// A client that has a refresh token. Which one is known at the time of the call.
#[derive(Debug)]
pub(crate) struct RefreshGrant {
    client_id: String,
    client_secret: Held,
    pub(super) token_url: TokenUrl,
    scopes: String,
}

impl RefreshGrant {
    pub(crate) fn new(settings: &OAuth2, files: &Arc<Files>) -> RefreshGrant {
        RefreshGrant {
            client_id: settings.client_id.clone(),
            client_secret: Held::new(&settings.client_secret, Fit::Text, files),
            token_url: settings.token_url.clone(),
            scopes: settings.scopes.join(" "),
        }
    }

    /// One call, and what it brought made durable.
    pub(super) async fn call(&self, means: &Means) -> Result<Granted, TokenError> {
        let turn = means.rotation.turn();
        let mut unsaved = turn.lock().await;
        save(&means.rotation, &mut unsaved).await?;
        let used = in_force(&means.rotation).await?;
        let secret = self.client_secret.value().await;
        let secret = secret.map_err(|error| TokenError::NoSecret(error.to_string()))?;
        let granted = ask(means, &self.token_url, self.form(&secret, &used)).await?;
        let new = granted.refresh_token.clone();
        if let Some(new) = new.filter(|new| !new.is(used.reveal().as_bytes())) {
            *unsaved = Some(Unsaved { used, new });
            save(&means.rotation, &mut unsaved).await?;
        }
        Ok(granted)
    }

    /// The client's secret is in the form (§2.3.1).
    fn form(&self, secret: &Secret, refresh_token: &Secret) -> Zeroizing<String> {
        let mut form = Zeroizing::new(String::with_capacity(4096));
        form.push_str("grant_type=refresh_token");
        for (name, value) in [
            ("client_id", self.client_id.as_str()),
            ("client_secret", secret.reveal()),
            ("refresh_token", refresh_token.reveal()),
            ("scope", &self.scopes),
        ] {
            if !value.is_empty() {
                let value = Zeroizing::new(escape(value));
                form.extend(["&", name, "=", &value]);
            }
        }
        form
    }
}
