//! What can't be signed is not sent, and the client reads why.

use super::*;

const SCOPE: &str = "AKIDUMMY/20260101/eu-west-1/s3/aws4_request";

fn get(authorization: &str, more: &str) -> String {
    format!("GET /b/k HTTP/1.1\r\nHost: {NAME}\r\n{authorization}{more}\r\n")
}

pub(crate) fn claim(scope: &str) -> String {
    format!(
        "Authorization: AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, \
         Signature={}\r\nX-Amz-Date: 20260101T000000Z\r\n",
        "0".repeat(64)
    )
}

pub(crate) fn tunnel(gateway: &Gateway) -> RawClient {
    gateway.client().connect_tunnel(&format!("{NAME}:443")).tls(&Hello::to(NAME))
}

#[test]
fn what_can_not_be_signed_is_refused_and_nothing_is_sent() {
    isolated(|| {
        let world = world!();
        let origin = world.https(NAME).respond(scripts::ok("yes")).start();
        let gateway = world.gateway(environment());
        let key = key(false);
        store(&gateway, &credential(&key));
        let good = claim(SCOPE);
        let payload = |text: &str| get(&good, &format!("x-amz-content-sha256: {text}\r\n"));
        let presigned = get(&good, "").replace(
            "/b/k",
            "/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=x&X-Amz-Signature=00",
        );
        for (what, head) in [
            ("no signature", get("", "")),
            ("a token", get("Authorization: Bearer x\r\n", "")),
            ("two", get(&format!("{good}{good}"), "")),
            ("no date", get(&claim("AKID/eu-west-1/s3/aws4_request"), "")),
            ("no end", get(&claim("AKID/20260101/eu-west-1/s3"), "")),
            ("another end", get(&claim("AKID/20260101/eu-west-1/s3/aws3_request"), "")),
            ("too much", get(&claim("AKID/x/20260101/eu-west-1/s3/aws4_request"), "")),
            ("no region", get(&claim("AKID/20260101//s3/aws4_request"), "")),
            ("SigV4A", get(&good.replace("HMAC-SHA256", "ECDSA-P256-SHA256"), "")),
            ("presigned", presigned),
            ("chunks", payload("STREAMING-AWS4-HMAC-SHA256-PAYLOAD")),
            ("trailer", payload("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER")),
            ("no hash", payload("abc")),
        ] {
            let answer = tunnel(&gateway).exchange(head);
            let said = (answer.status, answer.header("outgate-reason"));
            assert_eq!(said, (400, Some("malformed_request")), "{what}: {answer:?}");
        }
        assert_eq!(origin.requests().len(), 0);
        assert_eq!(tunnel(&gateway).exchange(get(&good, "")).status, 200);
        assert_eq!(verified(&key, &origin.requests()[0]), Ok(()));
        assert_secret_absent(gateway.output(), &key.secret);
    });
}

#[test]
fn a_body_that_must_be_hashed_has_a_bound_and_one_that_is_stated_has_none() {
    isolated(|| {
        let world = world!();
        let origin = world.https(NAME).script(scripts::swallow()).start();
        let gateway = world
            .gateway_builder()
            .environment(&environment())
            .configuration("[limits]\nhashed_body = 1000\n")
            .start();
        store(&gateway, &credential(&key(false)));
        let ask = |length: usize| curl(&gateway, "/q", "sqs").body(vec![b'x'; length]);
        assert_eq!(ask(1000).run().status, 200);
        let refused = ask(1001).run();
        assert_eq!((refused.status, refused.reason()), (413, Some("body_too_large")));
        // Its length is not known before its end.
        let chunked = ask(1001).header("Transfer-Encoding", "chunked").run();
        assert_eq!((chunked.status, chunked.reason()), (413, Some("body_too_large")));
        let unsigned = ask(5000).header("x-amz-content-sha256", "UNSIGNED-PAYLOAD").run();
        assert_eq!(unsigned.status, 200);
        let waiting = ask(800).header("Expect", "100-continue").run();
        assert_eq!(waiting.status, 200, "nobody waits for a word");
        assert_eq!(origin.requests().len(), 3);
    });
}

#[test]
fn bodies_that_wait_to_be_hashed_share_one_room() {
    isolated(|| {
        let world = world!();
        let origin = world.https(NAME).script(scripts::swallow()).start();
        let limits = "[limits]\nhashed_body = 1000\nhashed_bodies = 1024\nresponse_head = \"1s\"\n";
        let gateway =
            world.gateway_builder().environment(&environment()).configuration(limits).start();
        store(&gateway, &credential(&key(false)));
        let head = format!(
            "POST /q HTTP/1.1\r\nHost: {NAME}\r\n{}Content-Length: 1000\r\n\r\n",
            claim("AKID/20260101/eu-west-1/sqs/aws4_request")
        );
        let mut holds = tunnel(&gateway);
        holds.send(&head);
        holds.send("x");
        std::thread::sleep(Duration::from_millis(300));
        let ask = || curl(&gateway, "/q", "sqs").body(vec![b'x'; 1000]).run();
        let waited = ask();
        assert_eq!((waited.status, waited.reason()), (503, Some("too_many_connections")));
        holds.send("x".repeat(999));
        assert_eq!(holds.read_response().status, 200);
        assert_eq!(ask().status, 200, "there is room again");
        assert_eq!(origin.requests().len(), 2);
    });
}
