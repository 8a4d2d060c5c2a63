//! Does a file that blocks, or has no end, hold anything up?

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;

/// Two environments, and every file that one of them may name. The listener is the first one's.
struct Place(PathBuf);

impl Place {
    fn new(world: &World) -> Place {
        let folder = tempfile::tempdir_in(network::folder()).expect("the test's folder").keep();
        let place = Place(folder);
        world.pki.leaf("gateway.corp.test").for_clients_only().issue().write(&place.0, "client");
        fs::copy(world.pki.roots(), place.path("roots.pem")).expect("writable");
        place.write("token", &canary(40));
        place.write("one.json", &allowing(&[API]).to_string());
        let origin = json!({"roots": "roots.pem", "client_certificate": "client.pem",
            "client_key": "client.key"});
        let two = json!({"network": {"allowlist": [{"domain": OK, "origin": origin}]}});
        place.write("two.json", &two.to_string());
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("writable");
    }

    fn toml(&self, more: &str) -> String {
        let [one, two, token] = ["one.json", "two.json", "token"].map(|name| self.path(name));
        format!(
            "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:0\"\nenvironment = \"one\"\n\
             [[environment]]\nfile = {one:?}\n\
             [[environment]]\nfile = {two:?}\ntoken_file = {token:?}\n{more}\n"
        )
    }

    fn gateway(&self, world: &World, more: &str) -> outgate_tests::gateway::Builder {
        world.gateway_builder().listeners_from_configuration().configuration(&self.toml(more))
    }
}

fn pipe(path: &Path) {
    mkfifo(path, Mode::S_IRWXU).expect("a pipe can be made");
}

/// A link to a device without end.
fn zeroes(path: &Path) {
    symlink("/dev/zero", path).expect("writable");
}

fn folder(path: &Path) {
    fs::create_dir(path).expect("writable");
}

/// With a hole that takes no room on the disk.
fn huge(path: &Path) {
    File::create(path).and_then(|file| file.set_len(1 << 40)).expect("writable");
}

#[test]
fn a_reload_that_meets_no_readable_file_says_so_and_takes_the_others() {
    isolated(|| {
        let world = world!();
        let _ok = world.https(OK).start();
        for name in ["two.json", "token", "roots.pem", "client.pem", "client.key"] {
            let place = Place::new(&world);
            let gateway = place.gateway(&world, "").start();
            for (make, said) in [
                (pipe as fn(&Path), "is a named pipe"),
                (zeroes, "is a device"),
                (folder, "is a folder"),
                (huge, "is larger than"),
            ] {
                let file = place.path(name);
                fs::rename(&file, place.path("kept")).expect("it is there");
                make(&file);
                gateway.reload();
                place.write("one.json", &allowing(&[API, OK]).to_string());
                wait_admission(&gateway, OK, true);
                assert!(gateway.wait_log(said), "{name} {said}: {:?}", gateway.logs());
                // Said first, then told.
                let told = || gateway.problems().len() == 1;
                assert!(wait_until(SOON, told), "{name} {said}: {:?}", gateway.problems());
                // Nothing is believed of it later either, and what is good again is.
                fs::rename(&file, place.path(said)).expect("it is there");
                fs::rename(place.path("kept"), &file).expect("it is there");
                place.write("one.json", &allowing(&[API]).to_string());
                wait_admission(&gateway, OK, false);
                assert!(wait_until(SOON, || gateway.problems().is_empty()), "{name} {said}");
            }
        }
    });
}

#[test]
fn an_operator_s_file_that_turns_into_a_pipe_keeps_no_environment_from_changing() {
    isolated(|| {
        let world = world!();
        let _ok = world.https(OK).start();
        let place = Place::new(&world);
        let configuration = place.path("outgate.toml");
        place.write("outgate.toml", &place.toml(""));
        let gateway = world.gateway_builder().listeners_from_configuration();
        let gateway = gateway.argument("--config").argument(&configuration).start();
        fs::remove_file(&configuration).expect("it is there");
        pipe(&configuration);
        place.write("one.json", &allowing(&[API, OK]).to_string());
        gateway.reload();
        wait_admission(&gateway, OK, true);
        assert!(gateway.wait_log("outgate.toml: it is a named pipe"), "{:?}", gateway.logs());
    });
}

#[test]
fn a_start_that_meets_a_pipe_ends_and_names_it() {
    isolated(|| {
        let world = world!();
        for more in [
            "[ca]\ncertificate = \"PIPE\"\nkey = \"client.key\"",
            "[ca]\ncertificate = \"client.pem\"\nkey = \"PIPE\"",
            "[store]\nkey_file = \"PIPE\"",
            "[[environment]]\nfile = \"PIPE\"",
            "[[environment]]\nfile = \"one.json\"\ntoken_file = \"PIPE\"",
        ] {
            let place = Place::new(&world);
            pipe(&place.path("PIPE"));
            let more = ["PIPE", "client.pem", "client.key", "one.json"].iter().fold(
                more.to_owned(),
                |more, name| {
                    more.replace(&format!("\"{name}\""), &format!("{:?}", place.path(name)))
                },
            );
            let more = more.replace("one.json", "three.json");
            fs::copy(place.path("one.json"), place.path("three.json")).expect("writable");
            let failed = place.gateway(&world, &more).try_start().err();
            let failed = failed.unwrap_or_else(|| panic!("it started with {more}"));
            let last = failed.output.lines().last().unwrap_or_default();
            assert!(last.contains("PIPE") && last.contains("is a named pipe"), "{more}: {last}");
            let place = Place::new(&world);
            drop(place.gateway(&world, "").start());
        }
    });
}

#[test]
fn a_secret_s_file_that_turns_into_a_pipe_is_no_value_and_delays_nobody() {
    isolated(|| {
        let world = world!();
        let api = world.https(API).start();
        let _ok = world.https(OK).start();
        let secret = canary(40);
        let file = network::folder().join("secret");
        fs::write(&file, &secret).expect("writable");
        let gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": API, "credential": "main"}, {"domain": OK}]}}));
        let token = json!({"from_file": file});
        let stored = json!({"id": "main", "type": "bearer_token", "token": token});
        assert_eq!(gateway.api("POST", "/v1beta/credentials", &stored).status, 200);
        let answer = || {
            let answer = gateway.curl(&format!("https://{API}/")).run();
            (answer.status, answer.reason().map(str::to_owned))
        };
        assert_eq!(answer(), (200, None));
        let expected = format!("Bearer {secret}");
        assert_eq!(api.requests()[0].header("authorization"), Some(expected.as_str()));
        for make in [pipe as fn(&Path), zeroes, folder, huge] {
            fs::rename(&file, file.with_extension("kept")).expect("it is there");
            make(&file);
            std::thread::sleep(Duration::from_millis(150));
            assert_eq!(answer(), (403, Some("credential_unavailable".to_owned())));
            assert_eq!(gateway.curl(&format!("https://{OK}/")).run().status, 200);
            if file.is_dir() {
                fs::remove_dir(&file).expect("it is empty");
            }
            fs::rename(file.with_extension("kept"), &file).expect("it is there");
            std::thread::sleep(Duration::from_millis(150));
            assert_eq!(answer(), (200, None));
        }
        assert!(gateway.wait_log("secret can't be read: it is a named pipe"));
        assert_secret_absent(gateway.output(), &secret);
    });
}
