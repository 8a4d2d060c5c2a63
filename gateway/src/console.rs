//! How does a command speak to the person, or the program, that started it?
//!
//! Every line is written whole and at once: logs and audit lines may share the descriptor.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use crate::failure::Failure;

/// Prints one line on stdout.
///
/// A reader that has gone away (`outgate check … | head -1`) ends the program's interest in
/// output, not the program.
pub(crate) fn say(line: impl Display) -> Result<(), Failure> {
    write_whole(io::stdout().lock(), &format!("{line}\n"))
        .map_err(|error| Failure::start(format_args!("stdout can't be written: {error}")))
}

/// Prints one line on stderr; there is nowhere to complain when that fails.
pub(crate) fn complain(line: impl Display) {
    let _ = write_whole(io::stderr().lock(), &format!("{line}\n"));
}

/// Prints on stderr what a person is asked, without a line end.
pub(crate) fn ask(question: impl Display) {
    let _ = write_whole(io::stderr().lock(), &format!("{question}"));
}

/// Prints why the program ends.
pub(crate) fn report(failure: &Failure, style: Style) {
    if let Some(message) = failure.message() {
        complain(format_args!("{} {message}", style.bad("outgate:")));
    }
}

fn write_whole(mut to: impl Write, text: &str) -> io::Result<()> {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Colours, or none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Style {
    Plain,
    Coloured,
}

impl Style {
    /// Colours only on a terminal, and not where `NO_COLOR` is set.
    pub(crate) fn of(stream: &impl IsTerminal, no_color: Option<&OsStr>) -> Style {
        let wanted = no_color.is_none_or(OsStr::is_empty);
        if wanted && stream.is_terminal() { Style::Coloured } else { Style::Plain }
    }

    pub(crate) fn good(self, text: impl Display) -> String {
        self.paint("32", text)
    }

    pub(crate) fn warning(self, text: impl Display) -> String {
        self.paint("33", text)
    }

    pub(crate) fn bad(self, text: impl Display) -> String {
        self.paint("31", text)
    }

    pub(crate) fn strong(self, text: impl Display) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: impl Display) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: impl Display) -> String {
        match self {
            Style::Plain => text.to_string(),
            Style::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paints_nothing_when_plain() {
        assert_eq!(Style::Plain.bad("no"), "no");
        assert_eq!(Style::Coloured.bad("no"), "\x1b[31mno\x1b[0m");
    }

    #[test]
    fn a_pipe_is_not_a_terminal() {
        let (reader, _writer) = io::pipe().unwrap();
        assert_eq!(Style::of(&std::os::fd::OwnedFd::from(reader), None), Style::Plain);
    }

    #[test]
    fn a_reader_that_left_is_no_failure() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        assert!(write_whole(writer, "line\n").is_ok());
    }
}
