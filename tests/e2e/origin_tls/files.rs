//! Which files, and who may name them?

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outgate_tests::command::run;
use outgate_tests::wait::SOON;

use super::*;

#[test]
fn a_gateway_whose_environment_names_a_bad_file_denies_it_everything() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        let place = Place::new();
        place.identity(&world, "one");
        place.identity(&world, "other");
        let pair = |certificate: &str, key: &str| json!({"client_certificate": certificate, "client_key": key});
        for (said, field) in [
            (json!({"roots": "missing.pem"}), "roots"),
            (json!({"roots": "one.key"}), "roots"),
            (pair("missing.pem", "one.key"), "client_certificate"),
            (pair("one.key", "one.key"), "client_certificate"),
            (pair("one.pem", "missing.key"), "client_key"),
            (pair("one.pem", "one.pem"), "client_key"),
            (pair("one.pem", "other.key"), "client_key"),
        ] {
            let gateway = place.gateway(&world, &said).start();
            let place_of_fault = format!("network.allowlist[0].origin.{field}: ");
            assert!(gateway.wait_log(&place_of_fault), "{said}: {:?}", gateway.logs());
            let answer = gateway.curl(URL).run();
            assert_eq!(answer.connect_status.max(answer.status), 403, "{said}");
            let file = place.folder.join("env_test.json");
            let checked = world.outgate(&["check", file.to_str().expect("text")]);
            assert_eq!(checked.status.code(), Some(1), "{said}");
            let text = format!("{}{}", String::from_utf8_lossy(&checked.stdout), checked.stderr);
            assert!(text.contains(&place_of_fault), "{said}: {text}");
        }
        assert_eq!(origin.connections(), 0);
        let file = place.says(&pair("one.pem", "one.key"));
        let checked = world.outgate(&["check", file.to_str().expect("text")]);
        assert_eq!(checked.status.code(), Some(0), "{}", checked.stderr);
    });
}

#[test]
fn the_api_takes_no_files_but_a_newer_tls() {
    isolated(|| {
        let world = world!();
        let place = Place::new();
        place.identity(&world, "client");
        let path = |name: &str| place.folder.join(name);
        let gateway = world.gateway(json!({}));
        let key = fs::read_to_string(gateway.state().join("management.key")).expect("it is ours");
        let made = |origin: Value| {
            let body = json!({"network": {"allowlist": [{"domain": API, "origin": origin}]}});
            let body = body.to_string();
            gateway.management(format!(
                "POST /v1beta/environments HTTP/1.1\r\nHost: x\r\nx-goog-api-key: {}\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                key.trim(),
                body.len()
            ))
        };
        for said in [
            json!({"roots": world.pki.roots()}),
            json!({"client_certificate": path("client.pem"), "client_key": path("client.key")}),
        ] {
            let answer = made(said);
            assert_eq!(answer.status, 400, "{}", answer.text());
            assert!(answer.text().contains("in an environment file only"), "{}", answer.text());
        }
        assert_eq!(made(json!({"min_tls": "1.3"})).status, 200);
    });
}

#[test]
fn a_command_in_a_sandbox_uses_them_and_sees_none() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).identity(world.pki.leaf(API).by_unknown_root().issue());
        let origin = origin.demand_certificate(world.pki.root_store()).start();
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let place = Place { folder: folder.path().to_owned() };
        place.identity(&world, "client");
        place.copy(world.pki.unknown_roots(), "corp.pem");
        place.copy(world.pki.roots(), "more.pem");
        let file = place.says(&json!({
            "roots": "corp.pem", "client_certificate": "client.pem", "client_key": "client.key",
        }));
        let config = format!("[origin]\nroots = [{:?}]\n", folder.path().join("more.pem"));
        let program = Path::new(env!("CARGO_BIN_EXE_outgate"));
        let sandbox = Run::new(program).configuration(&config);
        let sandbox = sandbox.argument("--environment").argument(file);
        let script = format!(
            "curl -sS -o /dev/null -w '%{{http_code}}' {URL}; cd {:?}; \
             for f in corp.pem client.pem client.key more.pem env_test.json; do \
             grep -q . $f && echo seen $f; done; true",
            folder.path()
        );
        let done = run(&mut sandbox.command(&["/bin/sh", "-c", &script]), b"", SOON * 8);
        assert_eq!(String::from_utf8_lossy(&done.stdout), "200", "{}", done.stderr);
        assert_eq!(origin.requests().len(), 1);
    });
}

/// What a person reads again by SIGHUP must not be what the command has written.
#[test]
fn a_file_that_the_command_may_have_written_is_not_believed() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).identity(world.pki.leaf(API).by_unknown_root().issue());
        let _origin = origin.start();
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let place = Place { folder: folder.path().to_owned() };
        place.copy(world.pki.unknown_roots(), "corp.pem");
        let file = place.says(&json!({"roots": "corp.pem"}));
        let asks = format!("curl -sS -o /dev/null -w '%{{http_code}} ' --no-keepalive {URL}");
        let script = format!("{asks}; touch ready; until test -e go; do sleep 0.02; done; {asks}");
        let sandbox = world.run().argument("--environment").argument(file);
        let mut command = sandbox.command(&["/bin/sh", "-c", &script]);
        // Where it works is not hidden with what is in there.
        command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        assert!(wait_until(SOON * 4, || folder.path().join("ready").exists()));
        // As an editor does: what hid the old one does not hide the new one.
        place.copy(world.pki.roots(), "new.pem");
        let [new, old] = ["new.pem", "corp.pem"].map(|name| folder.path().join(name));
        fs::rename(new, old).expect("the folder is writable");
        let pid = Pid::from_raw(child.id().cast_signed());
        kill(pid, Signal::SIGHUP).expect("it runs");
        std::thread::sleep(Duration::from_secs(1));
        fs::write(folder.path().join("go"), "").expect("the folder is writable");
        let done = child.wait_with_output().expect("it ends");
        let (out, log) =
            (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert_eq!(out, "200 200 ", "{log}");
        assert!(log.contains("another one was put in its place"), "{log}");
    });
}
