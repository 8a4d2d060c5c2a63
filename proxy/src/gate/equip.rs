//! What do stored credentials put on a permitted request, and what is taken off it?
//!
//! For requests that need it alone, so that the others pay nothing. In this order: what a client's
//! signature for AWS was for is kept; what the entry strips goes, then the client's own spellings of
//! what will be set, then values take the place of placeholders in what is left. So no placeholder is looked for in a value of ours, and none is
//! refused in a header that is not sent.

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use outgate_credentials::{
    Applied, Asking, Carrier, Credentials, Parameter, Signer, Substituted, Used,
    holds_placeholders, without_parameter,
};
use outgate_policy::{CredentialId, Denial, Named, Strip};
use smallvec::SmallVec;

use super::judge::barred;
use super::sign::Signing;
use super::{RequestPermit, way_back};
use crate::audit::Record;
use crate::exchange::RequestHead;
use crate::exchange::inject::{are_twins, remove_spellings};
use crate::snapshot::Environment;

/// Completes `permit`, and notes in its record what is put on it.
pub(crate) async fn equip(
    mut permit: RequestPermit,
    credentials: &Credentials,
    environment: &Environment,
    record: &mut Record,
) -> Result<RequestPermit, Denial> {
    let named: SmallVec<[CredentialId; 1]> =
        permit.verdict.credentials.iter().map(|named| named.id.clone()).collect();
    record.uses_credentials(&named);
    permit.applied = credentials.apply(&named).await?;
    let parameters = settle(&mut permit)?;

    strip(&mut permit.head, &permit.verdict.strip);
    for (name, _) in &permit.verdict.headers {
        remove_spellings(permit.head.headers_mut(), name);
    }
    for parameter in &parameters {
        let target = parameter.unset(permit.head.target());
        permit.head.set_target(target);
    }
    let mut substituted = None;
    if holds_placeholders(permit.head.headers(), permit.head.target()) {
        substituted = Some(substitute(&mut permit, credentials, environment).await?);
    }
    if permit.verdict.scrub {
        way_back::seek(&mut permit, &parameters, substituted.as_ref())?;
    }
    for parameter in parameters {
        let target = parameter.set(permit.head.target());
        permit.head.set_target(target);
    }

    let ids: SmallVec<[CredentialId; 1]> = permit.used.iter().map(|(id, _)| id.clone()).collect();
    record.uses_credentials(&ids);
    let signed: SmallVec<[HeaderName; 3]> =
        permit.signing.iter().flat_map(|signing| signing.sets()).collect();
    let set = permit.verdict.headers.iter().map(|(name, _)| name);
    let changed = substituted.iter().flat_map(|substituted| &substituted.headers);
    record.permitted(permit.verdict.entry, set.chain(changed).chain(&signed));
    Ok(permit)
}

/// Merges what credentials set with what the entries' own headers are. Returns the query's part.
fn settle(permit: &mut RequestPermit) -> Result<SmallVec<[Parameter; 1]>, Denial> {
    let own = std::mem::take(&mut permit.verdict.headers);
    let Settled { headers, parameters, signer, used } =
        merge(own, &permit.applied, &permit.verdict.credentials);
    permit.verdict.headers = headers;
    permit.used.extend(used);
    if let Some((id, signer)) = signer {
        permit.signing = Some(Box::new(Signing::begin(id, signer, &mut permit.head)?));
    }
    Ok(parameters)
}

/// What is set on a request, each name once.
struct Settled {
    headers: Vec<(HeaderName, HeaderValue)>,
    parameters: SmallVec<[Parameter; 1]>,
    signer: Option<(CredentialId, Signer)>,
    used: Used,
}

/// The more specific entry wins, also over a name that an origin may take for its own.
fn merge(own: Vec<(HeaderName, HeaderValue)>, applied: &[Applied], named: &[Named]) -> Settled {
    let mut set: Vec<(HeaderName, HeaderValue)> = Vec::with_capacity(own.len() + 1);
    let mut parameters: SmallVec<[Parameter; 1]> = SmallVec::new();
    let mut signer: Option<(CredentialId, Signer)> = None;
    let mut used = Used::new();
    for (applied, Named { id, behind }) in applied.iter().zip(named) {
        let is_free = |set: &[(HeaderName, HeaderValue)], signed: bool, name: &HeaderName| {
            let mut stronger = own.iter().take(*behind).chain(set);
            stronger.all(|(other, _)| !are_twins(other, name))
                && !(signed && *name == AUTHORIZATION)
        };
        let is_new = match &applied.carrier {
            Carrier::Header(name, value, _) => {
                let is_new = is_free(&set, signer.is_some(), name);
                if is_new {
                    set.push((name.clone(), value.clone()));
                }
                is_new
            }
            Carrier::Query(parameter) => {
                let is_new = !parameters.iter().any(|known| known.is_named_as(parameter));
                if is_new {
                    parameters.push(parameter.clone());
                }
                is_new
            }
            Carrier::Signature(ours) => {
                let is_new = is_free(&set, signer.is_some(), &AUTHORIZATION);
                if is_new {
                    signer = Some((id.clone(), ours.clone()));
                }
                is_new
            }
        };
        if is_new {
            used.push(applied.used.clone());
        }
    }
    let weaker = |name: &HeaderName| {
        set.iter().any(|(other, _)| are_twins(other, name))
            || (signer.is_some() && *name == AUTHORIZATION)
    };
    let mut headers: Vec<_> = own.into_iter().filter(|(name, _)| !weaker(name)).collect();
    headers.append(&mut set);
    Settled { headers, parameters, signer, used }
}

fn strip(head: &mut RequestHead, strips: &[Strip]) {
    for strip in strips {
        match strip {
            Strip::Header(name) => remove_spellings(head.headers_mut(), name),
            Strip::Query(name) => {
                let target = without_parameter(head.target(), name);
                head.set_target(target);
            }
        }
    }
}

async fn substitute(
    permit: &mut RequestPermit,
    credentials: &Credentials,
    environment: &Environment,
) -> Result<Substituted, Denial> {
    let RequestPermit { head, snapshot, verdict, used, .. } = permit;
    let destination = head.destination().clone();
    let asking = Asking {
        environment: environment.id(),
        policy: &snapshot.policy,
        destination: &destination,
    };
    let target = head.target().clone();
    let mut substituted = credentials.substitute(&asking, head.headers_mut(), &target).await?;
    let plaintext = verdict.allow_plaintext_placeholders;
    if let Some(denial) = barred(&destination, head.method(), head.scheme(), plaintext) {
        return Err(denial);
    }
    if let Some(target) = substituted.target.take() {
        head.set_target(target);
    }
    for one in substituted.used.drain(..) {
        if !used.contains(&one) {
            used.push(one);
        }
    }
    Ok(substituted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_specific_entry_wins_over_every_spelling_of_its_header() {
        let id = CredentialId::parse("weak").expect("an id");
        let ours = |name: &'static str, value: &'static str| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let (name, value) = ours("x-api-key", "credential");
        let applied =
            [Applied { used: (id.clone(), 1), carrier: Carrier::Header(name, value, None) }];
        let own = || vec![ours("x_api_key", "entry")];
        let stronger = merge(own(), &applied, &[Named { id: id.clone(), behind: 1 }]);
        assert_eq!(stronger.headers, own());
        assert!(stronger.used.is_empty());
        let weaker = merge(own(), &applied, &[Named { id, behind: 0 }]);
        assert_eq!(weaker.headers, [ours("x-api-key", "credential")]);
        assert_eq!(weaker.used.len(), 1);
    }
}
