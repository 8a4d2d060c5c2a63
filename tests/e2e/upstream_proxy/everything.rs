//! Every way out, one after the other.

use std::fs;

use outgate_tests::gcs::{Bucket, SERVICE};
use outgate_tests::wait::SOON;

use super::*;

const WEBSOCKET: &str = "GET /ws HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\n\
                         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

#[test]
fn plain_http_leaves_by_connect_too() {
    isolated(|| {
        let world = world!();
        let origin = world.http(API).start();
        let proxy = UpstreamProxy::at(PROXY).start();
        let gateway = behind(&world, &allowing(&[API])).start();
        assert_eq!(gateway.curl("http://api.example.com/a?b").run().status, 200);
        assert_eq!(proxy.asked(), ["11.22.33.44:80"]);
        let request = &origin.requests()[0];
        assert_eq!((request.target.as_str(), request.header("host")), ("/a?b", Some(API)));
    });
}

#[test]
fn http2_leaves_by_it_and_is_shared() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(API).start();
        let proxy = UpstreamProxy::at(PROXY).start();
        let gateway = behind(&world, &allowing(&[API])).start();
        for _ in 0..2 {
            let answer = gateway.curl("https://api.example.com/").argument("--http2").run();
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        assert_eq!((proxy.connections(), origin.connections()), (1, 1));
        let line = &gateway.wait_audit(2)[1];
        assert_eq!(line["http"]["origin"], "2", "{line}");
    });
}

#[test]
fn a_websocket_leaves_by_it() {
    isolated(|| {
        let world = world!();
        let _origin = world.https(API).script(scripts::websocket_echo()).start();
        let proxy = UpstreamProxy::at(PROXY).start();
        let gateway = behind(&world, &allowing(&[API])).start();
        let mut client =
            gateway.client().connect_tunnel("api.example.com:443").tls(&Hello::to(API));
        client.send(WEBSOCKET);
        assert_eq!(client.read_response().status, 101);
        let frame = [0x81, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2];
        client.send(frame);
        assert_eq!(client.read_exact(frame.len()), frame);
        assert_eq!(proxy.asked(), ["11.22.33.44:443"]);
    });
}

#[test]
fn any_bytes_leave_by_it_and_an_origin_that_speaks_first_is_heard() {
    const BANNER: &[u8] = b"SSH-2.0-origin\r\n";
    isolated(|| {
        let world = world!();
        let origin = Origin::http("11.22.33.44:2222").script(|connection| {
            connection.send(BANNER);
            let bytes = connection.bytes();
            connection.send(bytes);
        });
        let origin = origin.start();
        let environment = json!({"network": {"allowlist": [
            {"domain": API, "ports": [2222], "protocol": "tcp"},
        ]}});
        for reply in [Reply::Tunnel, Reply::TunnelWithBanner] {
            let given = reply.clone();
            let proxy = UpstreamProxy::at(PROXY).answer(move |_| given.clone()).start();
            let gateway = behind(&world, &environment).start();
            let mut tunnel = gateway.client().connect_tunnel("api.example.com:2222");
            assert_eq!(tunnel.read_exact(BANNER.len()), BANNER, "{reply:?}");
            tunnel.send(b"\x00said");
            assert_eq!(tunnel.read_exact(5), b"\x00said", "{reply:?}");
            tunnel.finish_sending();
            assert!(tunnel.is_closed(), "{reply:?}");
            assert_eq!(proxy.asked(), ["11.22.33.44:2222"]);
            let line = &gateway.wait_audit(1)[0];
            assert_eq!(line["address"], "11.22.33.44:2222", "{line}");
        }
        assert_eq!(origin.connections(), 2);
    });
}

#[test]
fn tls_that_ends_at_the_origin_leaves_by_it() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        let proxy = UpstreamProxy::at(PROXY).start();
        let environment =
            json!({"network": {"allowlist": [{"domain": API, "tls": "passthrough"}]}});
        let gateway = behind(&world, &environment).start();
        let client = RawClient::connect(gateway.explicit(), world.pki.roots());
        let mut client = client.connect_tunnel("api.example.com:443").tls(&Hello::to(API));
        let answer = client.exchange("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        assert_eq!(answer.status, 200);
        assert_eq!((proxy.connections(), origin.requests().len()), (1, 1));
    });
}

#[test]
fn a_tool_call_s_hook_and_a_token_endpoint_are_reached_by_it() {
    isolated(|| {
        let world = world!();
        world.name("auth.example.test", "11.22.33.77");
        let said = |body: &str| {
            let length = body.len();
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
        };
        let auth = world.https("auth.example.test").respond(said(
            r#"{"access_token": "the-token", "token_type": "Bearer", "expires_in": 3600}"#,
        ));
        let auth = auth.start();
        let api = world.https(API).respond(said(r#"{"decision": "deny", "reason": "no"}"#)).start();
        let proxy = UpstreamProxy::at(PROXY).start();
        let hooks = network::folder().join("operator.json");
        let handler = json!({"type": "http", "url": "https://api.example.com/events"});
        let group = json!({"g": {"pre_tool_execution": [{"matcher": "*", "hooks": [handler]}]}});
        fs::write(&hooks, group.to_string()).expect("the test's folder is writable");
        let file =
            format!("{}[hooks]\nfile = {hooks:?}\n", upstream(&format!("http://{PROXY}"), ""));
        let environment = json!({"environment_id": "env_one", "network": {"allowlist": [
            {"domain": API, "credential": "main"},
        ]}});
        let builder = world.gateway_builder().configuration(&file);
        let gateway = builder.environment(&environment).start();
        let credential = json!({"id": "main", "type": "oauth2", "client_id": "c",
            "client_secret": "s", "refresh_token": "r",
            "token_url": "https://auth.example.test/token"});
        assert_eq!(post(&gateway, "/v1beta/credentials", &credential).status, 200);
        let event = json!({"tool_call": {"name": "view_file", "args": {"path": "/x"}}});
        let answer =
            post(&gateway, "/v1/environments/env_one/hooks/pre_tool_execution", &event).json();
        assert_eq!((&answer["decision"], &answer["reason"]), (&json!("deny"), &json!("no")));
        let mut asked = proxy.asked();
        asked.sort();
        assert_eq!(asked, ["11.22.33.44:443", "11.22.33.77:443"]);
        assert_eq!((auth.requests().len(), api.requests().len()), (1, 1));
        let sent = &api.requests()[0];
        assert_eq!(sent.header("authorization"), Some("Bearer the-token"));
    });
}

#[test]
fn a_source_is_fetched_by_it() {
    isolated(|| {
        let world = world!();
        world.name(SERVICE, "11.22.33.88");
        let bucket = Bucket::new("data").object("set/a.txt", "one");
        let _service = world.https(SERVICE).script(bucket.serve()).start();
        let proxy = UpstreamProxy::at(PROXY).start();
        let environment = json!({
            "sources": [{"type": "gcs", "source": "gs://data/set", "target": "/workspace"}],
            "network": {"allowlist": [{"domain": SERVICE}]},
        });
        let gateway = behind(&world, &environment).start();
        let brought = gateway.state().join("environments/env_test/root/workspace/a.txt");
        let is_there = || fs::read_to_string(&brought).is_ok_and(|text| text == "one");
        assert!(wait_until(SOON * 2, is_there), "{:?}", gateway.logs());
        assert!(proxy.asked().iter().all(|asked| asked == "11.22.33.88:443"));
        assert!(proxy.connections() >= 1);
    });
}

#[test]
fn a_variable_of_the_gateway_s_own_process_names_no_proxy() {
    isolated(|| {
        let world = world!();
        let _origin = world.https(API).start();
        let proxy = UpstreamProxy::at(PROXY).start();
        let mut builder = world.gateway_builder().environment(&allowing(&[API]));
        for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HTTP_PROXY"] {
            builder = builder.variable(name, format!("http://{PROXY}"));
        }
        let gateway = builder.start();
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        assert_eq!(proxy.connections(), 0);
    });
}

#[test]
fn another_proxy_in_the_operator_s_file_waits_for_a_restart() {
    isolated(|| {
        let world = world!();
        let _origin = world.https(API).start();
        let proxy = UpstreamProxy::at(PROXY).start();
        let gateway = behind(&world, &allowing(&[API])).start();
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        gateway.set_configuration("");
        gateway.reload();
        assert!(gateway.wait_log("[upstream] has changed: a restart puts it in force"));
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        assert_eq!(proxy.connections(), 1, "the connection is used on");
    });
}

fn post(gateway: &Gateway, path: &str, body: &Value) -> Response {
    let key = fs::read_to_string(gateway.state().join("management.key")).expect("it is ours");
    let body = body.to_string();
    gateway.management(format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nx-goog-api-key: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        key.trim(),
        body.len()
    ))
}
