//! Which environments are there, and what is in force for each?
//!
//! A file that can't be used does not keep the gateway from starting: its environment is denied
//! everything, and every problem is logged. Later it changes nothing: the last good one stays in
//! force. One broken file must not take the others down.

mod assign;
mod file;
mod list;
mod made;
mod needed;
mod origins;
mod ownership;
mod problem;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use ipnet::IpNet;
use outgate_certs::{CertsError, OriginRoots};
use outgate_credentials::{Credentials, StoreError};
use outgate_policy::{AddressConfig, AddressRules, EnvironmentId, Policy, Source};
use outgate_proxy::{Environment, Environments, Limits, Profiles, Snapshot};

use self::assign::assign;
use self::file::{File, Held, News};
pub(crate) use self::file::{default_id, read_text};
use self::list::Listed;
pub(crate) use self::made::Made;
pub(crate) use self::needed::Under;
pub(crate) use self::origins::{
    files as origin_files, read as read_origins, refuse_files as refuse_origin_files,
};
pub(crate) use self::ownership::ownership;
pub(crate) use self::problem::Problem;
use crate::config::{EnvironmentSource, Settings};
use crate::failure::Failure;
use crate::reload::MayName;

/// Every environment file, and what came of it.
pub(crate) struct InForce {
    roots: OriginRoots,
    credentials: Credentials,
    may_name: MayName,
    serves_made: bool,
    limits: Limits,
    files: Vec<File>,
    /// Environments without a file any more. One that comes back finds the connections that its
    /// clients kept open.
    retired: Vec<Weak<Environment>>,
    were_several: bool,
}

/// What one reading of all files makes of them.
pub(crate) struct Generation {
    pub(crate) environments: Environments,
    /// To be retired once the others are in force.
    pub(crate) gone: Vec<Arc<Environment>>,
    pub(crate) problems: Vec<Problem>,
}

/// What an environment wants to have in its sandbox.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) environment: Arc<Environment>,
    /// The same value for as long as nothing new was read.
    pub(crate) sources: Arc<[Source]>,
}

/// What is put in force for an environment.
struct Say {
    policy: Arc<Policy>,
    profiles: Arc<Profiles>,
    sources: Arc<[Source]>,
}

type ById = HashMap<EnvironmentId, Arc<Environment>>;

impl InForce {
    /// Loads every environment under the operator's address rules.
    pub(crate) fn load(
        settings: &Settings,
        rules: &AddressRules,
        roots: OriginRoots,
        credentials: Credentials,
        may_name: MayName,
    ) -> Result<(InForce, Generation), Failure> {
        let mut in_force = InForce {
            roots,
            credentials,
            may_name,
            serves_made: settings.made_environments,
            limits: settings.limits.clone(),
            files: Vec::new(),
            retired: Vec::new(),
            were_several: false,
        };
        let loaded = in_force.read(&settings.environments, rules, true);
        if let Some(fatal) = loaded.problems.iter().find(|problem| problem.refuses_start) {
            return Err(Failure::input(fatal));
        }
        if loaded.environments.iter().len() == 0 {
            tracing::warn!("no environment: every request is refused; give --environment FILE");
        }
        Ok((in_force, loaded))
    }

    /// Reads every file. Kept environments have their new policy when this returns. Without
    /// `anew`, what stands in a file as it did is not looked at again; with it, `rules` may be
    /// others than the last time.
    pub(crate) fn read(
        &mut self,
        sources: &[EnvironmentSource],
        rules: &AddressRules,
        anew: bool,
    ) -> Generation {
        let before = std::mem::take(&mut self.files);
        let old: ById = before.iter().filter_map(File::environment).collect();
        let (mut listed, mut problems) = list::list(sources, &before);
        let made = match self.serves_made {
            true => made::all(&**self.credentials.store()),
            false => Ok(Vec::new()),
        };
        match made {
            Ok(made) => listed.extend(made.into_iter().map(Listed::made)),
            Err(error) => {
                problems.push(Problem::of_store(&error));
                listed.extend(
                    before.iter().map(|file| &file.listed).filter(|one| one.is_made()).cloned(),
                );
            }
        }
        let under = Under { rules, credentials: &self.credentials };
        let mut files = file::read_all(listed, before, (&under, &self.may_name), anew);
        assign(&mut files);
        for file in &mut files {
            if let Err(error) = self.hold(file, &old, rules, anew) {
                problems.push(Problem::unusable(&file.listed.path, error.to_string()));
            }
        }
        problems.extend(files.iter().flat_map(File::problems));
        let in_use = files.iter().filter_map(File::environment).count();
        self.were_several |= in_use > 1;
        let mut environments = Environments::new(self.were_several);
        for file in &files {
            if let Some((_, environment)) = file.environment() {
                environments.add(environment, file.clients());
            }
        }
        self.files = files;
        let gone = self.bury(old, &environments);
        Generation { environments, gone, problems }
    }

    /// What each environment wants in its sandbox.
    pub(crate) fn wanted(&self) -> Vec<Wanted> {
        let held = self.files.iter().filter_map(|file| file.held.as_ref());
        held.map(|Held { environment, sources, .. }| Wanted {
            environment: Arc::clone(environment),
            sources: Arc::clone(sources),
        })
        .collect()
    }

    /// What environments name for their origins: certificates and keys, and roots.
    pub(crate) fn named(&self) -> Vec<PathBuf> {
        self.files.iter().flat_map(File::named).cloned().collect()
    }

    /// Every file and folder whose change means something.
    pub(crate) fn paths(&self, sources: &[EnvironmentSource]) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let folders = sources.iter().filter_map(|source| match source {
            EnvironmentSource::Directory(folder) => Some(folder.clone()),
            EnvironmentSource::File { .. } => None,
        });
        (self.files.iter().flat_map(File::paths).cloned().collect(), folders.collect())
    }

    /// Puts in force what `file` says for the environment that it was assigned, if it is news.
    fn hold(
        &self,
        file: &mut File,
        old: &ById,
        rules: &AddressRules,
        anew: bool,
    ) -> Result<(), CertsError> {
        let news = file.news.take();
        let Some(id) = file.assigned.clone() else {
            file.held = None;
            return Ok(());
        };
        let same = file.held.take().filter(|held| held.environment.id() == &id);
        let before = old.get(&id).cloned().or_else(|| self.retired(&id));
        let in_force = before.as_ref().map(|environment| environment.snapshot());
        let (Say { policy, profiles, sources }, good) = match (news, same) {
            (Some(news), _) if file.said.as_ref() == Ok(&id) => {
                (self.say(news, in_force.as_deref())?, true)
            }
            (_, Some(held)) if !anew => {
                file.held = Some(held);
                return Ok(());
            }
            (_, Some(held)) => {
                let Snapshot { policy, profiles, .. } = &*held.environment.snapshot();
                let (policy, profiles) = (Arc::clone(policy), Arc::clone(profiles));
                (Say { policy, profiles, sources: held.sources }, held.good)
            }
            (_, None) => {
                let policy = Arc::new(Policy::deny_all());
                (Say { policy, profiles: Arc::default(), sources: Arc::default() }, false)
            }
        };
        let snapshot = Snapshot { policy, addresses: rules.clone(), profiles };
        let environment = match before {
            Some(environment) => {
                environment.replace(snapshot);
                environment
            }
            None => Arc::new(Environment::new(&id, snapshot, &self.roots, &self.limits)?),
        };
        file.held = Some(Held { environment, sources, good });
        Ok(())
    }

    /// What `news` put in force after `before`.
    fn say(&self, news: News, before: Option<&Snapshot>) -> Result<Say, CertsError> {
        let News { policy, origins, sources } = news;
        let none = Profiles::default();
        let before = before.map_or(&none, |before| &before.profiles);
        let profiles = Arc::new(Profiles::new(&origins, before, &self.roots)?);
        Ok(Say { policy, profiles, sources })
    }

    fn retired(&self, id: &EnvironmentId) -> Option<Arc<Environment>> {
        self.retired.iter().filter_map(Weak::upgrade).find(|environment| environment.id() == id)
    }

    fn bury(&mut self, old: ById, new: &Environments) -> Vec<Arc<Environment>> {
        let is_gone = |environment: &Arc<Environment>| new.get(environment.id()).is_none();
        self.retired.retain(|one| one.upgrade().is_some_and(|one| is_gone(&one)));
        let gone: Vec<_> = old.into_values().filter(is_gone).collect();
        self.retired.extend(gone.iter().map(Arc::downgrade));
        gone
    }
}

/// Where the clients of environments made through the API come from.
pub(crate) fn made_addresses(
    settings: &Settings,
    credentials: &Credentials,
) -> Result<Vec<IpNet>, StoreError> {
    if !settings.made_environments {
        return Ok(Vec::new());
    }
    let made = made::all(&**credentials.store())?;
    Ok(made.into_iter().flat_map(|made| made.source_addresses).collect())
}

/// The operator's address rules; no sandbox reaches another through the gateway.
pub(crate) fn address_rules(
    addresses: &AddressConfig,
    environments: &[EnvironmentSource],
    made: &[IpNet],
) -> Result<AddressRules, Failure> {
    let mut config = addresses.clone();
    config.sandboxes.extend(made);
    for source in environments {
        if let EnvironmentSource::File { known_by, .. } = source {
            config.sandboxes.extend(&known_by.source_addresses);
        }
    }
    AddressRules::new(config)
        .map_err(|problems| Failure::input(problems.to_string().replace('\n', "; ")))
}

#[cfg(test)]
mod tests;
