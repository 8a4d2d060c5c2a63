//! What does the program keep, and what survives the worst end?

use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use outgate_tests::command::clean;
use outgate_tests::prelude::*;

fn only_api() -> serde_json::Value {
    json!({"network": {"allowlist": [{"domain": "api.example.com"}]}})
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o777
}

#[test]
fn the_state_folder_and_what_is_in_it_are_for_their_owner_alone() {
    isolated(|| {
        let world = world!();
        let gateway = world.gateway(only_api());
        assert_eq!(mode(gateway.state()), 0o700);
        let names = |folder: &Path| -> HashSet<String> {
            let files = fs::read_dir(folder).expect("it is ours").filter_map(Result::ok);
            files.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
        };
        let secret =
            ["ca.key", "credentials.redb", "management.key", "management.sock", "store.key"];
        let expected = secret.into_iter().chain([".ca.lock", "ca.pem"]).map(str::to_owned);
        assert_eq!(names(gateway.state()), expected.collect());
        for secret in secret {
            assert_eq!(mode(&gateway.state().join(secret)), 0o600, "{secret}");
        }
    });
}

#[test]
fn a_state_folder_that_others_may_enter_is_refused_unless_it_is_empty() {
    isolated(|| {
        let world = world!();
        let folder = |name: &str, mode: u32| {
            let folder = network::folder().join(name);
            fs::create_dir(&folder).expect("the test's folder is writable");
            fs::set_permissions(&folder, Permissions::from_mode(mode)).expect("it is ours");
            folder
        };
        let start = |state: &Path| world.gateway_builder().environment(&only_api()).state(state);
        let empty = folder("empty", 0o755);
        drop(start(&empty).start());
        assert_eq!(mode(&empty), 0o700);
        let home = folder("home", 0o755);
        fs::write(home.join("letter"), "dear").expect("it is ours");
        for (state, said) in [(home, "chmod 700"), (folder("shared", 0o1777), "chmod 700")] {
            let failed = start(&state).try_start().err().expect("others may look inside");
            assert_eq!((failed.code, failed.stdout.as_str()), (Some(70), ""));
            assert!(failed.output.contains(said), "{}", failed.output);
        }
    });
}

#[test]
fn a_gateway_killed_under_load_is_back_at_once_with_the_same_ca_and_key() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let state = network::folder().join("kept");
        let start = || world.gateway_builder().environment(&only_api()).state(&state).start();
        let mut gateway = start();
        let kept =
            || ["ca.pem", "ca.key", "management.key"].map(|name| fs::read(state.join(name)).ok());
        let before = kept();
        for _ in 0..8 {
            let curl = |_| gateway.curl("https://api.example.com/").start();
            let under_way: Vec<_> = (0..3).map(curl).collect();
            gateway.kill();
            let address = gateway.explicit();
            let down = std::net::TcpStream::connect_timeout(&address, Duration::from_secs(1));
            assert!(down.is_err(), "while it is down nothing passes");
            let started = Instant::now();
            gateway = start();
            assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
            assert_eq!(kept(), before, "nothing is made anew, nothing is torn");
            assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
            under_way.into_iter().for_each(outgate_tests::client::RunningCurl::kill);
        }
        let ready = gateway.management("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(ready.status, 200, "the stale socket was replaced");
    });
}

#[test]
fn a_first_start_that_was_killed_leaves_nothing_that_stops_the_next() {
    isolated(|| {
        let world = world!();
        for delay in [0, 2, 5, 10, 20, 40] {
            let state = network::folder().join(format!("torn-{delay}"));
            let mut first = serve(&state, |_| {});
            std::thread::sleep(Duration::from_millis(delay));
            first.kill().expect("it is ours");
            first.wait().expect("it is ours");
            let builder = world.gateway_builder().environment(&only_api()).state(&state);
            let gateway = builder.start();
            assert!(gateway.ca().exists());
        }
    });
}

#[test]
fn two_gateways_never_share_one_management_socket() {
    isolated(|| {
        let world = world!();
        let first = world.gateway(only_api());
        let builder = world.gateway_builder().environment(&only_api()).state(first.state());
        let failed = builder.try_start().err().expect("the socket is in use");
        assert_eq!(failed.code, Some(70), "{}", failed.output);
        assert!(failed.output.contains("another gateway"), "{}", failed.output);
        let ready = first.management("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(ready.status, 200, "and the first one keeps it");
    });
}

#[test]
fn a_process_of_the_same_user_cannot_look_into_its_memory() {
    isolated(|| {
        let _world = world!();
        let mut gateway = serve(&network::folder().join("state"), without_capabilities);
        let socket = network::folder().join("state/management.sock");
        assert!(wait_until(Duration::from_secs(10), || socket.exists()));
        let mut control = Command::new("sleep");
        without_capabilities(control.arg("60"));
        let mut control = control.spawn().expect("sleep is installed");
        let may_read = |child: &Child| {
            let mut cat = Command::new("cat");
            without_capabilities(cat.arg(format!("/proc/{}/environ", child.id())));
            let status = cat.stdout(Stdio::null()).stderr(Stdio::null()).status();
            status.expect("cat is installed").success()
        };
        assert!(may_read(&control), "the control: such a process may look into another");
        assert!(!may_read(&gateway));
        let limits = fs::read_to_string(format!("/proc/{}/limits", gateway.id()));
        let limits = limits.expect("anybody may read limits");
        let core = limits.lines().find(|line| line.starts_with("Max core file size"));
        let values: Vec<&str> = core.expect("Linux lists it").split_whitespace().skip(4).collect();
        assert_eq!(values[..2], ["0", "0"]);
        for child in [&mut gateway, &mut control] {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
    });
}

/// `outgate serve`, started with `change` and not waited for.
fn serve(state: &Path, change: impl FnOnce(&mut Command)) -> Child {
    let file = network::folder().join("e.json");
    fs::write(&file, "{}").expect("the test's folder is writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_outgate"));
    clean(&mut command).args(["serve", "--listen", "127.0.0.1:0", "--environment"]).arg(file);
    command.arg("--state-dir").arg(state).stdout(Stdio::null()).stderr(Stdio::null());
    change(&mut command);
    command.spawn().expect("the program was built")
}

/// Root inside a namespace may look into everything there; after this it is a user like any other.
fn without_capabilities(command: &mut Command) {
    #[expect(unsafe_code, reason = "only the forked child can give up what its parent keeps")]
    // SAFETY: the closure makes system calls with constants.
    unsafe {
        command.pre_exec(|| {
            let no_root = libc::SECBIT_NOROOT | libc::SECBIT_NOROOT_LOCKED;
            match libc::prctl(libc::PR_SET_SECUREBITS, no_root) {
                0 => Ok(nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
}
