//! Does a secret show anywhere but on the wire to its origin?

use std::fs;
use std::path::Path;

use outgate_tests::prelude::*;
use serde_json::Value;

use super::scene::{Made, ask, done, store};

/// Every file below `folder`, whatever it is named.
fn contents(folder: &Path, into: &mut Vec<u8>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => contents(&path, into),
            false => into.extend(fs::read(&path).unwrap_or_default()),
        }
    }
}

/// A credential of every kind, each with a secret of its own.
fn store_all(gateway: &Gateway, secrets: &[String]) {
    store(gateway, &json!({"id": "bearer", "type": "bearer_token", "token": secrets[0]}));
    store(
        gateway,
        &json!({"id": "query", "type": "api_key_query", "name": "k", "key": secrets[1]}),
    );
    store(
        gateway,
        &json!({"id": "basic", "type": "basic", "username": "u", "password": secrets[2]}),
    );
    store(
        gateway,
        &json!({
            "id": "variable", "type": "environment_variable", "value": secrets[3],
            "injection_location": ["header", "query"],
        }),
    );
    store(
        gateway,
        &json!({
            "id": "oauth2", "type": "oauth2", "client_id": "c", "client_secret": secrets[4],
            "refresh_token": secrets[5], "token_url": "https://auth.example.test/token",
        }),
    );
}

/// Every credential has its domain, and one domain a header with a secret too.
fn environment(secret: &str) -> Value {
    let domain = |name: &str, credential: &str| json!({"domain": name, "credential": credential});
    json!({
        "env": {"KEY": {"credential": "variable"}},
        "network": {"allowlist": [
            domain("api.example.com", "bearer"), domain("api.example.com", "query"),
            domain("a.ok.example.test", "basic"), domain("evil.example.test", "oauth2"),
            {"domain": "nowhere.example.test", "credential": "query",
                "transform": {"X-Key": secret}},
        ]},
    })
}

/// What clients see of requests that succeed, break off, are refused and lead nowhere.
fn told_by_requests(made: &Made) -> Vec<String> {
    let placeholder = made.placeholder("KEY");
    let urls = [
        format!("https://api.example.com/p?q={placeholder}"),
        format!("https://a.ok.example.test/?q={placeholder}"),
        format!("https://api.example.com/{placeholder}"),
        "https://evil.example.test/".to_owned(),
        "https://nowhere.example.test/".to_owned(),
        "http://api.example.com/".to_owned(),
    ];
    let ask = |url: &str, http2: bool| {
        let curl = made.curl(url).header("x-key", &placeholder);
        let curl = if http2 { curl.http2() } else { curl };
        format!("{:?}", curl.run())
    };
    urls.iter().flat_map(|url| [ask(url, false), ask(url, true)]).collect()
}

/// What the management API and its metrics answer to good and bad requests.
fn told_by_the_api(gateway: &Gateway, secrets: &[String]) -> Vec<String> {
    let mut told: Vec<String> = [
        ("GET", "credentials", json!(null)),
        ("GET", "environments", json!(null)),
        ("PATCH", "credentials/bearer", json!({"token": format!("{}\n", secrets[0])})),
        ("POST", "credentials", json!({"id": "x", "type": "basic", "password": secrets[2]})),
    ]
    .iter()
    .map(|(method, path, body)| ask(gateway, method, path, body).text())
    .collect();
    done(gateway, "PATCH", "credentials/basic", &json!({"username": "v"}));
    let key = fs::read_to_string(gateway.state().join("management.key")).expect("it is ours");
    let metrics =
        format!("GET /metrics HTTP/1.1\r\nHost: x\r\nx-goog-api-key: {}\r\n\r\n", key.trim());
    told.push(gateway.management(metrics).text());
    told
}

/// What the system shows of the process.
fn told_by_the_system(gateway: &Gateway) -> impl Iterator<Item = String> {
    ["cmdline", "environ", "status"].into_iter().map(|file| {
        let path = format!("/proc/{}/{file}", gateway.pid());
        String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
    })
}

#[test]
fn no_log_metric_audit_answer_or_file_holds_one() {
    isolated(|| {
        let world = world!();
        world.name("auth.example.test", "11.22.33.77");
        let echoing = |connection: &mut Connection| {
            while connection.request().is_some() {
                connection.send("HTTP/1.1 400 Bad\r\nContent-Length: 3\r\n\r\nno!");
            }
        };
        let _auth = world.https("auth.example.test").script(echoing).start();
        let api = world.https("api.example.com").respond(scripts::ok("yes")).start();
        let _broken = world.https("a.ok.example.test").script(scripts::reset_at_once()).start();
        let gateway = world.gateway_builder().variable("OUTGATE_LOG", "trace").start();
        let secrets: Vec<String> = (0..7).map(|_| canary(40)).collect();
        store_all(&gateway, &secrets);
        let made = Made::new(&gateway, &environment(&secrets[6]));
        let mut told = vec![made.answer.to_string()];
        told.extend(told_by_requests(&made));
        told.extend(told_by_the_api(&gateway, &secrets));
        told.extend(told_by_the_system(&gateway));
        gateway.wait_audit(18);
        told.push(gateway.output());
        let mut state = Vec::new();
        contents(gateway.state(), &mut state);
        assert!(api.raw().windows(40).any(|bytes| bytes == secrets[0].as_bytes()), "it was used");
        for (index, secret) in secrets.iter().enumerate() {
            for text in &told {
                assert!(!text.contains(&secret[..8]), "secret {index} got out");
                assert_secret_absent(text, secret);
            }
            assert_secret_absent(&state, secret);
        }
    });
}
