//! How is a file read that somebody named, so that it can't hold the gateway up?
//!
//! A pipe without a writer is waited for without end, a device may never be through, and a name
//! that was right yesterday may lead to either. So a file is opened without waiting, looked at once
//! it is open, and read only if it is a regular one, up to what a file of its kind can have.
//! Messages are meant to stand behind the file's name.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use zeroize::Zeroizing;

/// Why a file is not read. Quotes nothing of it.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Something that may block or have no end.
    #[error("it is {0}, and nothing but a regular file is read: write the text into a file")]
    Kind(&'static str),
    /// More than a file of its kind has.
    #[error("it is larger than {0} bytes, more than such a file can have: is it the right one?")]
    Large(usize),
    /// Bytes that are no text.
    #[error("it is not UTF-8 text: is it the right file?")]
    NotText,
}

impl ReadError {
    /// Whether nothing is there at all.
    pub fn is_absence(&self) -> bool {
        matches!(self, ReadError::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// The nearest word of the system's.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            ReadError::Io(error) => error.kind(),
            ReadError::Kind("a folder") => io::ErrorKind::IsADirectory,
            ReadError::Kind(_) => io::ErrorKind::InvalidInput,
            ReadError::Large(_) => io::ErrorKind::FileTooLarge,
            ReadError::NotText => io::ErrorKind::InvalidData,
        }
    }
}

/// A regular file, open for reading, and what it was like then.
pub fn open(path: &Path) -> Result<(File, Metadata), ReadError> {
    // Opening a device alone may do something.
    refuse_other_kinds(fs::metadata(path)?.file_type())?;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC);
    let file = options.open(path)?;
    // What was there a moment ago may be another one.
    let metadata = file.metadata()?;
    refuse_other_kinds(metadata.file_type())?;
    Ok((file, metadata))
}

/// The bytes of a regular file of at most `most` of them, wiped when dropped: there are keys in
/// files of many kinds.
pub fn read(path: &Path, most: usize) -> Result<Zeroizing<Vec<u8>>, ReadError> {
    let (file, metadata) = open(path)?;
    contents(file, usize::try_from(metadata.len()).unwrap_or(usize::MAX), most)
}

/// The same as text.
pub fn read_text(path: &Path, most: usize) -> Result<Zeroizing<String>, ReadError> {
    text(read(path, most)?)
}

/// The text of a file that a person names for this once, who waits: also one that comes out of a
/// pipe, as from `<(…)` of a shell.
pub fn read_text_or_wait(path: &Path, most: usize) -> Result<Zeroizing<String>, ReadError> {
    match fs::metadata(path)?.file_type().is_fifo() {
        true => text(contents(File::open(path)?, 0, most)?),
        false => read_text(path, most),
    }
}

/// What is left in `file`, at most `most` bytes; about `expected` is in it.
pub fn contents(
    mut file: impl Read,
    expected: usize,
    most: usize,
) -> Result<Zeroizing<Vec<u8>>, ReadError> {
    // A vector that grows by itself leaves copies behind that nobody wipes. Files of the kernel's
    // say that they are empty.
    let first = if expected == 0 { most } else { expected.min(most) };
    let mut bytes = Zeroizing::new(Vec::with_capacity(first + 1));
    file.by_ref().take(first as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > first && first < most {
        let mut longer = Zeroizing::new(Vec::with_capacity(most + 1));
        longer.extend_from_slice(&bytes);
        bytes = longer;
        file.take((most - first) as u64).read_to_end(&mut bytes)?;
    }
    if bytes.len() > most { Err(ReadError::Large(most)) } else { Ok(bytes) }
}

fn text(mut bytes: Zeroizing<Vec<u8>>) -> Result<Zeroizing<String>, ReadError> {
    let text = String::from_utf8(std::mem::take(&mut *bytes));
    text.map(Zeroizing::new).map_err(|error| {
        drop(Zeroizing::new(error.into_bytes()));
        ReadError::NotText
    })
}

fn refuse_other_kinds(kind: FileType) -> Result<(), ReadError> {
    Err(ReadError::Kind(match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::time::{Duration, Instant};

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn a_regular_file_is_read_as_it_is_up_to_its_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        for text in ["", "a", "twelve bytes"] {
            fs::write(&path, text).expect("written");
            assert_eq!(*read(&path, 12).expect("read"), text.as_bytes());
            assert_eq!(*read_text_or_wait(&path, 12).expect("read"), text);
        }
        assert!(matches!(read(&path, 11), Err(ReadError::Large(11))));
        fs::write(&path, [0xff]).expect("written");
        assert!(matches!(read_text(&path, 11), Err(ReadError::NotText)));
        assert!(read(&folder.path().join("absent"), 11).is_err_and(|error| error.is_absence()));
    }

    #[test]
    fn what_grew_since_it_was_looked_at_is_read_whole_or_refused() {
        for expected in [0, 1, 3, 4, 5, 99] {
            assert_eq!(*contents(&b"four"[..], expected, 4).expect("read"), b"four");
            assert!(matches!(contents(&b"fours"[..], expected, 4), Err(ReadError::Large(4))));
        }
        let text = read_text(Path::new("/proc/self/status"), 1 << 20).expect("read");
        assert!(text.starts_with("Name:"), "files of the kernel's say that they are empty");
    }

    #[test]
    fn what_may_block_or_never_end_is_refused_at_once_and_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let [pipe, socket] = ["pipe", "socket"].map(|name| folder.path().join(name));
        mkfifo(&pipe, Mode::S_IRWXU).expect("made");
        let _socket = UnixListener::bind(&socket).expect("bound");
        let begin = Instant::now();
        for (path, kind) in [
            (pipe.as_path(), "a named pipe"),
            (&socket, "a socket"),
            (folder.path(), "a folder"),
            (Path::new("/dev/zero"), "a device"),
        ] {
            let error = read(path, 1 << 20).expect_err("refused").to_string();
            assert!(error.contains(kind), "{error}");
        }
        assert!(begin.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_person_may_hand_a_pipe() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        mkfifo(&pipe, Mode::S_IRWXU).expect("made");
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::write(pipe, "text")
        });
        assert_eq!(*read_text_or_wait(&pipe, 4).expect("read"), "text");
        writer.join().expect("no panic").expect("written");
    }
}
