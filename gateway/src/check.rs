//! `outgate check FILE…`: is anything wrong with these files?

mod environment;
mod hooks;

use std::io;
use std::path::Path;

use outgate_policy::{Environment, Problem, is_environment_document};

use crate::cli::CheckArgs;
use crate::console::{Style, say};
use crate::failure::Failure;
use crate::surroundings::Surroundings;

/// No file that is loaded may be longer.
const LONGEST: usize = 64 << 20;

/// Prints every problem and every warning of every file; fails if there is a problem. URLs of
/// hooks files are judged by the environments that are named beside them.
pub(crate) fn run(args: &CheckArgs, surroundings: &Surroundings) -> Result<(), Failure> {
    let style = Style::of(&io::stdout(), surroundings.no_color.as_deref());
    let mut bad = false;
    for (file, Findings { problems, warnings }) in examine_all(&args.files) {
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

/// What was found in one file.
#[derive(Debug, Default, PartialEq)]
struct Findings {
    problems: Vec<String>,
    warnings: Vec<String>,
}

/// A file that was read, by its kind.
enum Examined {
    /// Nothing more to look at.
    Done(Findings),
    /// An environment that loads: it judges hooks files too.
    Environment(Box<Environment>, Findings),
    /// A hooks file, still to be judged.
    Hooks(String),
}

fn examine_all<P: AsRef<Path>>(files: &[P]) -> impl Iterator<Item = (&Path, Findings)> {
    let examined: Vec<_> = files.iter().map(|file| examine(file.as_ref())).collect();
    let environments: Vec<&Environment> = examined
        .iter()
        .filter_map(|examined| match examined {
            Examined::Environment(environment, _) => Some(&**environment),
            Examined::Done(_) | Examined::Hooks(_) => None,
        })
        .collect();
    let hooks: Vec<_> = examined
        .iter()
        .map(|examined| match examined {
            Examined::Hooks(text) => Some(hooks::check(text, &environments)),
            Examined::Done(_) | Examined::Environment(..) => None,
        })
        .collect();
    let findings = examined.into_iter().zip(hooks).map(|(examined, hooks)| match examined {
        Examined::Done(findings) | Examined::Environment(_, findings) => findings,
        Examined::Hooks(_) => hooks.unwrap_or_default(),
    });
    files.iter().map(AsRef::as_ref).zip(findings.collect::<Vec<_>>())
}

fn examine(file: &Path) -> Examined {
    match outgate_files::read_text_or_wait(file, LONGEST) {
        Ok(text) if is_environment_document(&text) => environment::examine(&text, file),
        Ok(text) => Examined::Hooks(text.to_string()),
        Err(error) => Examined::Done(Findings::problem(error)),
    }
}

impl Findings {
    fn problem(text: impl ToString) -> Findings {
        Findings { problems: vec![text.to_string()], warnings: Vec::new() }
    }

    fn of(problems: Vec<Problem>, warnings: Vec<Problem>) -> Findings {
        let texts = |list: Vec<Problem>| list.iter().map(ToString::to_string).collect();
        Findings { problems: texts(problems), warnings: texts(warnings) }
    }
}

#[cfg(test)]
mod tests;
