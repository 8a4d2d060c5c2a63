//! Whose a client is, it can't choose.

use std::fs;

use outgate_tests::wait::wait_for;

use super::*;

/// Two environments that are known by their tokens, e2 by a listener too; returns the tokens.
fn two(world: &World, limits: &str) -> (Gateway, [String; 2]) {
    let tokens = [canary(32), canary(32)];
    let folder = network::folder();
    let mut file = format!("{limits}\n");
    for (number, token) in (1..).zip(&tokens) {
        let path = |kind| folder.join(format!("e{number}.{kind}"));
        fs::write(path("json"), allowing(&[API]).to_string()).expect("writable");
        fs::write(path("token"), token).expect("writable");
        let (json, token) = (path("json"), path("token"));
        file += &format!("[[environment]]\nfile = {json:?}\ntoken_file = {token:?}\n");
    }
    file += "[[listener]]\nkind = \"socks\"\nbind = \"127.0.0.1:0\"\n";
    file += "[[listener]]\nkind = \"socks\"\nbind = \"127.0.0.1:0\"\nenvironment = \"e2\"\n";
    file += "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:0\"\n";
    let builder = world.gateway_builder().configuration(&file);
    (builder.listeners_from_configuration().start(), tokens)
}

fn at(gateway: &Gateway, listener: usize) -> RawClient {
    let address = gateway.ready()["socks"][listener].as_str().expect("it listens");
    RawClient::connect(address.parse().expect("an address"), gateway.ca())
}

fn claim(user: &str, password: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).expect("short");
    let user = [&[1, length(user)], user.as_bytes()].concat();
    [&user, &[length(password)][..], password.as_bytes()].concat()
}

/// The status of a claim, or `None` where none is asked for.
fn claimed(client: &mut RawClient, methods: &[u8], claim: &[u8]) -> Option<u8> {
    let number = u8::try_from(methods.len()).expect("few");
    client.send([&[5, number], methods].concat());
    match client.read_exact(2)[..] {
        [5, 2] => {
            client.send(claim);
            let status = client.read_exact(2);
            assert_eq!(status[0], 1);
            Some(status[1])
        }
        [5, 0] => None,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_token_proves_it() {
    isolated(|| {
        let world = world!();
        let _api = world.http(API).start();
        let (gateway, tokens) = two(&world, "");
        for (number, id) in ["e1", "e2"].iter().enumerate() {
            let mut client = at(&gateway, 0);
            let status = claimed(&mut client, &[0, 2], &claim(id, &tokens[number]));
            assert_eq!(status, Some(0));
            client.send(named(API, 80));
            assert_eq!(reply(&mut client), SUCCEEDED);
            assert_eq!(client.exchange(GET).status, 200);
            assert_eq!(gateway.wait_audit(number + 1)[number]["environment_id"], *id);
        }
        let proxy = format!("socks5h://e1:{}@", tokens[0]);
        let proxy = format!("{proxy}{}", gateway.ready()["socks"][0].as_str().expect("one"));
        let curl = Curl::new("http://api.example.com/").argument("--proxy").argument(proxy);
        assert_eq!(curl.run().status, 200);
        tokens.iter().for_each(|token| assert_secret_absent(gateway.output(), token));
    });
}

#[test]
fn who_proves_nothing_or_contradicts_what_is_known_is_refused() {
    isolated(|| {
        let world = world!();
        let (gateway, tokens) = two(&world, "");
        let nobody = claim("nobody", &tokens[0]);
        for (listener, wrong) in [
            (0, claim("e1", &tokens[1])),
            (0, claim("e1", "")),
            (0, claim("", &tokens[0])),
            (0, nobody),
            // It is e2's, whatever is proven.
            (1, claim("e1", &tokens[0])),
            (1, claim("e2", &tokens[0])),
        ] {
            let mut client = at(&gateway, listener);
            assert_eq!(claimed(&mut client, &[2], &wrong), Some(1), "{}", wrong.escape_ascii());
            assert!(client.is_closed());
        }
        let mut client = at(&gateway, 0);
        client.send(GREETING);
        assert_eq!(client.read_exact(2), [5, 255]);
        assert!(client.is_closed());
        let mut client = at(&gateway, 0);
        client.send([5, 1, 2]);
        assert_eq!(client.read_exact(2), [5, 2]);
        client.send([5, 1, b'e', 1, b'x']);
        assert!(client.is_closed(), "another version than RFC 1929 has");
        let audit = gateway.wait_audit(8);
        assert_eq!(audit.len(), 8, "{audit:#?}");
        for line in &audit[..7] {
            assert_eq!(line["reason"], "proxy_authentication_required", "{line}");
        }
        assert_eq!(audit[7]["reason"], "malformed_request");
        tokens.iter().for_each(|token| assert_secret_absent(gateway.output(), token));
    });
}

#[test]
fn where_it_is_known_nothing_need_be_said() {
    isolated(|| {
        let world = world!();
        let _api = world.http(API).start();
        let (gateway, tokens) = two(&world, "");
        // As Java does, which would say the name of its user.
        for methods in [&[0][..], &[0, 2], &[2, 0], &[2]] {
            let mut client = at(&gateway, 1);
            let status = claimed(&mut client, methods, &claim("e2", &tokens[1]));
            assert_eq!(status, (methods == [2]).then_some(0), "{methods:?}");
            client.send(named(API, 80));
            assert_eq!(reply(&mut client), SUCCEEDED);
            assert_eq!(client.exchange(GET).status, 200);
        }
        let audit = gateway.wait_audit(4);
        assert!(audit.iter().all(|line| line["environment_id"] == "e2"), "{audit:#?}");
    });
}

#[test]
fn connections_have_a_bound_before_and_after_they_say_whose_they_are() {
    isolated(|| {
        let world = world!();
        let _api = world.http(API).start();
        let (gateway, tokens) = two(&world, "[limits]\nstrangers = 1\nconnections = 1\n");
        let open = || {
            let mut client = at(&gateway, 0);
            assert_eq!(claimed(&mut client, &[2], &claim("e1", &tokens[0])), Some(0));
            client.send(named(API, 80));
            (reply(&mut client), client)
        };
        let (code, known) = open();
        assert_eq!(code, SUCCEEDED);
        assert_eq!(open().0, FAILED, "e1 has one connection");
        // The one that was refused is a stranger until its socket is closed.
        let greets = || {
            let mut client = at(&gateway, 0);
            client.send([5, 1, 2]);
            (client.read_exact(2) == [5, 2]).then_some(client)
        };
        let silent = wait_for(Duration::from_secs(5), greets).expect("its place is free again");
        assert_eq!(at(&gateway, 0).read_exact(2), [5, 255], "there is a stranger already");
        drop((known, silent));
        // One of e1, at least one stranger, and the two that were let in.
        let audit = gateway.wait_audit(4);
        let refused = audit.iter().filter(|line| line["reason"] == "too_many_connections");
        assert!(refused.count() >= 2, "{audit:#?}");
    });
}
