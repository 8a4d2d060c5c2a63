//! Does what holds no value come out as it went in?

use aws_lc_rs::digest::{Context, SHA256, digest};
use outgate_tests::prelude::*;

use crate::{GET, NAME, environment, tunnel};

const LENGTH: usize = 100 << 20;

/// Bytes of every kind, and text in which every few bytes could begin an escape.
fn pattern() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 << 20);
    let mut number = 1_u64;
    while bytes.len() < 1 << 20 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(b"\\u0041 %41 Bearer ");
    }
    bytes.truncate(1 << 20);
    bytes
}

#[test]
fn a_hundred_clean_megabytes_are_the_same_bytes() {
    isolated(|| {
        let world = world!();
        let pattern = pattern();
        let mut due = Context::new(&SHA256);
        (0..LENGTH >> 20).for_each(|_| due.update(&pattern));
        let due = due.finish();
        let script = move |connection: &mut Connection| {
            while connection.request().is_some() {
                connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"));
                assert!((0..LENGTH >> 20).all(|_| connection.send(&pattern)));
            }
        };
        let _origin = world.https(NAME).script(script).start();
        let gateway = world.gateway(environment(&canary(40), true));
        let mut client = tunnel(&gateway).read_timeout(Duration::from_secs(60));
        client.send(GET);
        let said = client.read_response();
        assert_eq!(said.header("content-length"), Some(&*LENGTH.to_string()));
        assert_eq!(digest(&SHA256, &said.body).as_ref(), due.as_ref());
    });
}
