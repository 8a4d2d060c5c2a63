//! Plain HTTP: the first request's `Host` names the connection.

use super::*;

#[test]
fn http_goes_to_the_host_that_its_first_request_names() {
    isolated(|| {
        let scene = Scene::new(&allowing(&[API, OK]));
        let api = scene.start(scene.world.http(API));
        let evil = scene.start(scene.world.http(EVIL));
        let ok = scene.start(scene.world.http(OK));
        let mut client = scene.client(&format!("{EVIL_ADDRESS}:80"));
        assert_eq!(client.exchange(get(API)).status, 200);
        assert_eq!(client.exchange(get("API.example.com.:80")).status, 200);
        // Allowed too, but not what the connection is to.
        let other = client.exchange(get(OK));
        assert_eq!(other.header("outgate-reason"), Some("name_mismatch"), "{other:?}");
        assert_eq!(client.exchange(get(API)).status, 200);
        assert_eq!((api.requests().len(), evil.connections(), ok.connections()), (3, 0, 0));
        let audit = scene.gateway.wait_audit(4);
        assert_eq!(audit[0]["domain"], API);
        assert_eq!((&audit[0]["scheme"], &audit[0]["port"]), (&json!("http"), &json!(80)));
        assert_eq!((&audit[2]["domain"], &audit[2]["status"]), (&json!(API), &json!(421)));
    });
}

#[test]
fn a_host_that_can_t_be_one_is_refused_before_any_look_up() {
    isolated(|| {
        let scene = Scene::new(&json!({}));
        for (request, status, reason) in [
            (get("a b"), 400, "malformed_host"),
            (get("api.example.com@evil.example.test"), 400, "malformed_host"),
            (get("127.1"), 400, "malformed_host"),
            (get("api.example.com:65979"), 400, "malformed_port"),
            (get("api.example.com:8080"), 421, "name_mismatch"),
            (get("localhost"), 403, "address_not_allowed"),
            (get("127.0.0.1"), 403, "address_not_allowed"),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400, "malformed_request"),
            (
                "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n".to_owned(),
                400,
                "malformed_request",
            ),
            (
                "GET http://a.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n".to_owned(),
                421,
                "name_mismatch",
            ),
            (
                "GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
                421,
                "name_mismatch",
            ),
            (
                "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n".to_owned(),
                405,
                "connect_in_tunnel",
            ),
        ] {
            let refused = scene.elsewhere(80).exchange(&request);
            let seen = (refused.status, refused.header("outgate-reason"));
            assert_eq!(seen, (status, Some(reason)), "{request:?}");
        }
        // A port that HTTP does not have by default must be said.
        let refused = scene.elsewhere(8080).exchange(get(API));
        assert_eq!(
            (refused.status, refused.header("outgate-reason")),
            (421, Some("name_mismatch"))
        );
        assert_eq!(scene.world.dns.questions().len(), 0);
        assert_eq!(scene.gateway.wait_audit(13).len(), 13);
    });
}

#[test]
fn a_refused_first_request_names_nothing() {
    isolated(|| {
        let scene = Scene::new(&allowing(&[API]));
        let _api = scene.start(scene.world.http(API));
        let mut client = scene.elsewhere(80);
        assert_eq!(client.exchange(get("api.example.com:81")).status, 421);
        assert_eq!(client.exchange(get(API)).status, 200);
    });
}

#[test]
fn without_host_it_is_the_name_of_the_dns_or_the_address() {
    isolated(|| {
        let scene = Scene::new(&allowing(&[API, API_ADDRESS]));
        let api = scene.start(scene.world.http(API));
        let given = scene.look_up(API);
        for (address, host) in [(given.to_string(), API), (API_ADDRESS.to_owned(), API_ADDRESS)] {
            let answer = scene.curl_without_host(&address);
            assert_eq!(answer.status, 200, "{answer:?}");
            assert!(answer.text().contains(&format!("[\"Host\",\"{host}\"]")), "{answer:?}");
        }
        assert_eq!(api.connections(), 2);
    });
}

#[test]
fn http2_in_clear_is_named_by_its_first_request() {
    isolated(|| {
        let scene = Scene::new(&allowing(&[API]));
        let api = scene.start_http2(scene.world.h2c(API));
        let url = "http://api.example.com/";
        let curl = Curl::new(url).argument("--http2-prior-knowledge");
        let curl = curl.argument("--connect-to").argument("::55.1.2.3:");
        let answer = scene.sandbox.inside(|| curl.run());
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(api.requests().len(), 1);
        assert_eq!(scene.line(1)["http"]["client"], "2");
    });
}

#[test]
fn nothing_is_injected_in_clear() {
    isolated(|| {
        let secret = canary(32);
        let entry = json!({"domain": API, "transform": {"Authorization": secret}});
        let scene = Scene::new(&json!({"network": {"allowlist": [entry]}}));
        let api = scene.start(scene.world.http(API));
        let refused = scene.elsewhere(80).exchange(get(API));
        assert_eq!(refused.header("outgate-reason"), Some("injection_needs_tls"), "{refused:?}");
        assert_eq!(api.connections(), 0);
        assert_secret_absent(scene.gateway.output(), &secret);
    });
}
