//! Is every mistake in the operator's file one sentence that names the key and its place?

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

use outgate_tests::gateway::FailedStart;
use outgate_tests::prelude::*;

fn open() -> serde_json::Value {
    json!({"environment_id": "e1", "network": {"allowlist": [{"domain": "api.example.com"}]}})
}

/// Starts with this operator's file beside an environment `e1.json` and a token, and no flags.
fn start(world: &World, configuration: &str) -> Result<Gateway, FailedStart> {
    let folder = network::folder();
    for (name, text) in [("e1.json", open().to_string()), ("token", canary(40))] {
        fs::write(folder.join(name), text).expect("the folder is writable");
    }
    let configuration = configuration.replace("HERE", &folder.display().to_string());
    Gateway::builder(env!("CARGO_BIN_EXE_outgate"))
        .origin_roots(world.pki.roots())
        .listeners_from_configuration()
        .configuration(&configuration)
        .try_start()
}

#[test]
fn a_mistake_is_one_sentence_with_its_line_its_key_and_what_would_be_right() {
    isolated(|| {
        let world = world!();
        for (text, said) in [
            ("[limits]\nconect = \"3s\"", "outgate.toml:2: unknown field `conect`"),
            ("[limits]\nconnect = \"3\"", "outgate.toml:2: `3` is not a duration: write"),
            ("[limits]\nconnect = \"0s\"", "outgate.toml:2: `0s` is not a duration"),
            ("[limits]\nconnections = 0", "outgate.toml:2: 0 would refuse everything"),
            ("[limits]\nrequest_head_bytes = 100", "outgate.toml:2: write 8192 or more"),
            ("\n[adresses]\nallow = []", "outgate.toml:2: unknown field `adresses`"),
            ("[addresses]\nallow = [\"10.1.2.3/24\"]", "outgate.toml:2: `10.1.2.3/24` has bits"),
            ("[addresses]\nallow = [\"127.0.0.0/8\"]", "addresses.allow[0]"),
            ("[addresses]\nallow = [\"169.254.169.254/32\"]", "addresses.allow[0]"),
            ("[[listener]]\nkind = \"explict\"", "outgate.toml:2: unknown variant `explict`"),
            (
                "[[environment]]\ninterface = \"a b\"",
                "outgate.toml:2: `a b` is no name of a network",
            ),
            ("[refusals]\nconnect = \"quietly\"", "outgate.toml:2: unknown variant `quietly`"),
            ("[upstream]\nproxy = \"socks5://p:1\"", "outgate.toml:2: SOCKS is not spoken"),
            ("[upstream]\nno_proxy = [\"*.corp\"]", "[upstream]: without `proxy`"),
            ("state_dir = \"a\"\nstate_dir = \"b\"", "outgate.toml:2: duplicate key"),
            ("[[environment]]\nfile = \"HERE/absent.json\"", "absent.json"),
            ("[[environment]]\nfile = \"HERE/e1.json\"\ntoken_file = \"HERE/absent\"", "absent"),
            (
                "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:0\"\nenvironment = \"e9\"",
                "`e9`",
            ),
        ] {
            let failed =
                start(&world, text).err().unwrap_or_else(|| panic!("it started with {text}"));
            assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""), "{}", failed.output);
            // Warnings about what else is there may come before.
            let last = failed.output.lines().last().unwrap_or_default();
            assert!(last.starts_with("outgate: ") && last.contains(said), "{text}: {last}");
        }
    });
}

#[test]
fn a_listener_that_anybody_reaches_needs_a_way_to_know_its_clients() {
    isolated(|| {
        let world = world!();
        for bind in ["0.0.0.0:3128", "[::]:3128", "11.22.33.99:3128", "10.0.0.1:3128"] {
            let listener = |more: &str| {
                format!("[[listener]]\nkind = \"explicit\"\nbind = \"{bind}\"\n{more}\n")
            };
            let environment =
                |more: &str| format!("[[environment]]\nfile = \"HERE/e1.json\"\n{more}\n");
            for listener in [listener(""), listener("environment = \"e1\"")] {
                let failed = start(&world, &(environment("") + &listener)).err();
                let failed = failed.unwrap_or_else(|| panic!("{bind} is an open proxy"));
                assert_eq!((failed.code, failed.stdout.as_str()), (Some(70), ""));
                assert!(failed.output.contains(bind), "{}", failed.output);
                let known = environment("token_file = \"HERE/token\"") + &listener;
                assert!(start(&world, &known).is_ok(), "{bind} with a token");
            }
        }
    });
}

#[test]
fn a_listener_given_by_a_flag_is_held_to_the_same_rule() {
    isolated(|| {
        let world = world!();
        for bind in ["0.0.0.0:0", "[::]:0"] {
            let builder = world.gateway_builder().environment(&open()).listen(bind);
            let failed = builder.try_start().err().expect("it would be an open proxy");
            assert_eq!(failed.code, Some(70), "{}", failed.output);
        }
        for bind in ["127.0.0.1:0", "[::1]:0"] {
            drop(world.gateway_builder().environment(&open()).listen(bind).start());
        }
    });
}

#[test]
fn an_environment_file_that_is_broken_is_told_and_denied_everything() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").start();
        let misspelt = json!({"network": {"alowlist": [{"domain": "*"}]}}).to_string();
        let twice = r#"{"network": "disabled", "network": {"allowlist": [{"domain": "*"}]}}"#;
        for broken in ["{", r#"{"network": {}}"#, r#"{"network": null}"#, &misspelt, twice] {
            let gateway = world.gateway_builder().environment_text(broken).start();
            assert!(gateway.wait_log("everything is denied"), "{broken}");
            let refused = gateway.client().try_connect_tunnel("api.example.com:443").err();
            assert_eq!(refused.expect("a refusal").status, 403, "{broken}");
        }
        assert_eq!(api.connections(), 0);
    });
}

#[test]
fn a_unix_socket_is_a_listener_for_its_group_and_goes_with_the_gateway() {
    isolated(|| {
        let world = world!();
        let socket = network::folder().join("one.sock");
        let configuration = "[[environment]]\nfile = \"HERE/e1.json\"\n[[listener]]\n\
             kind = \"explicit\"\nbind = \"127.0.0.1:0\"\n[[listener]]\nkind = \"explicit\"\n\
             bind = \"unix:HERE/one.sock\"\nenvironment = \"e1\"\n";
        let mut gateway = start(&world, configuration).expect("it starts");
        let mode = fs::metadata(&socket).expect("the socket is there").mode() & 0o777;
        assert_eq!(mode, 0o660);
        let mut client = UnixStream::connect(&socket).expect("somebody listens");
        let request = "CONNECT evil.example.test:443 HTTP/1.1\r\nHost: evil.example.test\r\n\r\n";
        client.write_all(request.as_bytes()).expect("it takes a request");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it answers and closes");
        assert!(answer.starts_with("HTTP/1.1 403 domain_not_allowed\r\n"), "{answer}");
        let audit = gateway.final_audit();
        assert_eq!((audit.len(), &audit[0]["environment_id"]), (1, &json!("e1")));
        assert_eq!(audit[0].get("client"), None);
        assert!(!socket.exists());
    });
}
