//! Do the entries of an environment and the credentials that they name go together?

use outgate_credentials::Credentials;
use outgate_policy::{AddressRules, Environment, Problem, Problems, compile_under};

/// What a text is judged by beside itself.
pub(crate) struct Under<'a> {
    pub(crate) rules: &'a AddressRules,
    pub(crate) credentials: &'a Credentials,
}

impl Under<'_> {
    /// Compiles a text. A credential that is not stored yet is warned of: its requests are refused
    /// until it is.
    pub(crate) fn compile(&self, text: &str, id: &str) -> Result<Environment, Problems> {
        let mut environment = compile_under(text, id, self.rules)?;
        let mut problems = Vec::new();
        for (index, credential, mut headers) in environment.policy.credentials() {
            let place = format!("network.allowlist[{index}].credential");
            match self.credentials.header_of(credential) {
                None => environment.warnings.push(Problem::new(
                    place,
                    format!("{credential} is not stored; requests are refused until it is"),
                )),
                Some(_) if self.credentials.is_variable(credential) == Some(true) => {
                    let message = format!(
                        "{credential} is an environment_variable: name it in `env`, not here"
                    );
                    problems.push(Problem::new(place, message));
                }
                Some(Some(header)) if headers.any(|name| *name == header) => {
                    let message = format!("{credential} sets {header}, and so does `transform`");
                    problems.push(Problem::new(place, message));
                }
                Some(_) => {}
            }
        }
        match problems.is_empty() {
            true => Ok(environment),
            false => Err(Problems { problems, warnings: environment.warnings }),
        }
    }
}
