//! Do AWS's own clients work with keys that are worth nothing, against who checks every signature?
//!
//! `tests/real-clients` installs them and says where; nothing here reaches a network but loopback.

#[path = "aws_clients/origin.rs"]
mod origin;
#[path = "signing/verify.rs"]
mod verify;

use std::path::PathBuf;
use std::process::Command;

use outgate_tests::command::{Finished, clean, run};
use outgate_tests::prelude::*;
use serde_json::Value;

use origin::Objects;
use verify::Key;

const NAME: &str = "api.example.com";
/// An interpreter takes seconds to load on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);
const CLI: &str = "set -e
export AWS_ENDPOINT_URL=https://api.example.com
head -c 9000000 /dev/zero | tr '\\0' x > big
echo hello > small
aws s3 cp small 's3://b/a key+%'
aws s3 cp 's3://b/a key+%' - | grep hello
aws s3 cp big s3://b/big
aws s3 ls s3://b/ | grep big
aws s3 rm s3://b/big
aws sts get-caller-identity | grep 123456789012
aws dynamodb list-tables | grep a-table
echo all of it worked";

/// Where the clients are.
fn installed() -> PathBuf {
    std::env::var_os("OUTGATE_CLIENTS").map(PathBuf::from).expect("run tests/real-clients")
}

/// Runs a script of the shell through the gateway, with the key of nobody.
fn with_nobodys_key(gateway: &Gateway, world: &World, script: &str) -> Finished {
    let state = gateway.state().to_string_lossy().into_owned();
    let trust = world.outgate(&["ca", "env", "--state-dir", &state]).text();
    let home = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let mut shell = Command::new("/bin/sh");
    clean(&mut shell).arg("-c").arg(format!("{trust}\n{script}")).current_dir(home.path());
    let path = format!("{}/python/bin:/usr/bin:/bin", installed().display());
    shell.env("HOME", home.path()).env("PATH", path);
    shell.env("AWS_ACCESS_KEY_ID", "DUMMY").env("AWS_SECRET_ACCESS_KEY", "dummy");
    shell.env("AWS_DEFAULT_REGION", "eu-west-1").env("AWS_MAX_ATTEMPTS", "1");
    shell.env("AWS_EC2_METADATA_DISABLED", "true");
    shell.env("HTTPS_PROXY", format!("http://{}", gateway.explicit()));
    run(&mut shell, b"", DEADLINE)
}

/// The client does all that its script says, and each request bears a good signature.
fn works(script: &str, trailers: bool) {
    isolated(|| {
        let world = world!();
        let token = Some(canary(200));
        let key = Key { id: "AKIAREAL".to_owned(), secret: canary(40), token };
        let objects = Objects::new(key);
        let origin = world.https(NAME).script(objects.script()).start();
        let entry = json!({"domain": NAME, "credential": "main"});
        let mut gateway = world.gateway(json!({"network": {"allowlist": [entry]}}));
        let key = objects.key();
        let stored = gateway.api(
            "POST",
            "/v1beta/credentials",
            &json!({"id": "main", "type": "aws_sigv4", "access_key_id": key.id,
                    "secret_access_key": key.secret, "session_token": key.token}),
        );
        assert_eq!(stored.status, 200, "{stored:?}");
        let finished = with_nobodys_key(&gateway, &world, script);
        let said = format!("{}{}", finished.text(), finished.stderr);
        assert!(finished.text().contains("all of it worked"), "{said}\n{:?}", objects.refusals());
        assert_eq!(objects.refusals(), [""; 0]);
        assert_secret_absent(&said, &key.secret);
        let requests = origin.requests();
        let is_part = |request: &&Request| request.target.contains("partNumber=");
        assert!(requests.iter().filter(is_part).count() >= 2, "it is sent in parts");
        // What today's clients do by themselves: checksums behind bodies that nobody signs.
        let streamed = |request: &Request| {
            request.header("x-amz-content-sha256") == Some("STREAMING-UNSIGNED-PAYLOAD-TRAILER")
        };
        assert_eq!(requests.iter().any(streamed), trailers);
        let audit = gateway.final_audit();
        assert!(!Value::from(audit).to_string().contains(&key.secret));
    });
}

#[test]
fn boto3_works_with_a_key_of_nobody() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/e2e/aws_clients/client.py");
    works(&format!("python '{script}'"), true);
}

#[test]
fn the_command_line_works_with_a_key_of_nobody() {
    works(CLI, true);
}
