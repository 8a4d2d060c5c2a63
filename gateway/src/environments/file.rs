//! What does one environment file say, and what is in force because of it?

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{Digest, SHA256, digest};
use outgate_certs::OriginProfile;
use outgate_files::ReadError;
use outgate_policy::{Environment as Compiled, EnvironmentId, Policy, Problems, Source};
use outgate_proxy::{Clients, Environment, Token};
use serde_json::Value;
use zeroize::Zeroizing;

use super::Problem;
use super::list::Listed;
use super::needed::Under;
use super::origins;
use super::problem::{LAST, NOTHING, WITHOUT_EFFECT};
use crate::failure::Failure;
use crate::reload::MayName;

/// An allowlist of 100,000 entries, and sources that stand in the file, are a fraction of this.
const LONGEST: usize = 64 << 20;
/// A token is a line.
const LONGEST_TOKEN: usize = 64 << 10;

/// One environment file.
pub(super) struct File {
    pub(super) listed: Listed,
    /// Of the text that was read last: the text itself has secrets.
    fingerprint: Option<Digest>,
    /// What it names for its origins, and how that was when it was read last.
    named: Vec<PathBuf>,
    named_fingerprint: Option<Digest>,
    /// The id that a good text gives; of another, the id that it seems to be about.
    pub(super) said: Result<EnvironmentId, Option<EnvironmentId>>,
    /// What a good text says, if it is news.
    pub(super) news: Option<News>,
    /// Whose file it is.
    pub(super) assigned: Option<EnvironmentId>,
    /// Its environment as it is served.
    pub(super) held: Option<Held>,
    token: Option<Token>,
    /// What is wrong with the text.
    fault: Option<Problem>,
    /// What else is wrong, looked at each time.
    pub(super) others: Vec<Problem>,
}

/// An environment in force.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) environment: Arc<Environment>,
    /// What is brought into its sandbox.
    pub(super) sources: Arc<[Source]>,
    /// A good text was its policy once; otherwise it is denied everything.
    pub(super) good: bool,
}

/// What a good text says.
pub(super) struct News {
    pub(super) policy: Arc<Policy>,
    /// How the origins of some entries are met.
    pub(super) origins: Vec<(usize, OriginProfile)>,
    pub(super) sources: Arc<[Source]>,
}

/// What a text is judged by, and which files it may name.
type Judging<'a> = (&'a Under<'a>, &'a MayName);

/// Reads all of `listed`; what each held `before` is still in force.
pub(super) fn read_all(
    listed: Vec<Listed>,
    before: Vec<File>,
    under: Judging<'_>,
    anew: bool,
) -> Vec<File> {
    let mut known: HashMap<PathBuf, File> =
        before.into_iter().map(|file| (file.listed.path.clone(), file)).collect();
    let read = |listed: Listed| {
        let before = known.remove(&listed.path);
        File::read(listed, before, under, anew)
    };
    listed.into_iter().map(read).collect()
}

impl File {
    fn read(listed: Listed, before: Option<File>, under: Judging<'_>, anew: bool) -> File {
        let (held, old_token) = match &before {
            Some(before) => (before.held.clone(), before.token.clone()),
            None => (None, None),
        };
        // What a text names that is in force still counts, whatever a new one says.
        let (named, named_fingerprint) = match &before {
            Some(before) => (before.named.clone(), before.named_fingerprint),
            None => (Vec::new(), None),
        };
        let mut file = File {
            listed,
            fingerprint: None,
            named,
            named_fingerprint,
            said: Err(None),
            news: None,
            assigned: None,
            held,
            token: None,
            fault: None,
            others: Vec::new(),
        };
        file.read_token(old_token);
        match file.listed.read() {
            Ok(text) => {
                file.fingerprint = Some(digest(&SHA256, text.as_bytes()));
                match before.filter(|before| !anew && before.is_settled(&file)) {
                    Some(before) => (file.said, file.fault) = (before.said, before.fault),
                    None => file.compile(&text, under),
                }
            }
            Err(error) => {
                file.fault = Some(Problem::unusable(&file.listed.path, error.to_string()));
            }
        }
        file
    }

    /// Whether the same text again changes nothing: it was bad, or is in force.
    fn is_settled(&self, now: &File) -> bool {
        let in_force = match (&self.said, &self.held) {
            (Ok(id), Some(held)) => held.good && held.environment.id() == id,
            (Ok(_), None) => false,
            (Err(_), _) => true,
        };
        let of = |file: &File| file.fingerprint.as_ref().map(|digest| digest.as_ref().to_vec());
        let named = origins::fingerprint(&self.named);
        let of_named = |digest: &Option<Digest>| digest.as_ref().map(|one| one.as_ref().to_vec());
        in_force && of(self) == of(now) && of_named(&self.named_fingerprint) == of_named(&named)
    }

    fn compile(&mut self, text: &str, (under, may_name): Judging<'_>) {
        let path = self.listed.path.clone();
        let compiled = under.compile(text, &default_id(&path));
        match compiled.and_then(|environment| self.read_origins(environment, may_name)) {
            Ok((environment, origins)) => {
                for warning in &environment.warnings {
                    tracing::warn!(file = %path.display(), "{warning}");
                }
                self.said = Ok(environment.id);
                let (policy, sources) = (Arc::new(environment.policy), environment.sources.into());
                self.news = Some(News { policy, origins, sources });
            }
            Err(Problems { problems, .. }) => {
                let about = seems_about(text, &path);
                let details = problems.iter().map(ToString::to_string).collect();
                let fault = Problem::of_text(&path, details);
                // Nobody can be denied anything if nobody knows whose file it is.
                self.fault = Some(Problem { refuses_start: about.is_none(), ..fault });
                self.said = Err(about);
            }
        }
    }

    /// Reads what `environment` names for its origins.
    fn read_origins(
        &mut self,
        environment: Compiled,
        may_name: &MayName,
    ) -> Result<(Compiled, Vec<(usize, OriginProfile)>), Problems> {
        let (policy, path) = (&environment.policy, &self.listed.path);
        let refused = match self.listed.is_made() {
            true => origins::refuse_files(policy),
            false => origins::refuse_unhidden(policy, path, may_name),
        };
        let read = match refused.is_empty() {
            true => {
                // Looked at before it is read: what changes in between is read once more.
                self.named = origins::files(policy, path);
                self.named_fingerprint = origins::fingerprint(&self.named);
                origins::read(policy, path)
            }
            false => Err(refused),
        };
        match read {
            Ok(origins) => Ok((environment, origins)),
            Err(problems) => Err(Problems { problems, warnings: environment.warnings }),
        }
    }

    /// A token that can't be read leaves the last one in force, or one that nobody has.
    fn read_token(&mut self, old: Option<Token>) {
        if let Some(made) = &self.listed.made {
            self.token = Token::new(&made.proxy_token);
            return;
        }
        let Some(path) = &self.listed.known_by.token_file else { return };
        self.token = Some(match read_token(path) {
            Ok(token) => token,
            Err(problem) => {
                self.others.push(problem);
                old.unwrap_or_else(Token::unread)
            }
        });
    }

    /// Its environment by its id.
    pub(super) fn environment(&self) -> Option<(EnvironmentId, Arc<Environment>)> {
        let environment = Arc::clone(&self.held.as_ref()?.environment);
        Some((environment.id().clone(), environment))
    }

    pub(super) fn clients(&self) -> Clients {
        let known_by = &self.listed.known_by;
        Clients {
            source_addresses: known_by.source_addresses.clone(),
            interface: known_by.interface.clone(),
            token: self.token.clone(),
        }
    }

    /// Everything that is wrong with it, and what is in force instead.
    pub(super) fn problems(&self) -> impl Iterator<Item = Problem> {
        let instead = match &self.held {
            Some(held) if held.good => LAST,
            Some(_) => NOTHING,
            None => WITHOUT_EFFECT,
        };
        let all = self.fault.iter().chain(&self.others);
        all.map(move |problem| Problem { instead, ..problem.clone() })
    }

    /// The files whose change means something to it.
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let path = (!self.listed.is_made()).then_some(&self.listed.path);
        let own = [path, self.listed.known_by.token_file.as_ref()].into_iter().flatten();
        own.chain(&self.named)
    }

    /// The files that its entries name for their origins.
    pub(super) fn named(&self) -> impl Iterator<Item = &PathBuf> {
        self.named.iter()
    }
}

/// The text of an environment file.
pub(crate) fn read_text(path: &Path) -> Result<Zeroizing<String>, Failure> {
    read(path).map_err(|error| Failure::input(format_args!("{}: {error}", path.display())))
}

/// The same, with the reason alone if it can't be read.
pub(super) fn read(path: &Path) -> Result<Zeroizing<String>, ReadError> {
    outgate_files::read_text(path, LONGEST)
}

/// The id of an environment whose file gives none.
pub(crate) fn default_id(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".json").unwrap_or(&name).to_owned()
}

/// Whom a text that can't be used concerns.
fn seems_about(text: &str, path: &Path) -> Option<EnvironmentId> {
    let whole = serde_json::from_str::<Value>(text).ok();
    let own = whole.as_ref().and_then(|document| document.get("environment_id")?.as_str());
    let own = own.and_then(|id| EnvironmentId::parse(id).ok());
    own.or_else(|| EnvironmentId::parse(&default_id(path)).ok())
}

fn read_token(path: &Path) -> Result<Token, Problem> {
    let text = outgate_files::read_text(path, LONGEST_TOKEN);
    let token = text.map_err(|error| error.to_string()).and_then(|text| {
        Token::new(&text).ok_or_else(|| {
            "empty: write a long random text into it, as from `openssl rand -hex 32`".to_owned()
        })
    });
    token.map_err(|detail| Problem::unusable(path, detail))
}
