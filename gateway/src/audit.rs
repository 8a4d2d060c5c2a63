//! Where do audit lines end up?

use std::fs::{self, File, OpenOptions};
use std::io::{self, Stderr, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::AuditFile;
use crate::failure::Failure;

/// The opened `[audit] file`, to be written by one thread.
pub(crate) struct AuditOutput {
    sink: Sink,
    next: NextOutput,
    /// Whether the last byte ended a line.
    between_lines: bool,
}

/// Takes the place of what an [`AuditOutput`] writes to, after the line that is being written.
#[derive(Clone, Default)]
pub(crate) struct NextOutput(Arc<Mutex<Option<Sink>>>);

enum Sink {
    Stderr(Stderr),
    File(File),
}

impl AuditOutput {
    /// Opens it for appending; a new file is for the gateway's user alone.
    pub(crate) fn open(file: &AuditFile) -> Result<AuditOutput, Failure> {
        Ok(AuditOutput {
            sink: Sink::open(file)?,
            next: NextOutput::default(),
            between_lines: true,
        })
    }

    /// The way to open it anew while it is written.
    pub(crate) fn next(&self) -> NextOutput {
        self.next.clone()
    }
}

impl NextOutput {
    /// Opens `file`, which may be the same path again: the old file may have been moved away.
    pub(crate) fn open(&self, file: &AuditFile) -> Result<(), Failure> {
        let sink = Sink::open(file)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sink);
        Ok(())
    }

    fn take(&self) -> Option<Sink> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Sink {
    fn open(file: &AuditFile) -> Result<Sink, Failure> {
        let path = match file {
            AuditFile::Unsaid | AuditFile::Stderr => return Ok(Sink::Stderr(io::stderr())),
            AuditFile::Path(path) => path,
        };
        let mut options = OpenOptions::new();
        // Opened for writing alone, a pipe that nobody reads yet would stop the start without a
        // word; so it is kept open when its reader restarts, and fills meanwhile.
        options.read(is_pipe(path)).append(true).create(true).mode(0o600);
        options
            .open(path)
            .map(Sink::File)
            .map_err(|error| Failure::start(format_args!("audit file {}: {error}", path.display())))
    }
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

impl Write for AuditOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.between_lines
            && let Some(next) = self.next.take()
        {
            self.sink = next;
        }
        let written = match &mut self.sink {
            // One lock around each write: log lines go between audit lines, never into one.
            Sink::Stderr(stderr) => stderr.write(bytes),
            Sink::File(file) => file.write(bytes),
        }?;
        if let Some(last) = bytes[..written].last() {
            self.between_lines = *last == b'\n';
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Stderr(stderr) => stderr.flush(),
            Sink::File(file) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn appends_to_a_file_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        for line in ["one\n", "two\n"] {
            let mut output = AuditOutput::open(&AuditFile::Path(path.clone())).unwrap();
            output.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_can_t_be_opened_stops_the_start() {
        let refused = AuditOutput::open(&AuditFile::Path("/nowhere/audit.jsonl".into()));
        assert_eq!(refused.err().unwrap().code(), 70);
    }

    #[test]
    fn opened_anew_it_goes_on_in_another_file_after_a_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let file = AuditFile::Path(path.clone());
        let mut output = AuditOutput::open(&file).unwrap();
        output.write_all(b"one\nhalf a ").unwrap();
        fs::rename(&path, folder.path().join("audit.1")).unwrap();
        output.next().open(&file).unwrap();
        output.write_all(b"line\n").unwrap();
        output.write_all(b"two\n").unwrap();
        let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(
            (read("audit.1").as_str(), read("audit.jsonl").as_str()),
            ("one\nhalf a line\n", "two\n")
        );
    }

    #[test]
    fn a_file_that_can_t_be_opened_anew_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut output = AuditOutput::open(&AuditFile::Path(path.clone())).unwrap();
        assert!(output.next().open(&AuditFile::Path("/nowhere/audit.jsonl".into())).is_err());
        output.write_all(b"one\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
    }
}
