//! Does a value come back in any form, from any place of an answer, on any leg?

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use outgate_tests::prelude::*;

use crate::{GET, NAME, answer, environment, stars, tunnel};

/// The places of an answer that an origin may put it in.
fn echo(secret: &str) -> (Vec<(&'static str, String)>, String) {
    let headers = vec![
        ("x-echo", format!("Bearer {secret}")),
        ("location", format!("https://a.ok.example.test/?t={secret}&n=1")),
        ("set-cookie", format!("sid={secret}; Path=/; Secure")),
        ("www-authenticate", format!("Bearer error=\"{secret} is revoked\"")),
    ];
    let percent: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let json: String = secret.bytes().map(|byte| format!("\\u{byte:04X}")).collect();
    let body = format!(
        "{{\"plain\":\"{secret}\",\"percent\":\"{percent}\",\"json\":\"{json}\",\
         \"base64\":\"{}\",\"inside\":\"{}\"}}",
        STANDARD.encode(secret),
        URL_SAFE_NO_PAD.encode(format!("x:{secret}:y")),
    );
    (headers, body)
}

fn check(headers: impl Fn(&str) -> Option<String>, body: &str, secret: &str, sent: &str) {
    let hidden = stars(secret);
    assert_eq!(headers("x-echo"), Some(format!("Bearer {hidden}")));
    assert_eq!(headers("location"), Some(format!("https://a.ok.example.test/?t={hidden}&n=1")));
    assert_eq!(headers("set-cookie"), Some(format!("sid={hidden}; Path=/; Secure")));
    assert_eq!(headers("www-authenticate"), Some(format!("Bearer error=\"{hidden} is revoked\"")));
    assert_secret_absent(body, secret);
    let json: serde_json::Value = serde_json::from_str(body).expect("JSON stays JSON");
    assert_eq!(json["plain"], hidden);
    assert_eq!(json["json"], "*".repeat(6 * secret.len()), "{json}");
    assert_eq!(body.len(), sent.len(), "lengths hold");
}

#[test]
fn an_echo_of_http1_shows_none_of_it() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let (headers, body) = echo(&secret);
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("401 {secret}\r\n{}", lines.trim_end());
        let _origin = world.https(NAME).respond(answer(&head, &body)).start();
        let mut gateway = world.gateway(environment(&secret, true));
        let said = tunnel(&gateway).exchange(GET);
        assert_eq!(
            (said.status, said.header("content-length")),
            (401, Some(&*body.len().to_string()))
        );
        assert!(!said.reason.contains(&secret), "{}", said.reason);
        check(|name| said.header(name).map(str::to_owned), &said.text(), &secret, &body);

        let http2 = gateway.http2(NAME).connect().get("/");
        assert_eq!(http2.status, 401);
        check(|name| http2.header(name).map(str::to_owned), &http2.text(), &secret, &body);

        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 2);
        for line in audit {
            assert_eq!(line["reflected"], json!(["authorization"]), "{line}");
        }
        assert_secret_absent(gateway.output(), &secret);
    });
}

#[test]
fn an_echo_of_http2_shows_none_of_it_in_trailers_either() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let (headers, body) = echo(&secret);
        let (sent, told) = (body.clone(), secret.clone());
        let script = move |stream: &mut Stream| {
            let headers: Vec<_> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            stream.respond(401, &[&headers[..], &[("trailer", "x-sum")]].concat());
            // In frames that cut every form.
            assert!(sent.as_bytes().chunks(7).all(|piece| stream.send(piece)));
            stream.finish_with(&[("x-sum", &*format!("sum of {told}"))]);
        };
        let _origin = world.http2(NAME).script(script).start();
        let mut gateway = world.gateway(environment(&secret, true));
        let http2 = gateway.http2(NAME).connect();
        let said = http2.ask(http2.request("GET", "/").header("te", "trailers"), "");
        assert_eq!(said.status, 401);
        check(|name| said.header(name).map(str::to_owned), &said.text(), &secret, &body);
        assert_eq!(said.trailer("x-sum"), Some(&*format!("sum of {}", stars(&secret))));

        let asking =
            "GET / HTTP/1.1\r\nHost: api.example.com\r\nTE: trailers\r\nConnection: TE\r\n\r\n";
        let http1 = tunnel(&gateway).exchange(asking);
        check(|name| http1.header(name).map(str::to_owned), &http1.text(), &secret, &body);
        assert_eq!(http1.trailers[0].value, format!("sum of {}", stars(&secret)));
        assert_eq!(gateway.final_audit().len(), 2);
    });
}

#[test]
fn without_scrub_nothing_is_looked_at() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let origin =
            world.https(NAME).respond(answer("200 OK\r\nAccept-Ranges: bytes", &secret)).start();
        let asking = "GET / HTTP/1.1\r\nHost: api.example.com\r\nAccept-Encoding: deflate, exi\r\n\
                      Range: bytes=0-1\r\n\r\n";
        for (environment, came) in [
            (environment(&secret, false), secret.clone()),
            // With nothing put on, there is nothing to look for.
            (json!({"network": {"allowlist": [{"domain": NAME, "scrub": true}]}}), secret.clone()),
            // The control.
            (environment(&secret, true), stars(&secret)),
        ] {
            let mut gateway = world.gateway(environment);
            let said = tunnel(&gateway).exchange(asking);
            assert_eq!(said.text(), came);
            let audit = gateway.final_audit();
            let request = origin.requests().pop().expect("it was asked");
            let (encodings, range) = (request.header("accept-encoding"), request.header("range"));
            if came == secret {
                assert_eq!(audit[0].get("reflected"), None, "{audit:?}");
                assert_eq!((encodings, range), (Some("deflate, exi"), Some("bytes=0-1")));
                assert_eq!(said.header("accept-ranges"), Some("bytes"));
            } else {
                assert_eq!(audit[0]["reflected"], json!(["authorization"]));
                assert_eq!((encodings, range), (Some("identity"), None));
                assert_eq!(said.header("accept-ranges"), None);
            }
        }
    });
}

#[test]
fn a_websocket_that_could_bring_it_back_is_refused() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let upgrade = "GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\n\
                       Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        let origin = world.https(NAME).script(scripts::websocket_echo()).start();
        let control = world.gateway(environment(&secret, false));
        assert_eq!(tunnel(&control).exchange(upgrade).status, 101);
        let before = origin.connections();
        let mut gateway = world.gateway(environment(&secret, true));
        let said = tunnel(&gateway).exchange(upgrade);
        assert_eq!(
            (said.status, said.header("outgate-reason")),
            (403, Some("protocol_not_allowed"))
        );
        assert_eq!(origin.connections(), before);
        assert_eq!(gateway.final_audit().len(), 1);
    });
}

#[test]
fn what_an_origin_says_as_it_leaves_is_in_no_line() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let said = format!("bad header: {secret}");
        let length = u8::try_from(8 + said.len()).expect("a short frame");
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let go_away = [0, 0, length, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
        let bytes = [&settings[..], &go_away, said.as_bytes()].concat();
        let script = move |connection: &mut Connection| {
            connection.bytes();
            connection.send(&bytes);
            connection.pause(Duration::from_millis(200));
        };
        let _origin = world.https(NAME).alpn(&["h2"]).script(script).start();
        let mut gateway = world.gateway(environment(&secret, false));
        assert_eq!(tunnel(&gateway).exchange(GET).status, 502);
        let audit = gateway.final_audit();
        let error = audit[0]["error"].as_str().unwrap_or_default();
        assert!(!error.is_empty() && !error.contains("bad header"), "{error}");
        assert_secret_absent(gateway.output(), &secret);
    });
}
