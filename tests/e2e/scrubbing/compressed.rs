//! Is what an origin compresses looked through too?

use outgate_tests::prelude::*;

use crate::{NAME, answer, environment, stars, tunnel};

const GET: &str =
    "GET / HTTP/1.1\r\nHost: api.example.com\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\r\n";

fn text(secret: &str) -> String {
    let lines: String = (0..5000).map(|line| format!("line {line} of a long text\n")).collect();
    format!("{lines}{secret}{lines}{secret}\n")
}

#[test]
fn comes_decompressed_and_without_the_value() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let text = text(&secret);
        let due = text.replace(&secret, &stars(&secret));
        let mut all: Vec<(String, Vec<u8>)> =
            CODINGS.iter().map(|one| ((*one).to_owned(), compress(one, text.as_bytes()))).collect();
        let twice = compress("br", &compress("gzip", text.as_bytes()));
        all.push(("gzip, br".to_owned(), twice));
        for (coding, body) in all {
            let head = format!(
                "200 OK\r\nContent-Encoding: {coding}\r\nETag: \"one\"\r\nContent-MD5: eA==\r\n\
                 Repr-Digest: sha-256=:eA==:\r\nVary: Accept-Encoding"
            );
            let origin = world.https(NAME).respond(answer(&head, &body)).start();
            let mut gateway = world.gateway(environment(&secret, true));
            let said = tunnel(&gateway).exchange(GET);
            let http2 = gateway.http2(NAME).connect().get("/");
            for (body, header) in [
                (said.text(), &|name: &str| said.header(name).map(str::to_owned) as Option<String>),
                (http2.text(), &|name: &str| http2.header(name).map(str::to_owned)),
            ] as [(String, &dyn Fn(&str) -> Option<String>); 2]
            {
                assert!(body == due, "{coding}: {} bytes, not {}", body.len(), due.len());
                for gone in ["content-encoding", "content-length", "content-md5", "repr-digest"] {
                    assert_eq!(header(gone), None, "{coding}: {gone}");
                }
                assert_eq!(header("etag").as_deref(), Some("W/\"one\""), "{coding}");
            }
            let asked = &origin.requests()[0];
            assert_eq!(asked.header("accept-encoding"), Some("gzip"));
            let audit = gateway.final_audit();
            assert_eq!(audit[0]["reflected"], json!(["authorization"]), "{coding}");
        }
    });
}

#[test]
fn passes_compressed_where_nothing_is_to_be_looked_for() {
    isolated(|| {
        let world = world!();
        let body = compress("gzip", b"text");
        let _origin =
            world.https(NAME).respond(answer("200 OK\r\nContent-Encoding: gzip", &body)).start();
        let gateway = world.gateway(environment(&canary(40), false));
        let said = tunnel(&gateway).exchange(GET);
        assert_eq!((said.header("content-encoding"), &said.body), (Some("gzip"), &body));
    });
}

#[test]
fn answers_without_a_body_have_none() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let head = format!(
            "HTTP/1.1 304 Not Modified\r\nContent-Encoding: br\r\nX-Echo: {secret}\r\n\r\n"
        );
        let _origin = world.https(NAME).respond(head).start();
        let mut gateway = world.gateway(environment(&secret, true));
        let mut client = tunnel(&gateway);
        for _ in 0..2 {
            let said = client.exchange(GET);
            assert_eq!((said.status, said.header("x-echo")), (304, Some(&*stars(&secret))));
            assert!(said.body.is_empty());
        }
        let audit = gateway.final_audit();
        assert!(
            audit.iter().all(|line| line["reflected"] == json!(["authorization"])),
            "{audit:?}"
        );
    });
}

/// What remembers megabytes for each answer is bounded for all; gzip's window is not worth it.
#[test]
fn large_windows_have_one_bound_and_give_it_back() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let text = text(&secret);
        let bodies = CODINGS.map(|coding| (coding, compress(coding, text.as_bytes())));
        // `/CODING` is answered whole, `/CODING/half` stops in the middle.
        let script = move |connection: &mut Connection| {
            while let Some(request) = connection.request() {
                let mut parts = request.target[1..].split('/');
                let asked = parts.next().expect("a coding");
                let (coding, body) =
                    bodies.iter().find(|(coding, _)| *coding == asked).expect("a known one");
                let whole = answer(&format!("200 OK\r\nContent-Encoding: {coding}"), body);
                let sent = if parts.next().is_some() { whole.len() / 2 } else { whole.len() };
                connection.send(&whole[..sent]);
            }
        };
        let _origin = world.https(NAME).script(Box::new(script)).start();
        let mut gateway = world
            .gateway_builder()
            .configuration("[limits]\ndecompression_bytes = 24000000\n")
            .environment(&environment(&secret, true))
            .start();
        let get = |path: &str| GET.replace("GET /", &format!("GET /{path}"));
        let due = text.replace(&secret, &stars(&secret));
        for coding in ["br", "zstd"] {
            let mut halves = Vec::new();
            let refused = loop {
                let mut client = tunnel(&gateway);
                client.send(get(&format!("{coding}/half")));
                let begun = String::from_utf8_lossy(&client.read_exact(12)).into_owned();
                if begun != "HTTP/1.1 200" {
                    break begun;
                }
                halves.push(client);
            };
            assert_eq!(
                (refused.as_str(), halves.len()),
                ("HTTP/1.1 503", 1 + usize::from(coding == "zstd"))
            );
            assert_eq!(tunnel(&gateway).exchange(get("gzip")).text(), due);
            drop(halves);
            let is_free = || tunnel(&gateway).exchange(get(coding)).status == 200;
            assert!(
                wait_until(Duration::from_secs(5), is_free),
                "{coding}: no room was given back"
            );
            assert_eq!(tunnel(&gateway).exchange(get(coding)).text(), due);
        }
        let audit = gateway.final_audit();
        let crowded = audit.iter().filter(|line| line["reason"] == "too_many_connections");
        assert!(crowded.count() >= 2, "{audit:#?}");
    });
}
