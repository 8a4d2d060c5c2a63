//! Are requests to AWS signed anew, with a key that their client never had?

#[path = "signing/gcp.rs"]
mod gcp;
#[path = "signing/refused.rs"]
mod refused;
#[path = "signing/verify.rs"]
mod verify;

use outgate_tests::origin::Http2Request;
use outgate_tests::prelude::*;
use serde_json::Value;

use verify::{Key, Received};

const NAME: &str = "api.example.com";

fn key(token: bool) -> Key {
    let token = token.then(|| canary(200));
    Key { id: "AKIAREAL".to_owned(), secret: canary(40), token }
}

fn credential(key: &Key) -> Value {
    let mut credential = json!({"id": "main", "type": "aws_sigv4", "access_key_id": key.id,
                                "secret_access_key": key.secret});
    if let Some(token) = &key.token {
        credential["session_token"] = token.as_str().into();
    }
    credential
}

/// Asks the management API, whose answer has to be a yes.
fn done(gateway: &Gateway, method: &str, path: &str, body: &Value) -> Value {
    let answer = gateway.api(method, &format!("/v1beta/{path}"), body);
    assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text());
    answer.json()
}

fn store(gateway: &Gateway, credential: &Value) {
    done(gateway, "POST", "credentials", credential);
}

fn environment() -> Value {
    json!({"network": {"allowlist": [
        {"domain": NAME, "credential": "main", "transform": {"X-Team": "blue"}},
    ]}})
}

/// A client with a key of its own that is worth nothing.
fn curl(gateway: &Gateway, path: &str, service: &str) -> Curl {
    gateway
        .curl(&format!("https://{NAME}{path}"))
        .argument("--aws-sigv4")
        .argument(format!("aws:amz:eu-west-1:{service}"))
        .argument("--user")
        .argument("DUMMY:dummy")
}

fn verified(key: &Key, request: &Request) -> Result<(), String> {
    let values = |name: &str| request.head.values(name).into_iter().map(str::to_owned).collect();
    let (method, target) = (request.method.as_str(), request.target.as_str());
    key.verify(&Received { method, target, body: &request.body, values: &values })
}

fn verified_http2(key: &Key, request: &Http2Request) -> Result<(), String> {
    let authority = request.authority.clone().into_iter().collect::<Vec<_>>();
    let values = |name: &str| match name {
        "host" => authority.clone(),
        _ => request.values(name).into_iter().map(str::to_owned).collect(),
    };
    let (method, target) = (request.method.as_str(), request.path.as_str());
    key.verify(&Received { method, target, body: &request.body, values: &values })
}

#[test]
fn whatever_the_client_signed_the_origin_sees_a_good_signature() {
    isolated(|| {
        let world = world!();
        let origin = world.https(NAME).respond(scripts::ok("yes")).start();
        let gateway = world.gateway(environment());
        let key = key(true);
        store(&gateway, &credential(&key));
        let ask = |path: &str, service: &str| curl(&gateway, path, service);
        let hash = "x-amz-content-sha256";
        let asked = [
            ask("/", "execute-api"),
            ask("/b/a%20b/%E2%82%AC?list-type=2&prefix=x%2Fy&a", "s3"),
            ask("/a/%7Bx%7D/b+c?b=2&a=%20&a=1", "execute-api"),
            ask("/queue", "sqs").body("Action=SendMessage&MessageBody=a+b"),
            ask("/b/key", "s3").method("PUT").body("content").header(hash, "UNSIGNED-PAYLOAD"),
            ask("/b/key", "s3").method("DELETE").header("x-amz-security-token", "mine"),
        ];
        for one in asked {
            let answer = one.run();
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        let requests = origin.requests();
        assert_eq!(requests.len(), 6);
        let dummy = Key { id: "DUMMY".to_owned(), secret: "dummy".to_owned(), token: None };
        for request in &requests {
            assert_eq!(verified(&key, request), Ok(()), "{request:?}");
            assert!(verified(&dummy, request).is_err());
            assert_eq!(request.header("x-team"), Some("blue"));
        }
        for secret in [&key.secret, key.token.as_ref().expect("one")] {
            assert_secret_absent(gateway.output(), secret);
        }
        let audit = gateway.wait_audit(7);
        let line = audit.iter().find(|line| line["kind"] == "request").expect("a request");
        assert_eq!(line["credentials"], json!(["main"]));
        let injected = json!(["x-team", "authorization", "x-amz-date", "x-amz-security-token"]);
        assert_eq!(line["injected"], injected);
    });
}

#[test]
fn it_is_so_over_http2_too() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).start();
        let gateway = world.gateway(environment());
        let key = key(false);
        store(&gateway, &credential(&key));
        let get = curl(&gateway, "/b/a%20b?x=1", "s3").http2().run();
        let put = curl(&gateway, "/b/c", "s3").http2().method("PUT").body(vec![b'x'; 100_000]);
        assert_eq!((get.status, put.run().status), (200, 200));
        let requests = origin.requests();
        assert_eq!(requests.len(), 2);
        for request in &requests {
            assert_eq!(verified_http2(&key, request), Ok(()), "{request:?}");
        }
        assert_eq!(requests[1].body.len(), 100_000);
    });
}

#[test]
fn a_new_key_signs_the_next_request_and_none_is_sent_without() {
    isolated(|| {
        let world = world!();
        let origin = world.https(NAME).respond(scripts::ok("yes")).start();
        let gateway = world.gateway(environment());
        assert_eq!(
            curl(&gateway, "/", "s3").run().reason(),
            Some("credential_unavailable"),
            "there is none yet"
        );
        let (one, two) = (key(false), key(true));
        store(&gateway, &credential(&one));
        assert_eq!(curl(&gateway, "/", "s3").run().status, 200);
        let mut change = credential(&two);
        change.as_object_mut().expect("an object").remove("id");
        done(&gateway, "PATCH", "credentials/main", &change);
        assert_eq!(curl(&gateway, "/", "s3").run().status, 200);
        let requests = origin.requests();
        assert_eq!(verified(&one, &requests[0]), Ok(()));
        assert_eq!(verified(&two, &requests[1]), Ok(()));
        assert_eq!(requests.len(), 2);
    });
}

#[test]
fn no_trailer_says_again_what_was_put_on_or_signed() {
    isolated(|| {
        let world = world!();
        let origin = world.https(NAME).respond(scripts::ok("yes")).start();
        let gateway = world.gateway(environment());
        let key = key(false);
        store(&gateway, &credential(&key));
        let claim = refused::claim("AKID/20260101/eu-west-1/s3/aws4_request");
        let answer = refused::tunnel(&gateway).exchange(format!(
            "PUT /b/k HTTP/1.1\r\nHost: {NAME}\r\n{claim}\
             x-amz-content-sha256: UNSIGNED-PAYLOAD\r\nTE: trailers\r\n\
             Trailer: X-Team, X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\nX-Team: mine\r\nX-Amz-Date: mine\r\nX-Sum: 1\r\n\r\n"
        ));
        assert_eq!(answer.status, 200);
        let request = &origin.requests()[0];
        assert_eq!(verified(&key, request), Ok(()));
        let names: Vec<_> =
            request.trailers.iter().map(|field| field.name.to_lowercase()).collect();
        assert_eq!(names, ["x-sum"]);
        assert_eq!(request.header("x-team"), Some("blue"));
    });
}
