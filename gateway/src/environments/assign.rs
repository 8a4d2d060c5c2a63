//! Which file is whose, where two may say the same?

use std::collections::HashMap;

use outgate_policy::EnvironmentId;

use super::Problem;
use super::file::File;

/// Gives each file its environment. Who has one keeps it; then a new claim counts, in the order of
/// the files; then what a broken file seems to be about. A file that claims what is another's has
/// a problem, and what it said last stays in force.
pub(super) fn assign(files: &mut [File]) {
    let mut owners: HashMap<EnvironmentId, usize> = HashMap::new();
    for keeping in [true, false] {
        for at in 0..files.len() {
            let file = &files[at];
            let held = file.held.as_ref().map(|held| held.environment.id().clone());
            let claim = match (&file.said, held) {
                (Ok(said), held) if (held.as_ref() == Some(said)) == keeping => said.clone(),
                (Err(_), Some(held)) if keeping => held,
                _ => continue,
            };
            if owners.contains_key(&claim) {
                let first = &files[owners[&claim]].listed.path;
                let problem = taken(&claim, file, first);
                files[at].others.push(problem);
            } else {
                owners.insert(claim.clone(), at);
                files[at].assigned = Some(claim);
            }
        }
    }
    for (at, file) in files.iter_mut().enumerate().filter(|(_, file)| file.assigned.is_none()) {
        let fallback = match (&file.held, &file.said) {
            (Some(held), _) => Some(held.environment.id()),
            (None, Err(about)) => about.as_ref(),
            (None, Ok(_)) => None,
        };
        if let Some(id) = fallback.filter(|id| !owners.contains_key(id)).cloned() {
            owners.insert(id.clone(), at);
            file.assigned = Some(id);
        }
    }
}

fn taken(id: &EnvironmentId, file: &File, first: &std::path::Path) -> Problem {
    let detail = format!(
        "environment {id} is in {} too: give one of them another environment_id",
        first.display()
    );
    Problem::unusable(&file.listed.path, detail)
}
