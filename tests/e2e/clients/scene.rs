//! How is a client run, each way, and how is it known that it got what it asked for?

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use outgate_tests::command::{Finished, clean, run};
use outgate_tests::prelude::*;
use outgate_tests::wait::SOON;
use serde_json::Value;
use tempfile::TempDir;

use crate::host::{GRPC, Host, Offer, SSH, SSH_PORT};
use crate::table::{Client, Needs, Speaks};

pub(super) use crate::host::WEB;

/// Virtual machines and browsers start slowly on a busy machine.
const DEADLINE: Duration = Duration::from_secs(90);

/// What is said before the script of a client: where the programs are, and who commits.
const BEFORE: &str = "cd \"$HOME\"
export WAY CLIENTS HOST_FOLDER SSH_CONFIG=\"$HOME/ssh/config\"
export PATH=\"$CLIENTS/python/bin:$CLIENTS/node_modules/.bin:$TOOLCHAIN:$PATH:/usr/sbin:/sbin\"
export NODE_PATH=\"$CLIENTS/node_modules\"
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.test
export GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.test
";

/// How a client is given to outgate.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Run,
    Proxy,
    /// By the proxy, without a word about the CA.
    Untold,
}

/// A world with the host that one client asks.
pub(super) struct Scene<'a> {
    world: &'a World,
    client: &'a Client,
    offer: Offer,
    host: Host,
}

impl<'a> Scene<'a> {
    pub(super) fn new(world: &'a World, client: &'a Client) -> Self {
        let folder = tempfile::tempdir_in(network::folder()).expect("it is writable").keep();
        let offer =
            Offer { folder, greeting: canary(24), secret: format!("Bearer {}", canary(32)) };
        copy_programs(&offer.folder);
        let script = format!("{BEFORE}{}", client.offered);
        let mut shell = Command::new("/bin/sh");
        clean(&mut shell).args(["-ec", &script]).current_dir(&offer.folder);
        let variables = [("HOME", offer.folder.as_os_str()), ("GREETING", offer.greeting.as_ref())];
        shell.envs(variables).env("CLIENTS", clients()).env("TOOLCHAIN", toolchain());
        let offered = run(&mut shell, b"", DEADLINE);
        assert_eq!(offered.code(), 0, "{}: {offered:?}", client.name);
        let host = Host::start(world, client.speaks, offer.clone());
        Self { world, client, offer, host }
    }

    /// The client shows what the host has, the host saw the secret, and the client never did.
    pub(super) fn works(&self, way: Way) {
        let before = self.host.authorizations().len();
        let finished = self.try_it(way, WEB);
        let name = self.client.name;
        let said = format!("{}{}", finished.text(), finished.stderr);
        assert!(finished.text().contains(&self.offer.greeting), "{name} {way:?}: {said}");
        assert_eq!(finished.code(), 0, "{name} {way:?}: {said}");
        assert_secret_absent(&said, &self.offer.secret["Bearer ".len()..]);
        let authorizations = self.host.authorizations().split_off(before);
        let over_http = !matches!(self.client.speaks, Speaks::Ssh);
        assert_eq!(!authorizations.is_empty(), over_http, "{name} {way:?}");
        for values in authorizations {
            assert_eq!(values, [self.offer.secret.as_str()], "{name} {way:?}");
        }
    }

    /// Runs the client to its end, with this name in the place of the host's.
    pub(super) fn try_it(&self, way: Way, name: &str) -> Finished {
        let home = self.home();
        let finished = match way {
            Way::Run => self.in_sandbox(&home, name),
            Way::Proxy => self.by_proxy(&home, name, true),
            Way::Untold => self.by_proxy(&home, name, false),
        };
        self.assert_keeps_no_secret(home.path());
        finished
    }

    /// Caches and settings that a client leaves outlive it.
    fn assert_keeps_no_secret(&self, home: &Path) {
        let mut grep = Command::new("grep");
        grep.args(["-rlsF", &self.offer.secret["Bearer ".len()..]]).arg(home);
        let found = run(&mut grep, b"", SOON);
        // Not by its code: what a client has left running may remove a file while it is looked at.
        assert_eq!(found.text(), "", "{}", self.client.name);
    }

    /// In a sandbox, with nothing configured that has to do with outgate.
    fn in_sandbox(&self, home: &TempDir, name: &str) -> Finished {
        let run_in_sandbox = self.world.run().environment(&self.environment());
        let script = self.script(home, "run", self.client.in_run).replace(WEB, name);
        let mut outgate = run_in_sandbox.command(&["/bin/sh", "-c", &script]);
        // A working directory is seen inside, wherever it lies.
        outgate.env("HOME", home.path()).current_dir(clients());
        run(&mut outgate, b"", DEADLINE)
    }

    /// In a shell that was told of the proxy, and of the CA.
    fn by_proxy(&self, home: &TempDir, name: &str, told_of_ca: bool) -> Finished {
        let gateway = self.world.gateway(self.environment());
        let proxy = gateway.explicit();
        let state = gateway.state().to_str().expect("the test's folder has a plain name");
        let trust = self.world.outgate(&["ca", "env", "--state-dir", state]);
        assert_eq!(trust.code(), 0, "{trust:?}");
        let settings = format!(
            "{}\nexport PROXY_HOST={} PROXY_PORT={} http_proxy=http://{proxy}\n\
             export https_proxy=$http_proxy HTTP_PROXY=$http_proxy HTTPS_PROXY=$http_proxy\n",
            if told_of_ca { trust.text() } else { String::new() },
            proxy.ip(),
            proxy.port()
        );
        let script = self.script(home, "proxy", self.client.by_proxy).replace(WEB, name);
        let script = settings + &script;
        let mut shell = Command::new("/bin/sh");
        clean(&mut shell).args(["-c", &script]).env("HOME", home.path());
        run(&mut shell, b"", DEADLINE)
    }

    /// Whether no request has come yet.
    pub(super) fn has_seen_nobody(&self) -> bool {
        self.host.authorizations().is_empty()
    }

    fn environment(&self) -> Value {
        let inject = json!({"Authorization": self.offer.secret});
        json!({"network": {"allowlist": [
            {"domain": WEB, "transform": inject},
            {"domain": GRPC, "transform": inject},
            {"domain": SSH, "protocol": "tcp", "ports": [SSH_PORT]},
        ]}})
    }

    fn script(&self, home: &TempDir, way: &str, needs: Needs) -> String {
        let quoted = |path: &Path| format!("'{}'", path.display());
        let folders = format!(
            "WAY={way} CLIENTS={} TOOLCHAIN={} HOST_FOLDER={}\n",
            quoted(&clients()),
            quoted(toolchain()),
            quoted(&self.offer.folder)
        );
        if matches!(self.client.speaks, Speaks::Ssh) {
            self.introduce(home.path());
        }
        format!("{folders}{BEFORE}{}", self.client.script(needs))
    }

    /// A home that has nothing but the programs; the same inside and outside.
    fn home(&self) -> TempDir {
        let home = tempfile::tempdir_in("/var/tmp").expect("/var/tmp is writable");
        copy_programs(home.path());
        home
    }

    /// Gives the client a key, and the host's.
    fn introduce(&self, home: &Path) {
        let from = self.offer.folder.join("ssh");
        let to = home.join("ssh");
        fs::create_dir(&to).expect("the home is writable");
        let copied = fs::copy(from.join("user"), to.join("user"));
        copied.expect("ssh-keygen made it");
        let key = fs::read_to_string(from.join("host.pub")).expect("ssh-keygen made it");
        let known = format!("[{SSH}]:{SSH_PORT} {key}");
        fs::write(to.join("known"), known).expect("the home is writable");
        let folder = to.display();
        let config = format!("IdentityFile {folder}/user\nUserKnownHostsFile {folder}/known\n");
        fs::write(to.join("config"), config).expect("the home is writable");
    }
}

fn copy_programs(folder: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/e2e/clients/programs");
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(from).arg(folder.join("programs"));
    fs::create_dir_all(folder).expect("the test's folder is writable");
    assert_eq!(run(&mut copy, b"", SOON).code(), 0);
}

/// Where `tests/real-clients` put what is not the system's.
fn clients() -> PathBuf {
    std::env::var_os("OUTGATE_CLIENTS").map(PathBuf::from).expect("run tests/real-clients")
}

/// The folder of the programs that build this: rustup's own look for them in the user's home.
fn toolchain() -> &'static Path {
    Path::new(env!("CARGO")).parent().expect("Cargo lies in a folder")
}
