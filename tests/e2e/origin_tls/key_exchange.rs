//! Is the key exchange that a later quantum computer can't undo offered, and accepted?

use rustls::NamedGroup;

use super::*;

/// The groups that a ClientHello names, and those of them that it sends a share of (RFC 8446
/// sections 4.2.7 and 4.2.8).
fn groups(wire: &[u8]) -> (Vec<u16>, Vec<u16>) {
    let number = |bytes: &[u8]| usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
    // Record and handshake header, version, random, session.
    let mut rest = &wire[5 + 4 + 2 + 32..];
    rest = &rest[1 + usize::from(rest[0])..];
    rest = &rest[2 + number(rest)..];
    rest = &rest[1 + usize::from(rest[0])..];
    let mut extensions = &rest[2..2 + number(rest)];
    let (mut supported, mut shares) = (Vec::new(), Vec::new());
    while !extensions.is_empty() {
        let (kind, length) = (number(extensions), number(&extensions[2..]));
        let body = &extensions[4..4 + length];
        let group = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
        match kind {
            10 => supported.extend(body[2..].chunks(2).map(group)),
            51 => {
                let mut list = &body[2..];
                while !list.is_empty() {
                    shares.push(group(list));
                    list = &list[4 + number(&list[2..])..];
                }
            }
            _ => {}
        }
        extensions = &extensions[4 + length..];
    }
    (supported, shares)
}

#[test]
fn the_hybrid_key_exchange_is_offered_first_with_a_share_of_the_old_one_beside_it() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        let gateway = world.gateway(json!({"network": {"allowlist": [{"domain": API}]}}));
        assert_eq!(status(&gateway, URL), (200, None));
        let (supported, shares) = groups(&origin.records()[0].wire());
        let [hybrid, old] = [NamedGroup::X25519MLKEM768, NamedGroup::X25519].map(u16::from);
        assert_eq!(supported.first(), Some(&hybrid), "{supported:?}");
        assert!(supported.contains(&old), "{supported:?}");
        assert_eq!(shares, [hybrid, old], "an old origin need not ask again");
    });
}

#[test]
fn origins_with_either_are_reached() {
    isolated(|| {
        let world = world!();
        for group in [
            NamedGroup::X25519MLKEM768,
            NamedGroup::X25519,
            NamedGroup::secp256r1,
            NamedGroup::secp384r1,
        ] {
            let origin = world.https(API).only_group(group).start();
            let gateway = world.gateway(json!({"network": {"allowlist": [{"domain": API}]}}));
            assert_eq!(status(&gateway, URL), (200, None), "{group:?}");
            assert_eq!(origin.connections(), 1, "{group:?}");
        }
    });
}
