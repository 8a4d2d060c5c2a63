//! Are the addresses of WebSockets judged as those of requests are?

use std::thread;

use outgate_tests::dns::RecordType;
use outgate_tests::prelude::*;

use crate::{ADDRESS, OK, assert_unmet, environment, loopback};

const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: a.ok.example.test\r\nConnection: Upgrade\r\n\
                       Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
/// The answers of the test's name server have run out by then.
const LATER: Duration = Duration::from_millis(1500);

#[test]
fn a_name_that_comes_to_mean_this_machine_gets_no_websocket() {
    isolated(|| {
        let world = world!();
        let locals = loopback(&world);
        let origin = world.https(OK).script(scripts::websocket_echo()).start();
        let gateway = world.gateway(environment());
        let leads_to = |address: &str| {
            let reply = Reply::addresses(&[address]).seconds_to_live(0);
            world.dns.script(OK, RecordType::A, vec![reply]);
        };
        leads_to(ADDRESS);
        let tunnel = || gateway.client().connect_tunnel("a.ok.example.test:443");
        let mut older = tunnel().tls(&Hello::to(OK));
        let newer = gateway.http2(OK).connect();
        assert_eq!(tunnel().tls(&Hello::to(OK)).exchange(UPGRADE).status, 101);
        assert_eq!(newer.open_websocket("/ws").head().expect("an answer").status, 200);

        leads_to("127.0.0.1");
        thread::sleep(LATER);
        let refused = older.exchange(UPGRADE);
        assert_eq!(refused.header("outgate-reason"), Some("address_not_allowed"), "{refused:?}");
        let refused = newer.open_websocket("/ws").answer().expect("an answer");
        assert_eq!(refused.reason(), Some("address_not_allowed"), "{refused:?}");
        assert_eq!(origin.connections(), 2);
        assert_unmet(&locals);
    });
}
