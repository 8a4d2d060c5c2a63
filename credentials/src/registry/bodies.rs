//! In whose bodies are placeholders looked for, and what takes their place there?

use std::sync::Arc;

use bytes::Bytes;
use outgate_policy::{CredentialId, Denial, EnvironmentId};

use super::trust::{Asking, Place, trusts};
use super::{Credentials, refusal};
use crate::body::Search;
use crate::credential::Kind;
use crate::live::Live;
use crate::placeholder::Tag;
use crate::secret::Secret;
use crate::store::Version;
use crate::substitute::{Misfit, Stand};
use crate::writing::Writing;

/// What takes the place of one placeholder in bodies.
#[derive(Clone)]
pub struct Replacement {
    pub(crate) stand: Stand,
    pub(crate) used: (CredentialId, Version),
}

impl Credentials {
    /// A search of one body of `environment`; `None` if no placeholder of it was ever for bodies:
    /// then they aren't looked at.
    pub fn search_body(&self, environment: &EnvironmentId) -> Option<Search> {
        let table = self.0.table.load();
        if table.bodies.is_empty() {
            return None;
        }
        let all = table.bodies.get(environment)?;
        let prefixes = all.iter().filter_map(|live| match &live.credential.kind {
            Kind::EnvironmentVariable(variable) => Some(variable.prefix.clone()),
            _ => None,
        });
        Some(Search::new(prefixes))
    }

    /// A search of one message, whose sender asked for it.
    pub fn search_message(&self, environment: &EnvironmentId) -> Search {
        self.search_body(environment).unwrap_or_else(|| Search::new([]))
    }

    /// Whether some value may be put into bodies that go there.
    pub fn goes_into_body(&self, asking: &Asking<'_>) -> bool {
        let table = self.0.table.load();
        table.bodies.get(asking.environment).is_some_and(|all| {
            all.iter().any(|live| match &live.credential.kind {
                Kind::EnvironmentVariable(variable) => trusts(variable, asking),
                _ => false,
            })
        })
    }

    /// The values that may be put into bodies that go there: what must not come back in an answer.
    /// Without those that can't be had now: a body with their placeholder is refused.
    pub async fn values_for_body(&self, asking: &Asking<'_>) -> Vec<Secret> {
        let tags: Vec<Tag> = {
            let table = self.0.table.load();
            let all = table.bodies.get(asking.environment).into_iter().flatten();
            let tag = |live: &Arc<Live>| {
                table.tags.get(&(asking.environment.clone(), live.id().clone())).copied()
            };
            all.filter_map(tag).collect()
        };
        let mut values = Vec::with_capacity(tags.len());
        for tag in tags {
            if let Ok((stand, _)) = self.stand(asking, &tag, Place::Body).await {
                values.push(stand.value);
            }
        }
        values
    }

    /// What takes the place of this placeholder in a body, or why nothing must.
    pub async fn replacement(&self, asking: &Asking<'_>, tag: &Tag) -> Result<Replacement, Denial> {
        let (stand, used) = self.stand(asking, tag, Place::Body).await?;
        Ok(Replacement { stand, used })
    }
}

impl Replacement {
    /// Whose value it is.
    pub fn used(&self) -> &(CredentialId, Version) {
        &self.used
    }

    /// Whether it is for this placeholder.
    pub fn is_for(&self, tag: &Tag) -> bool {
        self.stand.tag == *tag
    }

    /// Whether its value is one of these.
    pub fn is_among(&self, values: &[Secret]) -> bool {
        values.iter().any(|value| value.reveal() == self.stand.value.reveal())
    }

    /// Puts the value behind `before`, from whose end the placeholder's prefix goes.
    ///
    /// # Errors
    /// The prefix isn't there, or the value can't be written so.
    pub fn write(&self, before: &Bytes, writing: Writing) -> Result<(Bytes, Bytes), Denial> {
        let misfit = |error: Misfit| refusal::untrusted(&error.to_string());
        let Some(text) = before.strip_suffix(self.stand.prefix.as_bytes()) else {
            return Err(misfit(Misfit::Prefix));
        };
        let value = writing.write(self.stand.value.reveal()).map_err(misfit)?;
        Ok((before.slice(..text.len()), Bytes::copy_from_slice(value.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outgate_policy::Document;

    use super::*;
    use crate::registry::Asker;
    use crate::store::{CredentialStore, LocalStore};

    #[test]
    fn only_bodies_of_who_has_a_placeholder_for_them_are_searched_and_still_when_it_is_void() {
        let store: Arc<dyn CredentialStore> = Arc::new(LocalStore::in_memory().expect("a store"));
        let credentials = Credentials::open(Arc::clone(&store)).expect("opened");
        let environment = |id: &str| EnvironmentId::parse(id).expect("an id");
        let id = |id: &str| CredentialId::parse(id).expect("an id");
        for (name, location) in [("b", "body"), ("h", "header")] {
            let text = format!(
                r#"{{"id": "{name}", "type": "environment_variable", "value": "v",
                     "injection_location": "{location}"}}"#
            );
            let (document, _) = Document::read(&text).expect("JSON");
            credentials.create(&document, Asker::Local).expect("made");
        }
        let searched = |credentials: &Credentials| {
            ["e1", "e2", "e3"].map(|id| credentials.search_body(&environment(id)).is_some())
        };
        assert_eq!(searched(&credentials), [false; 3]);
        credentials.placeholder(&environment("e1"), &id("b")).expect("issued");
        credentials.placeholder(&environment("e2"), &id("h")).expect("issued");
        assert_eq!(searched(&credentials), [true, false, false]);
        credentials.delete(&id("b")).expect("deleted");
        credentials.delete(&id("h")).expect("deleted");
        assert_eq!(searched(&credentials), [true, false, false]);
        let after = Credentials::open(store).expect("opened");
        assert_eq!(searched(&after), [true, false, false]);
        after.forget_environment(&environment("e1")).expect("forgotten");
        assert_eq!(searched(&after), [false; 3]);
    }
}
