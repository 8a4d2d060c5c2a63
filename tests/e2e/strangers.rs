//! What may clients hold that have not said whose they are?

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outgate_tests::prelude::*;

const IN_TIME: Duration = Duration::from_secs(5);

/// A gateway whose only environment is known by a token alone, on a listener of nobody's.
fn by_token(world: &World, limits: &str, token: &str) -> Gateway {
    let folder = network::folder();
    let environment = json!({"network": {"allowlist": [{"domain": "api.example.com"}]}});
    fs::write(folder.join("one.json"), environment.to_string()).expect("writable");
    fs::write(folder.join("one.token"), token).expect("writable");
    let configuration = format!(
        "[limits]\n{limits}\n[[environment]]\nfile = \"{0}/one.json\"\n\
         token_file = \"{0}/one.token\"\n[[listener]]\nkind = \"explicit\"\n\
         bind = \"127.0.0.1:0\"\n",
        folder.display()
    );
    let builder = world.gateway_builder().listeners_from_configuration();
    builder.configuration(&configuration).start()
}

fn request(token: &str) -> Vec<u8> {
    let credentials = STANDARD.encode(format!("one:{token}"));
    format!(
        "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\
         Proxy-Authorization: Basic {credentials}\r\n\r\n"
    )
    .into_bytes()
}

#[test]
fn connections_that_say_nothing_are_bounded_and_leave_room_once_they_say_whose_they_are() {
    isolated(|| {
        let world = world!();
        let _api = world.http("api.example.com").start();
        let token = canary(32);
        let gateway = by_token(&world, "strangers = 2", &token);
        let mut known = gateway.client();
        let silent = gateway.client();
        let one_over = || gateway.client().read_response().header("outgate-reason").is_some();
        assert!(wait_until(IN_TIME, one_over), "a third connection is one too many");
        assert_eq!(known.exchange(request(&token)).status, 200);
        assert_eq!(gateway.client().exchange(request(&token)).status, 200, "its place is free");
        drop(silent);
        let audit = gateway.wait_audit(3);
        assert_eq!(audit[0]["reason"], json!("too_many_connections"));
    });
}

#[test]
fn a_client_that_connects_to_say_nothing_is_hung_up_on() {
    isolated(|| {
        let world = world!();
        let limits = "request_head = \"1s\"\nidle_keep_alive = \"30s\"";
        let gateway = by_token(&world, limits, &canary(32));
        let mut silent = gateway.client();
        assert!(wait_until(IN_TIME, || silent.is_closed()), "it is still there");
    });
}

#[test]
fn a_client_that_will_not_say_whose_it_is_may_try_once_more() {
    isolated(|| {
        let world = world!();
        let token = canary(32);
        let gateway = by_token(&world, "", &token);
        let mut client = gateway.client();
        let challenged = client.exchange(request("wrong"));
        assert_eq!((challenged.status, challenged.header("connection")), (407, None));
        let challenged = client.exchange(request("wrong"));
        assert_eq!((challenged.status, challenged.header("connection")), (407, Some("close")));
        assert!(client.is_closed());
    });
}
