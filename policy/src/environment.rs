//! What is an environment, and which files describe one?

use crate::compile::did_you_mean;
use crate::document::Document;
use crate::id::EnvironmentId;
use crate::policy::Policy;
use crate::problem::Problem;
use crate::source::Source;
use crate::variable::EnvValue;

/// One sandbox's configuration, compiled.
#[derive(Debug)]
pub struct Environment {
    /// Its id: the file's own, else the file's name.
    pub id: EnvironmentId,
    /// What may leave, and with what.
    pub policy: Policy,
    /// The sandbox's own variables, each name once, in the order of the file.
    pub env: Vec<(String, EnvValue)>,
    /// What is brought into the sandbox, in the order of the file; no two targets overlap.
    pub sources: Vec<Source>,
    /// What is worth a look; the file is in force all the same.
    pub warnings: Vec<Problem>,
}

/// The fields of the reference. `environment_id` alone does not make an environment file.
pub(crate) const FIELDS: [&str; 5] = ["type", "environment_id", "env", "sources", "network"];

/// Whether a file is an environment rather than another kind of JSON file: it has `type`,
/// `network`, `sources` or `env`, or an `environment_id` beside one of them misspelt. A text that is
/// no JSON object counts as one, so that [`compile`](crate::compile) says what is wrong with it.
pub fn is_environment_document(text: &str) -> bool {
    match Document::read(text) {
        Ok((Document::Object(fields), _)) => {
            let named = fields.iter().any(|(key, _)| key == "environment_id");
            fields.iter().map(|(key, _)| key.as_str()).any(|key| match key {
                "type" | "network" | "sources" | "env" => true,
                "environment_id" => false,
                other => named && did_you_mean(other, &FIELDS).is_some(),
            })
        }
        Ok(_) | Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_environments_from_other_files() {
        let misspelt = r#"{"environment_id": "a", "netwrok": {}}"#;
        for text in
            [r#"{"type": 1}"#, r#"{"env": {}}"#, r#"{"network": null}"#, misspelt, "[", "[]", ""]
        {
            assert!(is_environment_document(text), "{text}");
        }
        for text in ["{}", r#"{"gate": {"pre_tool_execution": []}}"#, r#"{"environment_id": "a"}"#]
        {
            assert!(!is_environment_document(text), "{text}");
        }
    }
}
