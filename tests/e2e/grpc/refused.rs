//! Does a client of gRPC read why it is refused?

use super::*;

#[test]
fn a_refused_call_is_an_answer_of_trailers_alone() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).script(serve).start();
        let entry = json!({"domain": NAME, "paths": ["/test.Echo/Unary"]});
        let mut gateway = world.gateway(json!({"network": {"allowlist": [entry]}}));
        let client = gateway.http2(NAME).connect();
        let mut exchange = call(&client, "Bidi");
        exchange.send(message("hello"));
        exchange.finish();
        let answer = exchange.answer().expect("an answer");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(TYPE)));
        assert_eq!(answer.header("grpc-status"), Some("7"), "PERMISSION_DENIED");
        let said = answer.header("grpc-message").expect("a message");
        assert!(said.starts_with("path_not_allowed: ") && said.contains(NAME), "{said}");
        assert_eq!(answer.reason(), Some("path_not_allowed"));
        assert!(answer.body.is_empty() && answer.trailers.is_none(), "{answer:?}");
        assert_eq!(origin.connections(), 0);

        // Everyone else reads the status of HTTP and JSON, clients of gRPC-Web among them.
        for kind in ["application/json", "application/grpc-web+proto"] {
            let asked = client.request("POST", "/test.Echo/Bidi").header("content-type", kind);
            let answer = client.ask(asked, "{}");
            assert_eq!((answer.status, answer.header("grpc-status")), (403, None), "{kind}");
            assert_eq!(answer.json()["error"]["status"], "PERMISSION_DENIED");
        }
        let mut exchange = call(&client, "Unary");
        exchange.finish();
        assert_eq!(exchange.answer().expect("an answer").trailer("grpc-status"), Some("0"));
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), 4, "{audit:#?}");
        assert_eq!(
            (&audit[0]["status"], &audit[0]["reason"], &audit[0]["verdict"]),
            (&json!(403), &json!("path_not_allowed"), &json!("deny"))
        );
    });
}

#[test]
fn a_call_that_is_refused_for_its_head_says_so_too() {
    isolated(|| {
        let world = world!();
        let origin = world.http2(NAME).script(serve).start();
        let gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let ask = |change: &dyn Fn(http::request::Builder) -> http::request::Builder| {
            let asked = client.request("POST", "/test.Echo/Unary");
            let asked = asked.header("content-type", "application/grpc+proto");
            let mut exchange = client.open(change(asked.header("te", "trailers")));
            exchange.finish();
            exchange.answer().expect("an answer")
        };
        let elsewhere = ask(&|asked| asked.header("host", "evil.example.test"));
        assert_eq!((elsewhere.status, elsewhere.reason()), (200, Some("name_mismatch")));
        assert_eq!(elsewhere.header("grpc-status"), Some("9"), "FAILED_PRECONDITION");
        let malformed = ask(&|asked| asked.header("expect", "200-maybe"));
        assert_eq!((malformed.status, malformed.reason()), (200, Some("malformed_request")));
        assert_eq!(malformed.header("grpc-status"), Some("3"), "INVALID_ARGUMENT");
        assert_eq!(origin.connections(), 0);
        assert_eq!(ask(&|asked| asked).trailer("grpc-status"), Some("0"));
    });
}

#[test]
fn a_call_to_a_server_that_is_not_there_is_unavailable() {
    isolated(|| {
        let world = world!();
        let mut gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        let unary = || {
            let mut exchange = call(&client, "Unary");
            exchange.finish();
            exchange.answer().expect("an answer")
        };
        let answer = unary();
        assert_eq!((answer.status, answer.reason()), (200, Some("origin_connect")));
        assert_eq!(answer.header("grpc-status"), Some("14"), "UNAVAILABLE");
        assert!(!format!("{answer:?}").contains("11.22.33.44"), "{answer:?}");
        let _origin = world.http2(NAME).script(serve).start();
        assert_eq!(unary().trailer("grpc-status"), Some("0"));
        let audit = gateway.final_audit();
        assert_eq!(
            (&audit[0]["status"], &audit[0]["reason"]),
            (&json!(502), &json!("origin_connect"))
        );
    });
}

#[test]
fn a_call_to_an_origin_without_http2_is_unavailable_and_not_sent() {
    isolated(|| {
        let world = world!();
        let origin = world.https(NAME).script(scripts::echo()).start();
        let gateway = gateway(&world);
        let client = gateway.http2(NAME).connect();
        for _ in 0..2 {
            let mut exchange = call(&client, "Unary");
            // The refusal may come before all of it is sent.
            exchange.send_while_taken(&message("hello"), Duration::from_secs(5));
            let answer = exchange.answer().expect("an answer");
            assert_eq!((answer.status, answer.reason()), (200, Some("origin_protocol")));
            assert_eq!(answer.header("grpc-status"), Some("14"), "UNAVAILABLE");
            let said = answer.header("grpc-message").expect("a message");
            assert!(said.contains("gRPC needs HTTP/2"), "{said}");
        }
        assert!(origin.requests().is_empty());
        // What is no gRPC is bridged, over the connection that is there already.
        assert_eq!(client.get("/").status, 200);
        assert_eq!((origin.requests().len(), origin.connections()), (1, 1));
    });
}
