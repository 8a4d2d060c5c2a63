//! Does a rule concern this tool? An RE2 expression that must match the tool's whole name.
//!
//! The `regex` crate has RE2's guarantee, time linear in the name, and nearly its language. What
//! it would read in another way is rewritten or refused ([`re2`]).

mod re2;

use regex::bytes::{Regex, RegexBuilder};

pub use re2::Re2Error;

/// Tools of the two generations of the reference, by the same act.
const TWINS: [(&str, &str); 3] =
    [("read_file", "view_file"), ("write_file", "write_to_file"), ("list_files", "list_dir")];

/// Room for one compiled expression. Names of tools need a few hundred bytes; a class such as
/// `\p{L}` takes some 100 KiB. The file may come from the sandbox, so that it must not be able to
/// have much memory or time spent on it.
const SIZE_LIMIT: usize = 512 << 10;

/// Which tools a rule concerns.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// `*`, the empty text, or none.
    Every,
    /// Those whose whole name, or whose twin's, the expression matches.
    Named(Regex),
    /// An invalid expression: no tool.
    Nothing,
}

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    /// Not in RE2's language, or not read alike here.
    #[error(transparent)]
    Re2(#[from] Re2Error),
    /// Not an expression at all.
    #[error("no regular expression: {0}; to match every tool, write *")]
    Syntax(String),
    /// Larger than it may be once compiled.
    #[error("the expression needs more than {SIZE_LIMIT} bytes once compiled; make it simpler")]
    Large,
}

impl Matcher {
    /// Reads the text of a `matcher`.
    pub fn parse(text: &str) -> Result<Matcher, MatcherError> {
        if text.is_empty() || text == "*" {
            return Ok(Matcher::Every);
        }
        let expression = re2::rewrite(text)?;
        // As it stands first: `a)|(?:b` is no expression, but would be one once wrapped.
        build(&expression)?;
        build(&format!(r"\A(?:{expression})\z")).map(Matcher::Named)
    }

    /// Whether a call of the tool `name` is concerned.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Matcher::Every => true,
            Matcher::Named(regex) => {
                regex.is_match(name.as_bytes())
                    || twin(name).is_some_and(|twin| regex.is_match(twin.as_bytes()))
            }
            Matcher::Nothing => false,
        }
    }
}

fn twin(name: &str) -> Option<&'static str> {
    TWINS.iter().find_map(|(old, new)| match name {
        name if name == *old => Some(*new),
        name if name == *new => Some(*old),
        _ => None,
    })
}

fn build(expression: &str) -> Result<Regex, MatcherError> {
    RegexBuilder::new(expression)
        .octal(true)
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(SIZE_LIMIT)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => MatcherError::Large,
            other => MatcherError::Syntax(last_line(&other.to_string())),
        })
}

/// The crate draws the expression with a caret over several lines; its last line says why.
fn last_line(text: &str) -> String {
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn matches(matcher: &str, name: &str) -> bool {
        Matcher::parse(matcher).expect(matcher).matches(name)
    }

    #[test]
    fn an_expression_must_match_the_whole_name() {
        for (matcher, name, expected) in [
            ("write", "write", true),
            ("write", "write_file", false),
            ("write", "rewrite", false),
            ("write", "Write", false),
            ("write", "overwrite_file", false),
            (".*_file", "view_file", true),
            (".*_file", "replace_file_content", false),
            ("view_file|write_to_file", "view_file", true),
            ("view_file|write_to_file", "write_to_file", true),
            ("view_file|write_to_file", "view_file_x", false),
            ("^code_execution$", "code_execution", true),
            ("^$", "code_execution", false),
            ("(?i)WRITE", "write", true),
            ("a|ab", "ab", true),
            ("a*?", "aaa", true),
        ] {
            assert_eq!(matches(matcher, name), expected, "{matcher} on {name}");
        }
    }

    #[test]
    fn star_empty_and_dot_star_match_every_tool() {
        for matcher in ["*", "", ".*"] {
            for name in ["code_execution", "mcp__x_y", "é"] {
                assert!(matches(matcher, name), "{matcher} on {name}");
            }
        }
        assert!(!matches(".*", "a\nb") && matches("(?s).*", "a\nb") && matches("*", "a\nb"));
    }

    #[test]
    fn a_pipe_or_comma_does_not_split_an_expression() {
        assert!(matches("mcp__(a|b)_.*", "mcp__b_read"));
        assert!(!matches("mcp__(a|b)_.*", "mcp__(a"));
        assert!(matches("x{1,3}", "xx") && !matches("x{1,3}", "xxxx"));
    }

    #[test]
    fn tools_of_either_generation_are_matched_by_either_name() {
        for (one, other) in TWINS {
            assert!(matches(one, other) && matches(other, one) && matches(one, one));
        }
        assert!(matches("view_.*", "read_file"));
        assert!(!matches("view_file", "write_file"));
        assert!(!matches("view_file", "read_files"));
    }

    #[test]
    fn what_is_valid_only_once_wrapped_is_refused() {
        for text in ["a)|(?:b", ")(", "a)", "(a", "*_file", "+", "a|*", "[a", "\\"] {
            assert!(Matcher::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_large_expression_is_refused() {
        assert_eq!(Matcher::parse(r"(\p{L}{500}){2}").expect_err("large"), MatcherError::Large);
        assert!(Matcher::parse(r"\p{L}+").is_ok());
        assert!(Matcher::parse("[a-z_]{1,64}").is_ok());
    }

    #[test]
    fn takes_time_linear_in_the_name() {
        let name = "a".repeat(100_000);
        for matcher in ["(a+)+$", "(a|aa)*b", "(a*)*c", "(.*)*x"] {
            let matcher = Matcher::parse(matcher).expect("an expression");
            let started = Instant::now();
            matcher.matches(&name);
            matcher.matches(&format!("{name}!"));
            // 50 ms in a release build on a quiet machine; a backtracking matcher needs years.
            assert!(started.elapsed() < Duration::from_secs(2), "{matcher:?}");
        }
    }
}
