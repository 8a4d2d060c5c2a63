//! Does anything leave that outgate didn't send?

use std::net::{Ipv4Addr, Ipv6Addr};

use outgate_tests::network::frames::{self, FrameSocket};

use super::attacks::{Attacks, ONE6};
use super::*;

for_every_kind![
    every_attack_would_get_out_without_the_rules,
    nothing_gets_out_past_the_gateway,
    root_in_the_sandbox_changes_nothing,
    nothing_gets_out_without_any_rule_of_nft,
    nobody_is_believed_about_the_link,
];

fn every_attack_would_get_out_without_the_rules(kind: Kind) {
    let scene = Scene::without_rules(kind);
    let attacks = Attacks::of_one(&scene);
    attacks.send(&scene.one);
    let arrived = scene.site.arrived();
    let out = |to| arrived.iter().any(|packet| packet.destination == Some(to));
    let otherwise: Vec<(String, bool)> = attacks
        .all
        .into_iter()
        .filter(|attack| out(attack.to) != attack.leaves)
        .map(|attack| (attack.name, attack.leaves))
        .collect();
    assert_eq!(otherwise, []);
}

fn nothing_gets_out_past_the_gateway(kind: Kind) {
    let scene = Scene::new(kind);
    let heard_by_two = scene.two.inside(|| Recorder::start("eth0"));
    let _gateway = scene.gateway(&json!([{"domain": API}]));
    Attacks::of_one(&scene).send(&scene.one);
    assert_eq!(scene.site.leaked(&[]), []);
    // Nor does anybody answer to the addresses that were not its own.
    assert_eq!(beyond_the_link(&heard_by_two), []);
}

/// D10: the rules are on the other side.
fn root_in_the_sandbox_changes_nothing(kind: Kind) {
    let scene = Scene::new(kind);
    let _gateway = scene.gateway(&json!([{"domain": API}]));
    scene.one.shell(
        "nft flush ruleset
         nft add table inet own
         sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
         ip address add 10.20.2.2/32 dev eth0
         ip address add 11.22.33.44/32 dev eth0
         ip route add 11.99.0.0/24 via 10.20.0.1 dev eth0 onlink",
    );
    Attacks::of_one(&scene).send(&scene.one);
    for foreign in ["10.20.2.2", "11.22.33.44"] {
        scene.one.shell(&format!("ip route replace default via 10.20.1.1 src {foreign}"));
        let silence = scene.one.inside(|| connect("11.22.33.66:443").map(drop));
        assert_eq!(silence, Err(ErrorKind::TimedOut), "{foreign}");
    }
    assert_eq!(scene.site.leaked(&[]), []);
}

/// Somebody flushes all of it, as `systemctl restart nftables` does, on a machine that forwards.
fn nothing_gets_out_without_any_rule_of_nft(kind: Kind) {
    let scene = Scene::new(kind);
    scene.site.gateway.shell(
        "nft flush ruleset
         sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
    );
    Attacks::of_one(&scene).send(&scene.one);
    assert_eq!(scene.site.leaked(&[]), []);
}

/// Router advertisements, redirects and other machines' addresses: RFC 4861, RFC 826.
fn nobody_is_believed_about_the_link(kind: Kind) {
    let scene = Scene::new(kind);
    let gateway = &scene.site.gateway;
    let look = "ip -o address show scope global; ip route; ip -6 route show | grep -v ^fe80
                ip neighbour show dev wan; ip -6 neighbour show dev wan";
    let before = gateway.shell(look);
    lies(&scene);
    assert_eq!(gateway.shell(look), before);
    let neighbours = gateway.shell("ip neighbour show dev sbx-one");
    let known = |line: &&str| line.starts_with("10.20.1.2 ") || line.starts_with("fd10:20:1::2 ");
    assert_eq!(neighbours.lines().filter(|line| !known(line)).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(scene.site.leaked(&[]), []);
}

/// Sends them from `one`.
fn lies(scene: &Scene) {
    let (card, gateway) = (scene.one.mac("eth0"), scene.site.gateway.mac("sbx-one"));
    let router: Ipv6Addr = "fe80::1".parse().expect("an address");
    let everybody: Ipv6Addr = "ff02::1".parse().expect("an address");
    let own: Ipv6Addr = "fd10:20:1::1".parse().expect("an address");
    // A router for half an hour, with a prefix for its link (RFC 4861 §4.2, §4.6.2).
    let mut advertisement = vec![64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0];
    advertisement.extend([3, 4, 64, 0xc0, 0, 0, 7, 8, 0, 0, 7, 8, 0, 0, 0, 0]);
    advertisement.extend(ONE6.octets());
    let mut sent = Vec::new();
    for (from, to) in [(router, everybody), (ONE6, everybody), (router, own), (ONE6, own)] {
        let ends = (from.into(), to.into());
        let redirect = [[0; 4].as_slice(), &own.octets(), &own.octets()].concat();
        for (kind, body) in [(134, advertisement.as_slice()), (137, &redirect)] {
            sent.push(frames::ip((card, gateway), ends, 58, &frames::icmp(ends, kind, body)));
        }
        // "I am the next hop", with the card of the speaker (§4.4).
        let next_hop: Ipv6Addr = "2a00:99::1".parse().expect("an address");
        let claim = [&[0x20, 0, 0, 0], next_hop.octets().as_slice(), &[2, 1], &card].concat();
        sent.push(frames::ip((card, gateway), ends, 58, &frames::icmp(ends, 136, &claim)));
    }
    for number in 0..=255 {
        // Questions make their askers known, too.
        let stranger = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, number);
        let ends = (stranger.into(), own.into());
        let asks = [&[0; 4], own.octets().as_slice(), &[1, 1], &card].concat();
        sent.push(frames::ip((card, gateway), ends, 58, &frames::icmp(ends, 135, &asks)));
        let stranger = Ipv4Addr::new(10, 20, 1, 3 + u8::try_from(number % 250).expect("small"));
        sent.push(frames::arp(card, gateway, (stranger, Ipv4Addr::new(10, 20, 1, 1))));
        sent.push(frames::arp(card, gateway, (Ipv4Addr::new(11, 99, 0, 1), stranger)));
    }
    scene.one.inside(|| {
        let socket = FrameSocket::new("eth0");
        sent.iter().for_each(|frame| socket.send(frame));
    });
}
