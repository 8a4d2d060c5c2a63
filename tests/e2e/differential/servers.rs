//! Who reads what the gateway sends up?
//!
//! Servers as people run them, each at an address of its own, on port 80 and with TLS on 443. They
//! write down each whole request that they have read, and answer it with the status 299, which
//! nobody else uses. The strict origin of the tests is one of them, and what the others are
//! compared with.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use outgate_tests::command::{clean, run};
use outgate_tests::prelude::*;

/// Where the sources and settings of the servers are.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/e2e/differential");

/// Kept between runs, so that only the first compiles Go's libraries.
const GO_CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/go");

/// Without Go's libraries compiled before, also on a busy machine.
const BUILDING: Duration = Duration::from_secs(300);

/// An interpreter takes seconds to start on a busy machine.
const STARTING: Duration = Duration::from_secs(30);

/// One of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Apache,
    Go,
    Gunicorn,
    Nginx,
    Node,
    /// The origin of the tests, which repairs nothing.
    Strict,
}

/// All of them, running. Dropped, they are killed.
pub(crate) struct Servers {
    folder: PathBuf,
    strict: [Origin; 2],
    _running: Vec<Running>,
}

struct Running(Child);

impl Server {
    pub(crate) const ALL: [Server; 6] =
        [Server::Apache, Server::Go, Server::Gunicorn, Server::Nginx, Server::Node, Server::Strict];

    /// As long as that of the strict one, so that a length that counts it fits every server, and
    /// different in one letter, so that what is left of a cut one can be compared.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Server::Apache => "apa.example.com",
            Server::Go => "apg.example.com",
            Server::Gunicorn => "apu.example.com",
            Server::Nginx => "apn.example.com",
            Server::Node => "apd.example.com",
            Server::Strict => "api.example.com",
        }
    }

    pub(crate) fn address(self) -> &'static str {
        match self {
            Server::Apache => "11.22.33.101",
            Server::Go => "11.22.33.102",
            Server::Gunicorn => "11.22.33.103",
            Server::Nginx => "11.22.33.104",
            Server::Node => "11.22.33.105",
            Server::Strict => "11.22.33.44",
        }
    }
}

impl Servers {
    /// Starts them all, and waits until each listens.
    pub(crate) fn start(world: &World) -> Servers {
        let folder = network::folder();
        build(&folder.join("echo-go"));
        fs::copy(format!("{SOURCES}/echo.py"), folder.join("echo.py")).expect("a copy");
        // Their user is none of the privileged: Apache and nginx would change it.
        fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0").expect("it is ours");
        let mut running = Vec::new();
        for server in Server::ALL {
            world.name(server.name(), server.address());
            if server != Server::Strict {
                certify(world, server, &folder);
                running.extend(commands(server, &folder).into_iter().map(Running::start));
            }
        }
        let answer = "HTTP/1.1 299 Read\r\nContent-Length: 0\r\n\r\n";
        let name = Server::Strict.name();
        let strict = [world.http(name), world.https(name)].map(|one| one.respond(answer).start());
        for address in Server::ALL.map(Server::address) {
            wait_listening(&format!("{address}:80"), &folder);
            wait_listening(&format!("{address}:443"), &folder);
        }
        Servers { folder, strict, _running: running }
    }

    /// What the server has written down so far.
    pub(crate) fn notes(&self, server: Server) -> Vec<u8> {
        fs::read(readings(&self.folder, server)).unwrap_or_default()
    }

    /// The strict one, on this port.
    pub(crate) fn strict(&self, port: u16) -> &Origin {
        &self.strict[usize::from(port == 443)]
    }
}

impl Running {
    /// In a process namespace of its own, whose end is that of all that it has started.
    fn start((program, arguments, listener, readings): Start) -> Running {
        let mut command = Command::new("unshare");
        clean(&mut command)
            .args(["--user", "--map-user=1000", "--map-group=1000"])
            .args(["--pid", "--fork", "--kill-child", "--"])
            .arg(&program)
            .args(arguments)
            .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
            .env("READINGS", readings)
            .env("LISTENER", listener)
            .stdin(Stdio::null());
        let child = command.spawn();
        Running(child.unwrap_or_else(|fault| panic!("cannot start {program:?}: {fault}")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program, its arguments, the port that it may have to name, the file for its notes.
type Start = (PathBuf, Vec<String>, &'static str, PathBuf);

/// Builds the server in Go, which is Apache's program too.
///
/// # Panics
/// When Go is missing: `tests/real-clients` installs it.
pub(crate) fn build(program: &Path) {
    let mut go = Command::new("go");
    clean(&mut go).args(["build", "-o"]).arg(program).arg(format!("{SOURCES}/echo.go"));
    go.env("GOCACHE", GO_CACHE).env("GOPATH", GO_CACHE).env("GOTOOLCHAIN", "local");
    go.env("GO111MODULE", "off").env("GOPROXY", "off");
    let built = run(&mut go, b"", BUILDING);
    assert!(built.status.success(), "echo.go: {}", built.stderr);
}

fn readings(folder: &Path, server: Server) -> PathBuf {
    folder.join(format!("{server:?}.readings"))
}

fn certify(world: &World, server: Server, folder: &Path) {
    let identity = world.pki.leaf(server.name()).issue();
    let write = |kind, text| fs::write(folder.join(format!("{server:?}.{kind}")), text);
    write("crt", identity.chain_pem()).expect("the folder is ours");
    write("key", identity.key_pem()).expect("the folder is ours");
}

fn commands(server: Server, folder: &Path) -> Vec<Start> {
    let text = |path: PathBuf| path.display().to_string();
    let certificate = text(folder.join(format!("{server:?}.crt")));
    let key = text(folder.join(format!("{server:?}.key")));
    let three = vec![server.address().to_owned(), certificate.clone(), key.clone()];
    let one = |program: &str, arguments: Vec<String>| {
        vec![(PathBuf::from(program), arguments, "", readings(folder, server))]
    };
    match server {
        Server::Apache => {
            let settings = text(configure(server, "apache.conf", folder));
            one("apache2", vec!["-DFOREGROUND".to_owned(), "-f".to_owned(), settings])
        }
        Server::Nginx => {
            let settings = text(configure(server, "nginx.conf", folder));
            let errors = text(folder.join("nginx.error"));
            one("nginx", ["-e", &errors, "-c", &settings].map(str::to_owned).into())
        }
        Server::Go => one(&text(folder.join("echo-go")), three),
        Server::Node => one("node", [vec![format!("{SOURCES}/echo.js")], three].concat()),
        Server::Gunicorn => {
            let tls = ["--certfile", &certificate, "--keyfile", &key];
            vec![gunicorn("80", &[], folder), gunicorn("443", &tls, folder)]
        }
        Server::Strict => Vec::new(),
    }
}

/// One for each port: TLS holds for all of them.
fn gunicorn(port: &'static str, more: &[&str], folder: &Path) -> Start {
    let server = Server::Gunicorn;
    let place = folder.display().to_string();
    let bind = format!("{}:{port}", server.address());
    // The default kind of worker takes one request a connection.
    let own = ["--bind", &bind, "--worker-class", "gthread", "--threads", "8"];
    let rest = ["--keep-alive", "60", "--worker-tmp-dir", &place, "--chdir", &place];
    let arguments = own.iter().chain(&rest).chain(more).chain(&["echo:application"]);
    let arguments = arguments.map(|argument| (*argument).to_owned()).collect();
    (PathBuf::from("gunicorn"), arguments, port, readings(folder, server))
}

/// The settings of a server with this test's places filled in.
fn configure(server: Server, file: &str, folder: &Path) -> PathBuf {
    let mut text =
        fs::read_to_string(format!("{SOURCES}/{file}")).expect("it is in the repository");
    let place = |name: String| folder.join(name).display().to_string();
    for (name, value) in [
        ("@FOLDER@", folder.display().to_string()),
        ("@NAME@", server.name().to_owned()),
        ("@ADDRESS@", server.address().to_owned()),
        ("@CERTIFICATE@", place(format!("{server:?}.crt"))),
        ("@KEY@", place(format!("{server:?}.key"))),
        ("@READINGS@", readings(folder, server).display().to_string()),
        ("@PROGRAM@", place("echo-go".to_owned())),
        ("@MODULES@", "/usr/lib/apache2/modules".to_owned()),
    ] {
        text = text.replace(name, &value);
    }
    let settings = folder.join(file);
    fs::write(&settings, text).expect("the folder is ours");
    settings
}

fn wait_listening(address: &str, folder: &Path) {
    let address: SocketAddr = address.parse().expect("an address");
    let listens = || TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok();
    let errors = |name| fs::read_to_string(folder.join(name)).unwrap_or_default();
    assert!(
        wait_until(STARTING, listens),
        "nobody listens on {address}; is everything of tests/real-clients there?\n{}{}",
        errors("nginx.error"),
        errors("apache.error")
    );
}
