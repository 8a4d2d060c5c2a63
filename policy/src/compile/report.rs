//! What was found while a file was read? Problems and warnings, in the order of the file.

use crate::document::{Document, Place};
use crate::problem::{Problem, Problems};

/// Collects problems and warnings.
#[derive(Default)]
pub struct Report {
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Report {
    /// Notes what must be mended. The message quotes no secret.
    pub fn problem(&mut self, place: &Place<'_>, message: impl Into<String>) {
        self.problems.push(Problem::new(place.to_string(), message));
    }

    /// Notes what is worth a look; the file is in force all the same.
    pub fn warning(&mut self, place: &Place<'_>, message: impl Into<String>) {
        self.warnings.push(Problem::new(place.to_string(), message));
    }

    /// Notes problems that were found elsewhere.
    pub fn extend(&mut self, problems: impl IntoIterator<Item = Problem>) {
        self.problems.extend(problems);
    }

    /// Notes a value of the wrong kind, without the value.
    pub fn wrong_kind(&mut self, place: &Place<'_>, expected: &str, found: &Document) {
        self.problem(place, format!("expected {expected}, found {}", found.kind()));
    }

    /// Notes the problems and warnings of another report, after those of this one.
    pub fn append(&mut self, other: Report) {
        self.problems.extend(other.problems);
        self.warnings.extend(other.warnings);
    }

    /// Whether something must be mended.
    pub fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// The problems, then the warnings.
    pub fn into_findings(self) -> (Vec<Problem>, Vec<Problem>) {
        (self.problems, self.warnings)
    }

    /// What was compiled, with the warnings, if there was no problem.
    pub fn into_result<T>(self, compiled: Option<T>) -> Result<(T, Vec<Problem>), Problems> {
        match compiled {
            Some(compiled) if self.problems.is_empty() => Ok((compiled, self.warnings)),
            _ => Err(Problems { problems: self.problems, warnings: self.warnings }),
        }
    }
}

/// The known word that a misspelt one is closest to, if it is close.
pub fn did_you_mean<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    const CLOSE: f64 = 0.7;
    known
        .iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(&word.to_lowercase(), known), *known))
        .filter(|(likeness, _)| *likeness >= CLOSE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, known)| known)
}

/// A value for a message: escaped, and no longer than a line.
pub fn quoted(text: &str) -> String {
    const MAX: usize = 64;
    let shown: String = text.chars().take(MAX).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", shown.escape_debug())
}

/// `a, b or c`.
pub fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
