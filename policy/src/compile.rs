//! How does an environment file become a policy? Read, checked, and every problem said at once.

mod conflicts;
mod domain;
mod entry;
mod env;
mod network;
mod object;
mod options;
mod report;
mod sources;
mod transform;

use crate::address::AddressRules;
use crate::document::{Document, Place};
use crate::environment::{Environment, FIELDS};
use crate::id::EnvironmentId;
use crate::policy::Policy;
use crate::problem::Problems;

pub use object::Object;
pub use report::{Report, did_you_mean, one_of, quoted};

/// Compiles an environment file for an operator who opened no addresses.
///
/// `default_id` is the file's name without `.json`, used where the file gives no id.
pub fn compile(text: &str, default_id: &str) -> Result<Environment, Problems> {
    compile_under(text, default_id, &AddressRules::default())
}

/// Compiles an environment file under the operator's address rules: an entry for an address that
/// these rules never let be dialled is a problem, since it could never work.
pub fn compile_under(
    text: &str,
    default_id: &str,
    addresses: &AddressRules,
) -> Result<Environment, Problems> {
    let mut report = Report::default();
    let compiled = match Document::read(text) {
        Ok((document, repeated)) => {
            report.extend(repeated);
            read(&document, default_id, addresses, &mut report)
        }
        Err(problem) => {
            report.extend([problem]);
            None
        }
    };
    let (environment, warnings) = report.into_result(compiled)?;
    Ok(Environment { warnings, ..environment })
}

fn read(
    document: &Document,
    default_id: &str,
    addresses: &AddressRules,
    report: &mut Report,
) -> Option<Environment> {
    let place = Place::Root;
    let object = Object::read(document, &place, report)?;
    refuse_near_misses_of_network(&object, report);
    object.warn_of_unknown(&FIELDS, report);
    read_type(&object, report);
    let id = read_id(&object, default_id, report);
    let env = object.get("env").map(|env| env::read(env, &place.key("env"), report));
    let sources =
        object.get("sources").map(|list| sources::read(list, &place.key("sources"), report));
    let policy = match object.get("network") {
        None => Some(Policy::open()),
        Some(network) => network::read(network, &place.key("network"), addresses, report),
    };
    Some(Environment {
        id: id?,
        policy: policy?,
        env: env.unwrap_or_default(),
        sources: sources.unwrap_or_default(),
        warnings: Vec::new(),
    })
}

/// An unknown field is only warned of out here, but an absent `network` opens everything: a
/// misspelt one must not.
fn refuse_near_misses_of_network(object: &Object<'_>, report: &mut Report) {
    if object.get("network").is_some() {
        return;
    }
    for key in object.unknown(&FIELDS) {
        let place = object.place.key(key);
        if key == "allowlist" {
            report.problem(&place, "belongs inside `network`: {\"network\": {\"allowlist\": …}}");
        } else if did_you_mean(key, &FIELDS) == Some("network") {
            report.problem(&place, "unknown field, did you mean network?");
        }
    }
}

fn read_type(object: &Object<'_>, report: &mut Report) {
    if let Some(kind) = object.string("type", report)
        && kind != "remote"
    {
        let message = format!("{}: the only type is \"remote\"", quoted(kind));
        report.problem(&object.place.key("type"), message);
    }
}

fn read_id(object: &Object<'_>, default_id: &str, report: &mut Report) -> Option<EnvironmentId> {
    let (text, origin) = match object.get("environment_id") {
        Some(_) => (object.string("environment_id", report)?, ""),
        None => (default_id, "absent, and the file's name will not do: "),
    };
    let id = EnvironmentId::parse(text);
    if let Err(error) = id {
        let message = format!("{origin}{}: {error}", quoted(text));
        report.problem(&object.place.key("environment_id"), message);
    }
    id.ok()
}
