//! In whatever way a file is written, is its end in force, and never less than it says?

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;

/// A gateway whose environment is this file.
fn serving(world: &World, file: &Path) -> Gateway {
    let toml = format!("[[environment]]\nfile = {file:?}\n");
    world.gateway_builder().configuration(&toml).start()
}

fn text(names: &[&str]) -> String {
    allowing(names).to_string()
}

/// Nobody may notice how a file comes to be another: what both allow is allowed throughout.
fn without_a_gap(gateway: &Gateway, change: impl FnOnce()) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut refused = 0;
            while !over.load(Ordering::Relaxed) {
                let admitted = gateway.client().try_connect_tunnel("api.example.com:443").is_ok();
                refused += usize::from(!admitted);
                thread::sleep(Duration::from_millis(5));
            }
            refused
        });
        change();
        over.store(true, Ordering::Relaxed);
        assert_eq!(asking.join().expect("no panic"), 0, "requests were refused meanwhile");
    });
}

#[test]
fn written_in_place_renamed_over_and_deleted_first_it_is_in_force() {
    isolated(|| {
        let world = world!();
        let file = network::folder().join("one.json");
        fs::write(&file, text(&[API])).expect("writable");
        let gateway = serving(&world, &file);
        without_a_gap(&gateway, || {
            fs::write(&file, text(&[API, OK])).expect("writable");
            wait_admission(&gateway, OK, true);

            let new = file.with_extension("json~");
            fs::write(&new, text(&[API])).expect("writable");
            fs::rename(&new, &file).expect("writable");
            wait_admission(&gateway, OK, false);

            fs::remove_file(&file).expect("it is there");
            thread::sleep(Duration::from_millis(300));
            fs::write(&file, text(&[API, OK])).expect("writable");
            wait_admission(&gateway, OK, true);
        });
        assert_eq!(gateway.problems().len(), 0);
    });
}

#[test]
fn half_a_file_changes_nothing() {
    isolated(|| {
        let world = world!();
        let file = network::folder().join("one.json");
        fs::write(&file, text(&[API])).expect("writable");
        let gateway = serving(&world, &file);
        let whole = text(&[API, OK]);
        without_a_gap(&gateway, || {
            let mut open = File::create(&file).expect("writable");
            for piece in whole.as_bytes().chunks(whole.len() / 3) {
                open.write_all(piece).expect("writable");
                open.sync_all().expect("writable");
                thread::sleep(Duration::from_millis(250));
            }
            drop(open);
            wait_admission(&gateway, OK, true);
        });
    });
}

/// As the kubelet does with a config map: everything is a link to a link, which is turned.
#[test]
fn a_link_that_is_turned_brings_the_new_file() {
    isolated(|| {
        let world = world!();
        let folder = network::folder().join("config");
        let version = |name: &str, names: &[&str]| {
            fs::create_dir_all(folder.join(name)).expect("writable");
            fs::write(folder.join(name).join("one.json"), text(names)).expect("writable");
            symlink(name, folder.join("..tmp")).expect("writable");
            fs::rename(folder.join("..tmp"), folder.join("..data")).expect("writable");
        };
        version("..1", &[API]);
        let file: PathBuf = folder.join("one.json");
        symlink("..data/one.json", &file).expect("writable");
        let gateway = serving(&world, &file);
        without_a_gap(&gateway, || {
            version("..2", &[API, OK]);
            wait_admission(&gateway, OK, true);
            fs::remove_dir_all(folder.join("..1")).expect("it is there");
            version("..3", &[API]);
            wait_admission(&gateway, OK, false);
        });
        assert_eq!(gateway.problems().len(), 0);
    });
}

#[test]
fn a_new_token_lets_in_and_the_old_one_no_more() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).start();
        let folder = network::folder();
        let (file, token) = (folder.join("one.json"), folder.join("one.token"));
        let tokens = [canary(32), canary(32)];
        fs::write(&file, text(&[API])).expect("writable");
        fs::write(&token, &tokens[0]).expect("writable");
        let toml = format!(
            "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:0\"\n\
             [[environment]]\nfile = {file:?}\ntoken_file = {token:?}\n"
        );
        let builder = world.gateway_builder().configuration(&toml);
        let gateway = builder.listeners_from_configuration().start();
        let mut client = gateway.client();
        let mut status = |token: &str| {
            let claim = STANDARD.encode(format!("one:{token}"));
            let request = format!(
                "GET https://{API}/ HTTP/1.1\r\nHost: {API}\r\nProxy-Authorization: Basic {claim}\r\n\r\n"
            );
            client.exchange(request).status
        };
        assert_eq!((status(&tokens[0]), status(&tokens[1])), (200, 407));
        fs::write(&token, &tokens[1]).expect("writable");
        assert!(wait_until(SOON, || status(&tokens[1]) == 200));
        assert_eq!(status(&tokens[0]), 407);

        // One that can't be read leaves the last one in force.
        fs::write(&token, "\n").expect("writable");
        assert!(wait_until(SOON, || !gateway.problems().is_empty()));
        assert_eq!((status(&tokens[1]), status("")), (200, 407));
        assert!(gateway.problems()[0].starts_with("one.token "), "{:?}", gateway.problems());
        for token in &tokens {
            assert_secret_absent(gateway.output(), token);
        }
    });
}
