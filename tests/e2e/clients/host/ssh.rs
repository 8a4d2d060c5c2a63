//! How does a host serve ssh? By the real sshd.
//!
//! In the namespaces of a test there is one user, the root of it, and sshd as root insists on
//! others. So it runs as an ordinary one, `git`, who is the only user that it can log in.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use outgate_tests::command::{Running, clean, run};
use outgate_tests::prelude::*;
use outgate_tests::wait::SOON;

pub(crate) const SSH_PORT: u16 = 2222;

const KEYS: &str = "umask 077 && mkdir ssh && ssh-keygen -q -t ed25519 -N '' -f ssh/host && \
                    ssh-keygen -q -t ed25519 -N '' -f ssh/user && \
                    echo \"git:x:1000:1000::$PWD:/bin/sh\" > passwd";

const SERVE: &str = "mount --bind passwd /etc/passwd && \
                     exec unshare --user --map-user=1000 --map-group=1000 /usr/sbin/sshd -D -e \
                     -f /dev/null -h $PWD/ssh/host -o ListenAddress=$ADDRESS:$PORT \
                     -o AuthorizedKeysFile=$PWD/ssh/user.pub -o StrictModes=no -o PidFile=none \
                     -o UsePAM=no -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no";

/// Makes the keys of host and user in `folder/ssh`, and serves.
pub(super) fn start(folder: &Path, address: &str) -> Running {
    let mut keys = Command::new("/bin/sh");
    let made = run(clean(&mut keys).args(["-c", KEYS]).current_dir(folder), b"", SOON);
    assert_eq!(made.code(), 0, "{made:?}");
    let mut shell = Command::new("unshare");
    clean(&mut shell).args(["--mount", "/bin/sh", "-c", SERVE]).current_dir(folder);
    shell.env("ADDRESS", address).env("PORT", SSH_PORT.to_string());
    let server = Running::start(&mut shell, b"");
    let address = SocketAddr::new(address.parse().expect("an address"), SSH_PORT);
    let listens = || TcpStream::connect_timeout(&address, SOON).is_ok();
    assert!(wait_until(SOON, listens), "{:?}", server.finish(SOON));
    server
}
