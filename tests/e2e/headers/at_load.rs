//! Is a header that must never be injected refused before anything runs?

use std::fs;

use outgate_tests::command::Finished;
use outgate_tests::prelude::*;

/// `outgate check` on an environment whose second entry has this transform.
fn check(world: &World, transform: &str) -> Finished {
    let file = network::folder().join("environment.json");
    let text = format!(
        r#"{{"network": {{"allowlist": [{{"domain": "a.ok.example.test"}},
            {{"domain": "api.example.com", "transform": {transform}}}]}}}}"#
    );
    fs::write(&file, text).expect("the test's folder is writable");
    world.outgate(&["check", &file.display().to_string()])
}

fn refused(world: &World, transform: &str) -> String {
    let finished = check(world, transform);
    let said = format!("{}{}", finished.text(), finished.stderr);
    assert_eq!(finished.code(), 1, "{transform} was accepted: {said}");
    assert!(said.contains("allowlist[1]"), "{transform}: no place in {said}");
    said
}

#[test]
fn refuses_headers_that_frame_route_or_belong_to_one_connection() {
    isolated(|| {
        let world = world!();
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "CONNECTION",
            "Upgrade",
            "TE",
            "Trailer",
            "Expect",
            "Keep-Alive",
            "Proxy-Authorization",
            "Proxy-Connection",
            "Proxy-X",
            ":authority",
            ":path",
            "",
            "X Y",
            "X:Y",
            "X\\r\\nY",
            "X\\u0000",
            "\u{e9}",
        ] {
            refused(&world, &format!(r#"{{"{name}": "1"}}"#));
        }
        let twice = [
            r#"{"Authorization": "1", "authorization": "2"}"#,
            r#"[{"Authorization": "1"}, {"AUTHORIZATION": "2"}]"#,
            r#"{"X-A": "1", "X-A": "1"}"#,
        ];
        for transform in twice {
            refused(&world, transform);
        }
        let control = check(&world, r#"[{"Authorization": "1"}, {"X-Host": "2"}]"#);
        assert_eq!(control.code(), 0, "{}", control.stderr);
    });
}

#[test]
fn refuses_values_that_could_become_another_line_without_repeating_them() {
    isolated(|| {
        let world = world!();
        let secret = canary(32);
        let values = [
            format!("{secret}\\r\\nX-Evil: 1"),
            format!("{secret}\\n"),
            format!("{secret}\\r"),
            format!("{secret}\\u0000"),
            format!("t\u{f6}{secret}"),
            format!(" {secret} "),
            format!("{secret}\\t"),
            format!("{secret}\\u007f"),
            format!("{secret}{}", "x".repeat(64 << 10)),
        ];
        for value in values {
            let said = refused(&world, &format!(r#"{{"X-Key": "{value}"}}"#));
            assert_secret_absent(&said, &secret);
        }
        assert_eq!(check(&world, &format!(r#"{{"X-Key": "{secret}"}}"#)).code(), 0);
    });
}

#[test]
fn an_environment_with_such_a_value_denies_everything() {
    isolated(|| {
        let world = world!();
        let secret = canary(32);
        let origin = world.https("api.example.com").start();
        let entry =
            json!({"domain": "api.example.com", "transform": {"X-Key": format!("{secret}\n")}});
        let outcome = world
            .gateway_builder()
            .environment(&json!({"network": {"allowlist": [entry]}}))
            .try_start();
        match outcome {
            Ok(gateway) => {
                let answer = gateway.curl("https://api.example.com/").run();
                assert_ne!(answer.connect_status, 200, "{answer:?}");
                assert_secret_absent(gateway.output(), &secret);
            }
            Err(failed) => assert_secret_absent(&failed.output, &secret),
        }
        assert_eq!(origin.connections(), 0);
    });
}
