//! Do real clients in a sandbox reach what is allowed, without knowing of a gateway?

use std::fs;
use std::path::Path;
use std::process::Command;

use outgate_tests::command::{Finished, clean, run};
use outgate_tests::prelude::*;
use outgate_tests::repository;
use outgate_tests::wait::SOON;
use serde_json::Value;

const URL: &str = "https://api.example.com/";

const JAVA: &str = r#"
import java.net.URI;
import java.net.http.*;
public class Client {
    public static void main(String[] arguments) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(arguments[0])).build();
        var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println(answer.statusCode());
    }
}
"#;

const NODE: &str = "fetch(process.argv[1]).then((answer) => console.log(answer.status))";

const PYTHON: &str = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).status)";

/// Runs a script of the shell in a sandbox with this environment, in a folder that is the same
/// inside and outside.
fn sh(world: &World, folder: &Path, environment: &Value, script: &str) -> Finished {
    let file = folder.join("env_test.json");
    fs::write(&file, environment.to_string()).expect("the folder is writable");
    let mut outgate = Command::new(env!("CARGO_BIN_EXE_outgate"));
    clean(&mut outgate).args(["run", "--origin-roots"]).arg(world.pki.roots());
    outgate.arg("--environment").arg(&file).arg("--state-dir").arg(folder.join("state"));
    outgate.args(["--", "/bin/sh", "-c", script]).current_dir(folder);
    run(&mut outgate, b"", SOON * 8)
}

fn allowing(domain: &str) -> Value {
    json!({"network": {"allowlist": [{"domain": domain}]}})
}

#[test]
fn clients_of_every_kind_trust_the_ca() {
    isolated(|| {
        let world = world!();
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let _origin =
            world.https("api.example.com").script(scripts::respond(scripts::ok(""))).start();
        fs::write(folder.path().join("Client.java"), JAVA).unwrap();
        let alone = "env -i PATH=\"$PATH\"";
        // By the system's file (GnuTLS, OpenSSL), by its folder, by a variable, by Java's own store.
        let openssl = format!(
            "{alone} openssl s_client -no-CAfile -connect api.example.com:443 \
             -servername api.example.com -verify_return_error < /dev/null"
        );
        let clients = [
            (format!("{alone} wget -qSO- {URL} 2>&1"), "200 OK"),
            (openssl, "Verify return code: 0 (ok)"),
            (format!("python3 -c '{PYTHON}' {URL}"), "200"),
            (format!("node -e '{NODE}' {URL}"), "200"),
            (format!("java Client.java {URL}"), "200"),
            (format!("{alone} java Client.java {URL}"), "200"),
        ];
        for (client, said) in clients {
            let finished = sh(&world, folder.path(), &allowing("api.example.com"), &client);
            assert!(finished.text().contains(said), "{client}: {finished:?}");
        }
    });
}

#[test]
fn a_repository_is_cloned_before_the_command_starts() {
    isolated(|| {
        let world = world!();
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let served = repository::make(folder.path(), "hello");
        let origin = world.https("api.example.com").script(repository::serve(served)).start();
        let source = |target: &str| {
            json!({"type": "repository", "source": format!("{URL}o/r"), "target": target,
                   "read_only": true})
        };
        let mut environment = allowing("api.example.com");
        environment["sources"] = json!([source("/workspace/repo")]);
        let script = "cat /workspace/repo/README; touch /workspace/repo/x 2>&1; \
                      git -C /workspace/repo log --format=%s";
        let finished = sh(&world, folder.path(), &environment, script);
        let said = finished.text();
        assert!(said.starts_with("hello\n") && said.contains("Read-only"), "{finished:?}");
        assert!(said.ends_with("first\n"), "{finished:?}");

        // Under the environment's own rules: what it doesn't allow is not fetched either.
        let before = origin.requests().len();
        environment["network"] = json!({"allowlist": []});
        let finished = sh(&world, folder.path(), &environment, "echo ran");
        assert_eq!((finished.code(), finished.text().as_str()), (70, ""), "{finished:?}");
        assert!(finished.stderr.contains("cloning https://api.example.com/o/r"), "{finished:?}");
        assert_eq!(origin.requests().len(), before);
    });
}
