//! How does a test play a host of git repositories? Needs git.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{clean, run};
use crate::origin::{Connection, Script, scripts};
use crate::wait::SOON;

/// A bare repository with one commit, `first`, that has a file `README` with this text; as a plain
/// web server offers it.
///
/// # Panics
/// When git is missing, or the folder is not writable.
pub fn make(folder: &Path, readme: &str) -> PathBuf {
    let script = "git init -q work && cd work && echo \"$README\" > README && git add README && \
                  git -c user.name=t -c user.email=t@example.test commit -qm first && cd .. && \
                  git clone -q --bare work served && git -C served update-server-info";
    let mut shell = Command::new("/bin/sh");
    clean(&mut shell).args(["-c", script]).current_dir(folder);
    let made = run(shell.env("HOME", folder).env("README", readme), b"", SOON * 2);
    assert_eq!(made.code(), 0, "{made:?}");
    folder.join("served")
}

/// Answers `/o/r/NAME` with the file of this name.
pub fn serve(served: PathBuf) -> Box<Script> {
    Box::new(move |connection: &mut Connection| {
        while let Some(request) = connection.request() {
            let path = request.target.split('?').next().unwrap_or_default();
            let file = path.strip_prefix("/o/r/").map(|name| served.join(name));
            let answer = match file.and_then(|file| fs::read(file).ok()) {
                Some(content) => scripts::ok(content),
                None => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
            };
            if !connection.send(answer) {
                return;
            }
        }
    })
}
