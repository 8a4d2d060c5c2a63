//! How does an RE2 expression read for the `regex` crate, and which ones can't be?
//!
//! One pass over the text, which knows escapes, classes, groups and repetitions and nothing else;
//! the grammar is judged by the crate afterwards. RE2's is at
//! <https://github.com/google/re2/wiki/Syntax>. What differs:
//!
//! | expression | here |
//! |---|---|
//! | `\d \w \s \b` and their negations | ASCII, as in RE2 |
//! | `\Q…\E` | each character escaped |
//! | `[`, `&`, `~` inside a class | escaped: they mean themselves in RE2 |
//! | `\1` to `\9` (no octal), `\<`, `\>`, `\b{…}`, `\u`, `\U`, `\x` of other shapes | refused: no RE2 |
//! | `(?x)`, `(?u)`, `(?R)` | refused: no RE2 |
//! | `a**`, `a{2}*`, `{n}` over 1000 | refused: no RE2 |
//! | `--` inside a class, `\C`, `{` that repeats nothing, `\p` by other names than RE2's | refused: read otherwise here |

use std::iter::Peekable;
use std::str::Chars;

/// RE2's own bound.
const MAX_REPEAT: u32 = 1000;

/// What RE2 doesn't have or means otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Re2Error {
    /// An escape.
    #[error("RE2 has no escape \\{0}")]
    Escape(String),
    /// A flag of a group.
    #[error("RE2 has no group flag {0}; there are i, m, s and U")]
    Flag(char),
    /// `**`, `{2}{3}` and the like.
    #[error("RE2 refuses a repetition of a repetition; put the inner one in brackets")]
    Repeated,
    /// `{1001}`.
    #[error("RE2 repeats at most {MAX_REPEAT} times")]
    TooOften,
    /// A `{` that begins no repetition.
    #[error("write a brace that stands for itself as \\{{")]
    Brace,
    /// `--` in a class.
    #[error("write a hyphen that stands for itself in a class as \\-")]
    Hyphens,
    /// `\p{…}` with a name that RE2 doesn't know.
    #[error(
        "RE2 has no Unicode class {0}; there are categories such as Lu and scripts such as Greek"
    )]
    UnicodeClass(String),
}

/// The expression for the `regex` crate.
pub(super) fn rewrite(text: &str) -> Result<String, Re2Error> {
    let mut rewriter = Rewriter { rest: text.chars().peekable(), out: String::new() };
    rewriter.run()?;
    Ok(rewriter.out)
}

struct Rewriter<'t> {
    rest: Peekable<Chars<'t>>,
    out: String,
}

impl Rewriter<'_> {
    fn run(&mut self) -> Result<(), Re2Error> {
        let mut repeated = false;
        while let Some(next) = self.rest.next() {
            let repeats = matches!(next, '*' | '+' | '?' | '{');
            if repeats && repeated {
                return Err(Re2Error::Repeated);
            }
            match next {
                '\\' => self.escape(Within::Nothing)?,
                '[' => self.class()?,
                '(' => self.group()?,
                '{' => self.braces()?,
                other => self.out.push(other),
            }
            if repeats && let Some(lazy) = self.rest.next_if_eq(&'?') {
                self.out.push(lazy);
            }
            repeated = repeats;
        }
        Ok(())
    }

    /// `{n}`, `{n,}` or `{n,m}`; RE2 takes any other brace for itself, the crate for an error.
    fn braces(&mut self) -> Result<(), Re2Error> {
        let mut inside = String::new();
        while let Some(next) = self.rest.next_if(|next| next.is_ascii_digit() || *next == ',') {
            inside.push(next);
        }
        if self.rest.next_if_eq(&'}').is_none() {
            return Err(Re2Error::Brace);
        }
        let (least, most) = inside.split_once(',').unwrap_or((&inside, ""));
        if least.is_empty() || most.contains(',') {
            return Err(Re2Error::Brace);
        }
        let often = |count: &str| {
            count.parse::<u32>().map_or(!count.is_empty(), |count| count > MAX_REPEAT)
        };
        if often(least) || often(most) {
            return Err(Re2Error::TooOften);
        }
        self.out.push_str(&format!("{{{inside}}}"));
        Ok(())
    }

    fn group(&mut self) -> Result<(), Re2Error> {
        self.out.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        self.out.push('?');
        if matches!(self.rest.peek(), Some('P' | '<')) {
            return Ok(());
        }
        while let Some(next) = self.rest.next_if(|next| !matches!(next, ':' | ')')) {
            if !matches!(next, 'i' | 'm' | 's' | 'U' | '-') {
                return Err(Re2Error::Flag(next));
            }
            self.out.push(next);
        }
        // The closing mark stays for the caller, so that `(?i)*` is seen as what it is.
        Ok(())
    }

    fn class(&mut self) -> Result<(), Re2Error> {
        self.out.push('[');
        if let Some(not) = self.rest.next_if_eq(&'^') {
            self.out.push(not);
        }
        // A bracket in the first place stands for itself in both.
        if self.rest.next_if_eq(&']').is_some() {
            self.out.push_str(r"\]");
        }
        while let Some(next) = self.rest.next() {
            match next {
                ']' => {
                    self.out.push(']');
                    return Ok(());
                }
                '\\' => self.escape(Within::Class)?,
                '[' if self.rest.peek() == Some(&':') => self.posix(),
                '-' if self.rest.peek() == Some(&'-') => return Err(Re2Error::Hyphens),
                '[' | '&' | '~' => self.out.extend(['\\', next]),
                other => self.out.push(other),
            }
        }
        // Unclosed: for the crate to refuse.
        Ok(())
    }

    /// `[:alpha:]`, left as it is.
    fn posix(&mut self) {
        self.out.push('[');
        while let Some(next) = self.rest.next() {
            self.out.push(next);
            if next == ':' && self.rest.peek() == Some(&']') {
                self.out.extend(self.rest.next());
                return;
            }
        }
    }

    fn escape(&mut self, within: Within) -> Result<(), Re2Error> {
        let Some(next) = self.rest.next() else {
            self.out.push('\\');
            return Ok(());
        };
        match next {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => self.out.push_str(&perl_class(next, within)),
            'b' | 'B' if within == Within::Nothing => {
                if self.rest.peek() == Some(&'{') {
                    return Err(Re2Error::Escape(format!("{next}{{")));
                }
                self.out.push_str(&format!(r"(?-u:\{next})"));
            }
            'Q' if within == Within::Nothing => self.literals(),
            'p' | 'P' => self.unicode_class(next)?,
            'x' => self.hexadecimal()?,
            // RE2 has no references back; a digit is octal only with another behind it.
            '1'..='7' if !matches!(self.rest.peek(), Some('0'..='7')) => {
                return Err(Re2Error::Escape(next.to_string()));
            }
            'A' | 'z' if within == Within::Class => return Err(Re2Error::Escape(next.to_string())),
            '0'..='7' | 'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'A' | 'z' => {
                self.out.extend(['\\', next]);
            }
            other if other.is_ascii_punctuation() && !matches!(other, '<' | '>') => {
                self.out.extend(['\\', other]);
            }
            other => return Err(Re2Error::Escape(other.to_string())),
        }
        Ok(())
    }

    /// What stands between `\Q` and `\E`, or the end.
    fn literals(&mut self) {
        while let Some(next) = self.rest.next() {
            if next == '\\' && self.rest.next_if_eq(&'E').is_some() {
                return;
            }
            self.out.push_str(&regex::escape(next.encode_utf8(&mut [0; 4])));
        }
    }

    /// `\x41` or `\x{41}`.
    fn hexadecimal(&mut self) -> Result<(), Re2Error> {
        let braced = self.rest.next_if_eq(&'{').is_some();
        let mut digits = String::new();
        while digits.len() < if braced { 6 } else { 2 }
            && let Some(digit) = self.rest.next_if(char::is_ascii_hexdigit)
        {
            digits.push(digit);
        }
        let closed = if braced { self.rest.next_if_eq(&'}').is_some() } else { digits.len() == 2 };
        if digits.is_empty() || !closed {
            return Err(Re2Error::Escape("x".to_owned()));
        }
        self.out.push_str(&format!(r"\x{{{digits}}}"));
        Ok(())
    }

    fn unicode_class(&mut self, escape: char) -> Result<(), Re2Error> {
        let mut name = String::new();
        match self.rest.next() {
            Some('{') => name.extend(self.rest.by_ref().take_while(|next| *next != '}')),
            Some(letter) => name.push(letter),
            None => {}
        }
        if CATEGORIES.contains(&name.as_str()) || name == "Any" {
            self.out.push_str(&format!(r"\{escape}{{{name}}}"));
            return Ok(());
        }
        // Spelt as RE2 spells scripts; the crate would also take `greek`, and `Letter`.
        let word = |word: &str| {
            let rest = word.strip_prefix(|first: char| first.is_ascii_uppercase());
            rest.is_some_and(|rest| {
                rest.len() > 1 && rest.bytes().all(|byte| byte.is_ascii_lowercase())
            })
        };
        if !name.split('_').all(word) {
            return Err(Re2Error::UnicodeClass(name));
        }
        self.out.push_str(&format!(r"\{escape}{{Script={name}}}"));
        Ok(())
    }
}

#[derive(Copy, Clone, PartialEq)]
enum Within {
    Nothing,
    Class,
}

const CATEGORIES: [&str; 36] = [
    "C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N",
    "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So",
    "Z", "Zl", "Zp", "Zs",
];

/// RE2's classes are ASCII; its `\s` has no vertical tab.
fn perl_class(escape: char, within: Within) -> String {
    let members = match escape.to_ascii_lowercase() {
        'd' => "0-9",
        's' => r"\t\n\f\r ",
        _ => "0-9A-Za-z_",
    };
    match (escape.is_ascii_uppercase(), within) {
        (false, Within::Class) => members.to_owned(),
        (false, Within::Nothing) => format!("[{members}]"),
        (true, _) => format!("[^{members}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Matcher, MatcherError};

    fn matches(text: &str, name: &str) -> bool {
        Matcher::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).matches(name)
    }

    #[test]
    fn classes_are_ascii_as_in_re2() {
        for (text, name, expected) in [
            (r"\w+", "write_2", true),
            (r"\w+", "écrire", false),
            (r"\d", "٣", false),
            (r"\D", "٣", true),
            (r"[\W]", "é", true),
            (r"[a\D]", "b", true),
            (r"[^\D]", "7", true),
            (r"\s", "\u{b}", false),
            (r"\s", "\u{a0}", false),
            (r"[^\s]+", "a\u{b}", true),
            (r"x\by", "xy", false),
            (r"a\b.b", "a.b", true),
            (r"a\Bb", "ab", true),
            (r".", "é", true),
            (r"[[:word:]]+", "a_1", true),
            (r"[[:^alpha:]]", "1", true),
            (r"\p{Greek}+", "αβ", true),
            (r"\pL\PL", "a1", true),
            (r"(?i)straße", "STRAßE", true),
        ] {
            assert_eq!(matches(text, name), expected, "{text} on {name:?}");
        }
    }

    #[test]
    fn what_means_itself_in_re2_means_itself_here() {
        for (text, name) in [
            (r"\Qa.b+\E", "a.b+"),
            (r"\Qa|b", "a|b"),
            (r"\Qab\E+", "abb"),
            (r"x\Q\\E\d", r"x\1"),
            ("[a[b]", "["),
            ("[a&&b]", "&"),
            ("[~~a]", "~"),
            ("[]a]", "]"),
            ("[^]a]", "b"),
            (r"\141\060", "a0"),
            (r"\0", "\0"),
            (r"\x61\x{62}", "ab"),
            (r"\_\-\/", "_-/"),
            (r"[\-a]", "-"),
            ("a b#c", "a b#c"),
        ] {
            assert!(matches(text, name), "{text} on {name:?}");
        }
        assert!(!matches(r"\Qa.b\E", "axb"));
        assert!(!matches("[a&&b]", "["));
    }

    #[test]
    fn refuses_what_re2_does_not_have_or_reads_otherwise() {
        for text in [
            r"(a)\1",
            r"\9",
            r"\<a",
            r"a\>",
            r"\b{start}a",
            r"\u0061",
            r"\U00000061",
            r"\x4",
            r"\x{}",
            "(?x)a b",
            "(?u)a",
            "(?R)a",
            "a**",
            "a*+",
            "a++",
            "a{2}*",
            "a{2}{3}",
            "a???",
            "a{1001}",
            "a{1,1001}",
            "a{99999999999}",
            "a{",
            "a{,2}",
            "{a}",
            "[+--]",
            r"\C",
            r"\p{greek}",
            r"\p{^Greek}",
            r"\p{sc=Greek}",
            r"\pé",
            r"\h",
            r"\Z",
            r"[\b]",
            r"[\Qa\E]",
            r"[\A]",
            r"\E",
        ] {
            assert!(matches!(Matcher::parse(text), Err(MatcherError::Re2(_))), "{text}");
        }
        for text in
            ["(?=a)", "(?!a)", "(?<=a)", "(?P=n)", "a{2,1}", "[z-a]", r"\p{Klingon}", r"\p{Letter}"]
        {
            assert!(Matcher::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn keeps_what_both_read_alike() {
        for text in [
            "(?P<n>a)", "(?<n>a)", "(?i:a)", "(?i-s)a", "(?U)a+", "a{2,3}?", "a+?", r"\A\w+\z",
            "a{0}", "a{1000}", "(a|b)?c", "[a-]", "[-a]", "}", "]", "(?m)^a$",
        ] {
            assert!(Matcher::parse(text).is_ok(), "{text}: {:?}", Matcher::parse(text));
        }
    }
}
