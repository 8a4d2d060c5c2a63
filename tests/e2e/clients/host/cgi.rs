//! How does a host serve git repositories? By git's own CGI program (git-http-backend(1)).

use std::path::Path;
use std::process::Command;

use outgate_tests::command::{clean, run};
use outgate_tests::prelude::*;

/// A clone or a push of a small repository takes a fraction of this.
const DEADLINE: Duration = Duration::from_secs(30);

/// The answer to one request (RFC 3875).
pub(super) fn git(folder: &Path, request: &Request) -> Vec<u8> {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let mut program = Command::new("git");
    clean(&mut program).arg("http-backend").env("GIT_PROJECT_ROOT", folder);
    program.env("GIT_HTTP_EXPORT_ALL", "1").env("HOME", folder).env("REMOTE_USER", "somebody");
    program.env("PATH_INFO", path).env("QUERY_STRING", query);
    program.env("REQUEST_METHOD", &request.method);
    program.env("CONTENT_LENGTH", request.body.len().to_string());
    for (variable, name) in [
        ("CONTENT_TYPE", "content-type"),
        ("HTTP_CONTENT_ENCODING", "content-encoding"),
        ("GIT_PROTOCOL", "git-protocol"),
    ] {
        program.env(variable, request.header(name).unwrap_or_default());
    }
    let answered = run(&mut program, &request.body, DEADLINE).stdout;
    let end = answered.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let (head, body) = (String::from_utf8_lossy(&answered[..end]), &answered[end + 4..]);
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}
