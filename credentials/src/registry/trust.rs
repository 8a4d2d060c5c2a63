//! Which values may stand where the placeholders of a request are?

use std::sync::Arc;

use http::header::{HeaderMap, HeaderName};
use http::uri::PathAndQuery;
use outgate_policy::{CredentialId, Denial, Destination, EnvironmentId, Policy};
use smallvec::SmallVec;

use super::refusal::{self, Refused, Why};
use super::{Credentials, Used};
use crate::credential::{Kind, Variable};
use crate::live::{Live, Material};
use crate::placeholder::Tag;
use crate::secret::Secret;
use crate::store::Version;
use crate::substitute::{self, Found, Stand};

/// A request whose placeholders are looked for.
pub struct Asking<'a> {
    /// Whose request it is.
    pub environment: &'a EnvironmentId,
    /// What that environment's allowlist says.
    pub policy: &'a Policy,
    /// Where it goes.
    pub destination: &'a Destination,
}

/// What was put in place of placeholders. Not to be shown: values are in it.
pub struct Substituted {
    /// The headers that changed.
    pub headers: SmallVec<[HeaderName; 2]>,
    /// The target, if its query changed.
    pub target: Option<PathAndQuery>,
    /// Whose values they are.
    pub used: Used,
    /// The values, and whether they are in headers, for [`Sought`](crate::scrub::Sought).
    pub(crate) values: SmallVec<[(Secret, bool); 1]>,
}

impl Credentials {
    /// Puts values in place of the placeholders in a head, or says why that must not be.
    pub async fn substitute(
        &self,
        asking: &Asking<'_>,
        headers: &mut HeaderMap,
        target: &PathAndQuery,
    ) -> Result<Substituted, Denial> {
        let found = Found::look(headers, target);
        if found.in_path {
            return Err(refusal::untrusted("a placeholder is never replaced in a path"));
        }
        let mut used = Used::new();
        let in_headers = self.stands(asking, &found.in_headers, Place::Header, &mut used).await?;
        let in_query = self.stands(asking, &found.in_query, Place::Query, &mut used).await?;
        let misfit = |error: substitute::Misfit| refusal::untrusted(&error.to_string());
        Ok(Substituted {
            headers: substitute::headers(headers, &in_headers).map_err(misfit)?,
            target: substitute::query(target, &in_query).map_err(misfit)?,
            used,
            values: in_headers
                .into_iter()
                .map(|stand| (stand.value, true))
                .chain(in_query.into_iter().map(|stand| (stand.value, false)))
                .collect(),
        })
    }

    async fn stands(
        &self,
        asking: &Asking<'_>,
        tags: &[Tag],
        place: Place,
        used: &mut Used,
    ) -> Result<SmallVec<[Stand; 1]>, Denial> {
        let mut stands = SmallVec::new();
        for tag in tags {
            let (stand, stamp) = self.stand(asking, tag, place).await?;
            if !used.contains(&stamp) {
                used.push(stamp);
            }
            stands.push(stand);
        }
        Ok(stands)
    }

    /// The value behind one placeholder, and whose it is.
    pub(super) async fn stand(
        &self,
        asking: &Asking<'_>,
        tag: &Tag,
        place: Place,
    ) -> Result<(Stand, (CredentialId, Version)), Denial> {
        let live = self.trusted(asking, tag, place)?;
        let Material::Value(value) = self.material(&live).await? else {
            return Err(Refused(live.id(), Why::Missing).denial());
        };
        let prefix = match &live.credential.kind {
            Kind::EnvironmentVariable(variable) => variable.prefix.clone(),
            _ => String::new(),
        };
        Ok((Stand { tag: *tag, prefix, value }, (live.id().clone(), live.version)))
    }

    /// The credential behind a placeholder, if its value may stand there.
    fn trusted(&self, asking: &Asking<'_>, tag: &Tag, place: Place) -> Result<Arc<Live>, Denial> {
        let table = self.0.table.load();
        let live = table.behind(tag, asking.environment).ok_or_else(|| {
            refusal::untrusted(
                "a placeholder is not one of this environment, or its credential is gone",
            )
        })?;
        let Kind::EnvironmentVariable(variable) = &live.credential.kind else {
            return Err(refusal::untrusted("a placeholder's credential is of another kind now"));
        };
        let allowed = match place {
            Place::Header => variable.locations.headers,
            Place::Query => variable.locations.query,
            Place::Body => variable.locations.body,
        };
        if !allowed {
            return Err(refusal::misplaced(live.id(), place));
        }
        if !trusts(variable, asking) {
            return Err(refusal::stranger(live.id(), asking.destination));
        }
        Ok(Arc::clone(live))
    }
}

/// Where a placeholder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Header,
    Query,
    Body,
}

pub(super) fn trusts(variable: &Variable, asking: &Asking<'_>) -> bool {
    match &variable.trusted {
        Some(list) => list.iter().any(|trusted| trusted.covers(asking.destination)),
        None => asking.policy.names(asking.destination),
    }
}
