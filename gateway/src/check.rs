//! `outgate check FILE…`: is anything wrong with these files?

use std::io;
use std::path::Path;

use outgate_policy::{compile, is_environment_document};

use crate::cli::CheckArgs;
use crate::console::{Style, say};
use crate::environments::default_id;
use crate::failure::Failure;
use crate::surroundings::Surroundings;

/// Prints every problem and every warning of every file; fails if there is a problem.
pub(crate) fn run(args: &CheckArgs, surroundings: &Surroundings) -> Result<(), Failure> {
    let style = Style::of(&io::stdout(), surroundings.no_color.as_deref());
    let mut bad = false;
    for file in &args.files {
        let Findings { problems, warnings } = examine(file);
        let name = file.display();
        for problem in &problems {
            say(format_args!("{name}: {} {problem}", style.bad("error:")))?;
        }
        for warning in &warnings {
            say(format_args!("{name}: {} {warning}", style.warning("warning:")))?;
        }
        if problems.is_empty() {
            say(format_args!("{name}: {}", style.good("ok")))?;
        }
        bad |= !problems.is_empty();
    }
    if bad { Err(Failure::shown()) } else { Ok(()) }
}

#[derive(Debug, Default, PartialEq)]
struct Findings {
    problems: Vec<String>,
    warnings: Vec<String>,
}

fn examine(file: &Path) -> Findings {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return Findings::problem(error),
    };
    if !is_environment_document(&text) {
        return Findings::problem("hooks files: not supported yet");
    }
    let (problems, warnings) = match compile(&text, &default_id(file)) {
        Ok(environment) => (Vec::new(), environment.warnings),
        Err(found) => (found.problems, found.warnings),
    };
    let texts = |list: Vec<outgate_policy::Problem>| list.iter().map(ToString::to_string).collect();
    Findings { problems: texts(problems), warnings: texts(warnings) }
}

impl Findings {
    fn problem(text: impl ToString) -> Findings {
        Findings { problems: vec![text.to_string()], warnings: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examined(text: &str) -> Findings {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("e.json");
        std::fs::write(&file, text).unwrap();
        examine(&file)
    }

    #[test]
    fn a_good_file_has_no_findings() {
        let good = r#"{"network": {"allowlist": [{"domain": "api.example.com"}]}}"#;
        assert_eq!(examined(good), Findings::default());
    }

    #[test]
    fn every_problem_is_found_at_once() {
        let bad = r#"{"network": {"allowlist": [{"domian": "a.example.com"}, {"domain": "a b"}]}}"#;
        let found = examined(bad).problems;
        assert!(
            found.iter().any(|problem| problem.starts_with("network.allowlist[0]")),
            "{found:?}"
        );
        assert!(
            found.iter().any(|problem| problem.starts_with("network.allowlist[1]")),
            "{found:?}"
        );
    }

    #[test]
    fn warnings_leave_a_file_good() {
        let wide = r#"{"network": {"allowlist": [{"domain": "*.com"}]}}"#;
        let found = examined(wide);
        assert!(found.problems.is_empty() && !found.warnings.is_empty(), "{found:?}");
    }

    #[test]
    fn a_hooks_file_is_named_as_one() {
        let hooks = r#"{"gate": {"pre_tool_execution": []}}"#;
        assert_eq!(examined(hooks), Findings::problem("hooks files: not supported yet"));
    }

    #[test]
    fn a_missing_file_is_a_problem() {
        assert_eq!(examine(Path::new("/nowhere/e.json")).problems.len(), 1);
    }
}
