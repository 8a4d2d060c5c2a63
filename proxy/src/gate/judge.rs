//! May what stands behind a placeholder go where the placeholder stands, in a body or a message?

use std::sync::Arc;

use http::Method;
use outgate_credentials::{Asking, Credentials, Replacement, Secret, Tag, Used};
use outgate_policy::{Denial, Destination, Reason, Scheme};

use super::RequestPermit;
use crate::snapshot::{Environment, Snapshot};

/// What is known of the request that carries them.
pub(crate) struct Judge {
    pub(super) credentials: Credentials,
    pub(super) environment: Arc<Environment>,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) destination: Destination,
    /// Why no value at all may be sent with it.
    pub(super) barred: Option<Denial>,
    /// What is looked for in its answer, where that is.
    pub(super) sought: Option<Vec<Secret>>,
}

impl Judge {
    /// Of the body of what `permit` is for.
    pub(crate) fn of(
        permit: &RequestPermit,
        credentials: &Credentials,
        environment: &Arc<Environment>,
    ) -> Judge {
        let RequestPermit { head, verdict, .. } = permit;
        let destination = head.destination().clone();
        let plaintext = verdict.allow_plaintext_placeholders;
        Judge {
            credentials: credentials.clone(),
            environment: Arc::clone(environment),
            snapshot: Arc::clone(&permit.snapshot),
            barred: barred(&destination, head.method(), head.scheme(), plaintext),
            sought: None,
            destination,
        }
    }

    /// Whether the value of any credential may go there.
    pub(crate) fn trusts_any(&self) -> bool {
        self.credentials.goes_into_body(&self.asking())
    }

    /// The values that may go there. From now on no other does: it would not be looked for in the
    /// answer.
    pub(crate) async fn seek(&mut self) -> &[Secret] {
        let values = self.credentials.values_for_body(&self.asking()).await;
        self.sought.insert(values)
    }

    /// Whether what takes a placeholder's place is still what would.
    pub(crate) fn is_current(&self, replacement: &Replacement) -> bool {
        let used = Used::from_iter([replacement.used().clone()]);
        self.credentials.are_current(&used)
    }

    /// What takes the place of this placeholder, or why nothing must.
    pub(crate) async fn replacement(&self, tag: &Tag) -> Result<Replacement, Denial> {
        let replacement = self.credentials.replacement(&self.asking(), tag).await?;
        if self.sought.as_ref().is_some_and(|sought| !replacement.is_among(sought)) {
            let message =
                "a placeholder's value has changed since the request began: send it again";
            return Err(Denial::new(Reason::PlaceholderNotTrusted, message));
        }
        match &self.barred {
            Some(denial) => Err(denial.clone()),
            None => Ok(replacement),
        }
    }

    /// Where it goes.
    pub(crate) fn destination(&self) -> &Destination {
        &self.destination
    }

    fn asking(&self) -> Asking<'_> {
        Asking {
            environment: self.environment.id(),
            policy: &self.snapshot.policy,
            destination: &self.destination,
        }
    }
}

/// What holds for injected headers holds for a placeholder's value.
pub(super) fn barred(
    to: &Destination,
    method: &Method,
    scheme: Scheme,
    plaintext: bool,
) -> Option<Denial> {
    let host = &to.host;
    if *method == Method::TRACE {
        let message = format!("TRACE to {host} would show the value of a placeholder");
        return Some(Denial::new(Reason::TraceRefused, message));
    }
    if scheme == Scheme::Http && !plaintext {
        let message = format!(
            "a request to {host} carries a placeholder, whose value is sent over TLS only; use \
             https://"
        );
        return Some(Denial::new(Reason::InjectionNeedsTls, message));
    }
    None
}
