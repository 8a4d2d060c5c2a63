//! How is a permitted request signed anew for AWS?
//!
//! In two steps. What the client's own signature says is read while it is still there; the new one
//! is made when nothing of the request changes any more.

use http::HeaderName;
use outgate_credentials::{Claim, Payload, Secret, Signer, Subject, Unsignable};
use outgate_policy::{CredentialId, Denial, Destination, Reason};

use super::RequestPermit;
use crate::exchange::RequestHead;
use crate::exchange::inject::{inject, remove_spellings};

/// What a request will be signed with, and for which region and service.
pub(super) struct Signing {
    id: CredentialId,
    signer: Signer,
    claim: Claim,
}

impl Signing {
    /// Takes the client's signature off a request, and keeps what it was for.
    pub(super) fn begin(
        id: CredentialId,
        signer: Signer,
        head: &mut RequestHead,
    ) -> Result<Signing, Denial> {
        let claim = Claim::read(head.headers(), head.target())
            .map_err(|error| unsignable(head.destination(), error))?;
        for name in Signer::CARRIERS {
            remove_spellings(head.headers_mut(), &name);
        }
        Ok(Signing { id, signer, claim })
    }

    /// What of the key is sent as it is, and in which header.
    pub(super) fn token(&self) -> Option<(HeaderName, &Secret)> {
        self.signer.token()
    }

    /// The headers that the signature will bring.
    pub(super) fn sets(&self) -> impl Iterator<Item = HeaderName> {
        self.signer.sets()
    }
}

impl RequestPermit {
    /// Whether it must not be sent before [`RequestPermit::sign`].
    pub(crate) fn is_to_be_signed(&self) -> bool {
        self.signing.is_some()
    }

    /// What the request itself says of its body, with the entries' headers on it; `None` where its
    /// body has to be hashed.
    pub(crate) fn stated_payload(&mut self) -> Result<Option<Payload>, Denial> {
        let head = &mut self.head;
        inject(head.headers_mut(), self.verdict.headers.clone());
        Payload::stated(head.headers()).map_err(|error| unsignable(head.destination(), error))
    }

    /// Signs it as it is now.
    pub(crate) fn sign(&mut self, payload: &Payload) -> Result<(), Denial> {
        let Some(Signing { id, signer, claim }) = self.signing.take().map(|boxed| *boxed) else {
            return Ok(());
        };
        let RequestPermit { head, verdict, .. } = self;
        // They stay what is injected: no trailer may say them again.
        inject(head.headers_mut(), verdict.headers.clone());
        let (method, host) = (head.method().clone(), head.authority().clone());
        let target = head.target().clone();
        let subject = Subject { method: &method, host: &host, target: &target, payload };
        let set = signer.sign(&claim, &subject, head.headers_mut()).ok_or_else(|| {
            let message = format!("the credential {id} can't be used for a signature");
            Denial::new(Reason::CredentialUnavailable, message)
        })?;
        // As these are.
        let value =
            |name: HeaderName| head.headers().get(&name).cloned().map(|value| (name, value));
        verdict.headers.extend(set.into_iter().filter_map(value));
        Ok(())
    }
}

fn unsignable(destination: &Destination, error: Unsignable) -> Denial {
    let message = format!("the request to {} {error}", destination.host);
    Denial::new(Reason::MalformedRequest, message)
}
