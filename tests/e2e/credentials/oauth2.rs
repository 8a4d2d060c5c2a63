//! Are access tokens got once, in secret, and from nowhere but the token endpoint?

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use outgate_tests::origin::Script;
use outgate_tests::prelude::*;

use super::scene::{Made, done, store};

fn environment() -> serde_json::Value {
    json!({"network": {"allowlist": [{"domain": "api.example.com", "credential": "main"}]}})
}

fn oauth2(secret: &str, refresh: &str) -> serde_json::Value {
    json!({"id": "main", "type": "oauth2", "client_id": "the client", "client_secret": secret,
           "refresh_token": refresh, "token_url": "https://auth.example.test/token"})
}

fn answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Numbered tokens.
fn endpoint(calls: Arc<AtomicUsize>) -> Box<Script> {
    Box::new(move |connection: &mut Connection| {
        while connection.request().is_some() {
            let number = calls.fetch_add(1, Ordering::SeqCst) + 1;
            connection.pause(Duration::from_millis(300));
            let body = format!(
                r#"{{"access_token": "access-{number}", "refresh_token": "refresh-{number}",
                    "token_type": "Bearer", "expires_in": "3600"}}"#
            );
            connection.send(answer("200 OK", &body));
        }
    })
}

/// Takes no token but this.
fn only(token: &'static str) -> Box<Script> {
    Box::new(move |connection: &mut Connection| {
        while let Some(request) = connection.request() {
            let good = request.header("authorization") == Some(token);
            let status = if good { "200 OK" } else { "401 Unauthorized" };
            connection.send(answer(status, r#"{"x": 1}"#));
        }
    })
}

#[test]
fn many_requests_make_one_call_and_a_refused_token_is_replaced_once() {
    isolated(|| {
        let world = world!();
        world.name("auth.example.test", "11.22.33.77");
        let calls = Arc::new(AtomicUsize::new(0));
        let auth = world.https("auth.example.test").script(endpoint(Arc::clone(&calls))).start();
        let api = world.https("api.example.com").script(only("Bearer access-2")).start();
        let gateway = world.gateway(environment());
        let (secret, refresh) = (canary(40), canary(40));
        store(&gateway, &oauth2(&secret, &refresh));
        let asking: Vec<_> =
            (0..8).map(|_| gateway.curl("https://api.example.com/").start()).collect();
        for one in asking {
            assert_eq!(one.wait().status, 200);
        }
        assert_eq!(calls.load(Ordering::SeqCst), 2, "one at first, one after the 401s");
        let refused = gateway.curl("https://api.example.com/").body("x").run();
        assert_eq!(refused.status, 200);
        let form = auth.requests()[0].text();
        let sent = format!(
            "grant_type=refresh_token&client_id=the%20client&client_secret={secret}&refresh_token={refresh}"
        );
        assert_eq!(form, sent);
        assert!(auth.requests()[1].text().contains("refresh_token=refresh-1"));
        assert!(api.requests().len() >= 9);
        for secret in [&secret, &refresh] {
            assert_secret_absent(gateway.output(), secret);
        }
        assert!(!gateway.output().contains("access-1"));
    });
}

#[test]
fn a_request_that_may_not_leave_any_more_is_not_sent_again_with_another_token() {
    isolated(|| {
        let world = world!();
        world.name("auth.example.test", "11.22.33.77");
        let calls = Arc::new(AtomicUsize::new(0));
        let _auth = world.https("auth.example.test").script(endpoint(Arc::clone(&calls))).start();
        let (seen, first) = mpsc::channel();
        let (withdrawn, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let refuse: Box<Script> = Box::new(move |connection: &mut Connection| {
            while connection.request().is_some() {
                seen.send(()).expect("the test waits");
                let wait = wait.lock().expect("nobody else waits");
                wait.recv_timeout(Duration::from_secs(60)).expect("the policy changes");
                connection.send(answer("401 Unauthorized", "{}"));
            }
        });
        let api = world.https("api.example.com").script(refuse).start();
        let gateway = world.gateway_builder().start();
        store(&gateway, &oauth2("secret", "refresh"));
        let made = Made::new(&gateway, &environment());
        let asking = made.curl("https://api.example.com/").start();
        first.recv_timeout(Duration::from_secs(60)).expect("it is sent once");
        let none = json!({"network": {"allowlist": [{"domain": "other.example.com"}]}});
        done(&gateway, "PATCH", &format!("environments/{}", made.id()), &none);
        withdrawn.send(()).expect("the origin waits");
        drop(withdrawn);
        assert_eq!(asking.wait().status, 401);
        assert_eq!(api.requests().len(), 1);
        assert_eq!(calls.load(Ordering::SeqCst), 1, "nor is a token got for it");
    });
}

#[test]
fn an_upload_that_is_refused_for_its_token_is_not_sent_twice() {
    isolated(|| {
        let world = world!();
        world.name("auth.example.test", "11.22.33.77");
        let calls = Arc::new(AtomicUsize::new(0));
        let _auth = world.https("auth.example.test").script(endpoint(Arc::clone(&calls))).start();
        let api = world.https("api.example.com").script(only("nobody's")).start();
        let gateway = world.gateway(environment());
        store(&gateway, &oauth2("secret", "refresh"));
        let upload = gateway.curl("https://api.example.com/").body("hello").run();
        assert_eq!((upload.status, api.requests().len()), (401, 1));
        // Nor is anything asked for ever: an origin that refuses every token is left to the client.
        for _ in 0..3 {
            assert_eq!(gateway.curl("https://api.example.com/").run().status, 401);
        }
        assert!(calls.load(Ordering::SeqCst) <= 2);
        assert!(api.requests().len() <= 5);
    });
}

#[test]
fn what_an_endpoint_says_reaches_nobody_and_a_redirect_is_followed_nowhere() {
    isolated(|| {
        let world = world!();
        world.name("auth.example.test", "11.22.33.77");
        let secret = canary(40);
        let echo =
            format!(r#"{{"error": "client_secret={secret}", "error_description": "{secret}"}}"#);
        let elsewhere = "HTTP/1.1 302 Found\r\nLocation: https://evil.example.test/\r\n\
                         Content-Length: 0\r\n\r\n"
            .to_owned();
        let evil = world.https("evil.example.test").respond(scripts::ok("yes")).start();
        let api = world.https("api.example.com").respond(scripts::ok("yes")).start();
        for said in [answer("400 Bad Request", &echo), elsewhere] {
            let auth = world.https("auth.example.test").respond(said).start();
            let gateway = world.gateway(environment());
            store(&gateway, &oauth2(&secret, "refresh"));
            let refused = gateway.curl("https://api.example.com/").run();
            assert_eq!(refused.status, 503, "{refused:?}");
            let reason = Some("credential_temporarily_unavailable");
            assert_eq!(refused.header("outgate-reason"), reason);
            assert_secret_absent(refused.text(), &secret);
            assert!(gateway.wait_log("no access token"));
            assert_secret_absent(gateway.output(), &secret);
            // Asked again at once, the endpoint is left alone.
            assert_eq!(gateway.curl("https://api.example.com/").run().status, 503);
            assert_eq!(auth.requests().len(), 1);
            auth.stop();
        }
        assert_eq!((api.requests().len(), evil.requests().len()), (0, 0));
    });
}

#[test]
fn an_endpoint_at_a_private_address_is_never_asked() {
    isolated(|| {
        let world = world!();
        world.dns.name("auth.example.test", &["127.0.0.1"]);
        let gateway = world.gateway(environment());
        store(&gateway, &oauth2("secret", "refresh"));
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 503);
        assert!(gateway.wait_log("no address that may be dialled"));
    });
}
