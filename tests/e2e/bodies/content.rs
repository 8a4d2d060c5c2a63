//! Is a value written so that it means itself, whatever the body is?

use outgate_tests::prelude::*;

use super::scene::{API, JSON, Scene, key, post};

fn variable(id: &str, value: &str) -> serde_json::Value {
    json!({"id": id, "type": "environment_variable", "value": value,
           "injection_location": ["body"]})
}

#[test]
fn json_with_any_value_stays_the_same_json() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let secret = canary(30);
        let values = [
            format!("{secret}a\"b\\c&d=é/<'"),
            format!("-----BEGIN KEY-----\n{secret}\r\n\tx\n-----END KEY-----"),
            "plain".to_owned(),
        ];
        let ids = ["one", "two", "three"];
        let made: Vec<_> = ids.iter().zip(&values).map(|(id, v)| variable(id, v)).collect();
        let scene = Scene::new(&world, &made);
        let [one, two, three] = ["ONE", "TWO", "THREE"].map(|name| scene.placeholder(name));
        let body = json!({"a": one, "b": [format!("x{two}y{three}"), 1.5e300], "é": null});
        for kind in ["application/json; charset=utf-8", "application/vnd.api+json"] {
            let fields = format!("Content-Type: {kind}\r\n");
            let answer = scene.client().exchange(post(&fields, body.to_string()));
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        let due =
            json!({"a": values[0], "b": [format!("x{}yplain", values[1]), 1.5e300], "é": null});
        for request in origin.requests() {
            let got: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
            assert_eq!(got, due);
            let length = request.body.len().to_string();
            assert_eq!(request.head.values("content-length"), [length.as_str()]);
            assert_eq!(request.header("transfer-encoding"), None);
        }
        let line = &scene.audit(2)[1];
        assert_eq!(line["credentials"], json!(["one", "two", "three"]), "{line}");
        assert_eq!(line["injected"], serde_json::Value::Null, "{line}");
        assert_secret_absent(scene.gateway.output(), &secret);
    });
}

#[test]
fn each_kind_of_text_has_its_own_way_of_writing() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let scene = Scene::new(&world, &[key("a\"b&c=d/é <")]);
        let placeholder = scene.placeholder("KEY");
        let form = "a%22b%26c%3Dd%2F%C3%A9%20%3C";
        let xml = "a&quot;b&amp;c=d/é &lt;";
        let plain = "a\"b&c=d/é <";
        for (kind, text, due) in [
            ("application/x-www-form-urlencoded", "k=KEY&x=%20", format!("k={form}&x=%20")),
            ("text/xml", "<t a=\"KEY\">KEY</t>", format!("<t a=\"{xml}\">{xml}</t>")),
            ("text/plain", "ghp_KEY", format!("ghp_{plain}")),
            ("application/x-ndjson", "\"KEY\"\n[]", "\"a\\\"b&c=d/é <\"\n[]".to_owned()),
            (
                "multipart/form-data; boundary=x",
                "--x\r\nContent-Disposition: form-data; name=k\r\n\r\nKEY\r\n--x--",
                format!("--x\r\nContent-Disposition: form-data; name=k\r\n\r\n{plain}\r\n--x--"),
            ),
            ("", "KEY", plain.to_owned()),
        ] {
            let fields = match kind {
                "" => String::new(),
                kind => format!("Content-Type: {kind}\r\n"),
            };
            let body = text.replace("KEY", &placeholder);
            let answer = scene.client().exchange(post(&fields, body));
            assert_eq!(answer.status, 200, "{kind}: {}", answer.text());
            let requests = origin.requests();
            let request = requests.last().expect("it came");
            assert_eq!(request.text(), due, "{kind}");
            assert_eq!(request.header("content-length"), Some(due.len().to_string().as_str()));
        }
    });
}

#[test]
fn a_line_end_goes_only_where_it_is_escaped() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let scene = Scene::new(&world, &[key("one\ntwo")]);
        let placeholder = scene.placeholder("KEY");
        let reason = "placeholder_not_trusted";
        for kind in ["text/plain", "multipart/form-data; boundary=x"] {
            let fields = format!("Content-Type: {kind}\r\n");
            scene.refuses(post(&fields, &placeholder), 403, reason);
        }
        assert_eq!(origin.requests().len(), 0);
        let answer = scene.client().exchange(post(JSON, format!("\"{placeholder}\"")));
        assert_eq!(answer.status, 200);
        assert_eq!(origin.requests()[0].text(), "\"one\\ntwo\"");
    });
}

#[test]
fn what_was_said_of_the_bytes_is_left_out_when_they_change() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let scene = Scene::new(&world, &[key("value")]);
        let placeholder = scene.placeholder("KEY");
        let fields = format!(
            "{JSON}Content-MD5: x\r\nDigest: sha-256=x\r\nContent-Digest: sha-256=:x:\r\n\
             Repr-Digest: sha-256=:x:\r\n"
        );
        let names = ["content-md5", "digest", "content-digest", "repr-digest"];
        for (body, there) in [("{}".to_owned(), true), (format!("\"{placeholder}\""), false)] {
            assert_eq!(scene.client().exchange(post(&fields, body)).status, 200);
            let requests = origin.requests();
            let request = requests.last().expect("it came");
            for name in names {
                assert_eq!(request.header(name).is_some(), there, "{name}");
            }
        }
    });
}

#[test]
fn an_environment_without_credentials_for_bodies_is_left_alone() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let mut header = key("value");
        header["injection_location"] = json!("header");
        let scene = Scene::new(&world, &[header]);
        let body = format!("\"{}\"", scene.placeholder("KEY"));
        for fields in [JSON.to_owned(), format!("{JSON}Content-Encoding: gzip\r\n")] {
            assert_eq!(scene.client().exchange(post(&fields, &body)).status, 200);
        }
        for request in origin.requests() {
            assert_eq!(request.text(), body);
        }
    });
}
