//! Is a file believed that the command could see or write when it was named?

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::*;

/// Whether what is said by `environment` is in force for a command that runs already, in whose place
/// it lies at `file`; with the log.
fn is_believed(
    place: &Place,
    file: &str,
    environment: &Value,
    meanwhile: impl FnOnce(),
) -> (bool, String) {
    let before = json!({"network": {"allowlist": [{"domain": OK}]}});
    place.write(file, &before.to_string());
    let words = ["run", "--environment", file].map(OsStr::new);
    let mut command = place.outgate(&words);
    command.arg("--origin-roots").arg(place.world.pki.roots());
    let (said, asked) = (status(API), until_allowed(OK));
    command.args(["--", "/bin/sh", "-c"]);
    let there = until_there("changed");
    command.arg(format!("echo > up; {there}; {said}; {asked}; rm up changed"));
    command.stdout(Stdio::piped()).stderr(fs::File::create(place.path("log")).expect("writable"));
    let child = command.spawn().expect("it starts");
    assert!(wait_until(SOON * 4, || place.path("up").exists()));
    let log = || fs::read_to_string(place.path("log")).expect("it is there");
    meanwhile();
    place.write(file, &environment.to_string());
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGHUP).expect("it runs");
    let settled = || log().contains("start anew") || log().contains("is warned of");
    assert!(wait_until(SOON * 4, settled), "{}", log());
    place.write("changed", "");
    let (said, _) = ended(child);
    assert!(said.ends_with("\n200 \n"), "what was in force stays so: {said}");
    (said.starts_with("200"), log())
}

#[test]
fn a_file_that_is_named_while_the_command_runs_is_read_only_if_it_is_hidden() {
    isolated(|| {
        let place = Place::new();
        let _api = place.world.https(API).start();
        let _ok = place.world.https(OK).start();
        let client = place.world.pki.leaf("gateway.corp.test").for_clients_only().issue();
        // An unknown field is warned of when it is in force.
        let says = |origin: Value| {
            let entries = json!([{"domain": API, "origin": origin}, {"domain": OK}]);
            json!({"is warned of": 1, "network": {"allowlist": entries}})
        };
        let named = says(json!({"client_certificate": "client.pem", "client_key": "client.key"}));
        client.write(&place.path(""), "client");
        let (believed, log) = is_believed(&place, "env.json", &named, || {});
        assert!(!believed, "{log}");
        let told = "network.allowlist[0].origin: ";
        let line = log.lines().find(|line| line.contains(told)).expect(&log);
        assert!(line.contains("client.pem: it was not there, or not named, when"), "{line}");
        // Without a new file, and with one in a folder that is hidden whole.
        let (believed, log) =
            is_believed(&place, "env.json", &says(json!({"min_tls": "1.2"})), || {});
        assert!(believed, "{log}");
        fs::create_dir(place.path("own")).expect("writable");
        for (folder, is_good) in [("", true), ("../own/", false)] {
            let path = |name: &str| format!("{folder}{name}");
            let named = says(json!({"client_certificate": path("client.pem"),
                "client_key": path("client.key")}));
            let bring = || client.write(&place.path("own"), "client");
            let (believed, log) = is_believed(&place, "own/env.json", &named, bring);
            assert_eq!(believed, is_good, "`{folder}`: {log}");
            for name in ["client.pem", "client.key"] {
                fs::remove_file(place.path("own").join(name)).expect("it is there");
            }
        }
    });
}

#[test]
fn an_audit_file_that_is_named_while_the_command_runs_is_not_written() {
    isolated(|| {
        let place = Place::new();
        let _ok = place.world.https(OK).start();
        place.write("outgate.toml", "");
        let words = ["run", "--environment", "env.json", "--config", "outgate.toml"];
        let mut command = place.outgate(&words.map(OsStr::new));
        command.arg("--origin-roots").arg(place.world.pki.roots()).args(["--", "/bin/sh", "-c"]);
        let script = format!("echo > up; {}; {}", until_there("changed"), status(OK));
        command.arg(script).stdout(Stdio::piped());
        command.stderr(fs::File::create(place.path("log")).expect("writable"));
        let child = command.spawn().expect("it starts");
        assert!(wait_until(SOON * 4, || place.path("up").exists()));
        fs::write(place.path("outgate.toml"), "[audit]\nfile = \"late\"").expect("writable");
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGHUP).expect("it runs");
        let log = || fs::read_to_string(place.path("log")).expect("it is there");
        assert!(wait_until(SOON * 4, || log().contains("late: it was not there")), "{}", log());
        assert!(log().contains("what it said last is in force"), "{}", log());
        place.write("changed", "");
        assert_eq!(ended(child).0, "200 \n");
        assert!(
            !place.path("late").exists() && log().contains("\"kind\":\"request\""),
            "{}",
            log()
        );
    });
}
