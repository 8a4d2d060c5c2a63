//! Whom do we believe, and who are we?

use super::*;

const OK_URL: &str = "https://a.ok.example.test/";

#[test]
fn an_origin_that_asks_is_shown_the_entry_s_certificate_and_no_other_origin_is() {
    isolated(|| {
        let world = world!();
        let origins = [API, OK]
            .map(|name| world.https(name).demand_certificate(world.pki.root_store()).start());
        let place = Place::new();
        place.identity(&world, "client");
        let origin = json!({"client_certificate": "client.pem", "client_key": "client.key"});
        let gateway = place.gateway(&world, &origin).start();
        assert_eq!(status(&gateway, URL), (200, None));
        let without = gateway.curl(OK_URL).run();
        assert_eq!(without.status, 502, "{without:?}");
        assert_eq!(without.reason(), Some("origin_tls"), "{}", without.text());
        assert!(without.text().contains("client_certificate_required"), "{}", without.text());
        assert_eq!((origins[0].requests().len(), origins[1].raw().len()), (1, 0));
        let key = fs::read_to_string(place.folder.join("client.key")).expect("it is there");
        let secret = key.lines().nth(1).expect("base64").to_owned();
        assert_secret_absent(gateway.output(), &secret);
    });
}

#[test]
fn websockets_are_shown_it_too_and_end_with_it() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).demand_certificate(world.pki.root_store());
        let origin = origin.script(scripts::websocket_echo()).start();
        let place = Place::new();
        place.identity(&world, "client");
        let said = json!({"client_certificate": "client.pem", "client_key": "client.key"});
        let gateway = place.gateway(&world, &said).start();
        let mut client =
            gateway.client().connect_tunnel("api.example.com:443").tls(&Hello::to(API));
        client.send(
            "GET /ws HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        );
        assert_eq!(client.read_response().status, 101);
        assert_eq!(origin.connections(), 1);
        let frame = [0x81, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2];
        client.send(frame);
        assert_eq!(client.read_exact(frame.len()), frame);
        place.identity(&world, "client");
        assert!(client.is_closed(), "another certificate would be shown today");
    });
}

#[test]
fn an_entry_s_roots_are_the_only_ones_for_its_origin() {
    isolated(|| {
        let world = world!();
        let strange = |name: &str| world.pki.leaf(name).by_unknown_root().issue();
        let place = Place::new();
        place.copy(world.pki.unknown_roots(), "corp.pem");
        let gateway = place.gateway(&world, &json!({"roots": "corp.pem"})).start();
        for (api, ok, wanted) in [
            (strange(API), world.pki.leaf(OK).issue(), [(200, None), (200, None)]),
            (world.pki.leaf(API).issue(), strange(OK), [refused(), refused()]),
        ] {
            let origins = [(API, api), (OK, ok)]
                .map(|(name, identity)| world.https(name).identity(identity).start());
            // Nothing from before is used on.
            let gateway = if wanted[0].0 == 200 {
                &gateway
            } else {
                &place.gateway(&world, &json!({"roots": "corp.pem"})).start()
            };
            assert_eq!([URL, OK_URL].map(|url| status(gateway, url)), wanted);
            origins.into_iter().for_each(Origin::stop);
        }
    });
}

#[test]
fn an_origin_older_than_the_entry_wants_is_not_spoken_to() {
    isolated(|| {
        let world = world!();
        let origins = [API, OK].map(|name| world.https(name).only_tls12().start());
        let place = Place::new();
        let gateway = place.gateway(&world, &json!({"min_tls": "1.3"})).start();
        assert_eq!(status(&gateway, URL), refused());
        assert_eq!(status(&gateway, OK_URL), (200, None));
        assert_eq!(origins[0].raw().len(), 0);
        let older = place.gateway(&world, &json!({"min_tls": "1.2"})).start();
        assert_eq!(status(&older, URL), (200, None));
        origins.into_iter().for_each(Origin::stop);
        let _newer = world.https(API).start();
        assert_eq!(status(&gateway, URL), (200, None));
    });
}
