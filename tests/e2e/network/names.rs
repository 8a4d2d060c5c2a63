//! Whom can a sandbox ask for names, and what else may a datagram do?

use outgate_tests::dns::RecordType;
use outgate_tests::names::Names;

use super::*;

for_every_kind![
    the_gateway_answers_whoever_is_asked,
    other_datagrams_are_refused_at_once,
    the_address_of_a_name_means_nothing_to_another_sandbox,
];

/// D04: any server, UDP and TCP, and no question goes further.
fn the_gateway_answers_whoever_is_asked(kind: Kind) {
    let scene = Scene::new(kind);
    let _gateway = scene.gateway(&json!([{"domain": API}]));
    for server in ["10.20.0.1:53", "11.22.33.66:53", "[fd10:20::1]:53", "[2a00:66::53]:53"] {
        let names = Names::of(server.parse().expect("an address and a port"));
        scene.one.inside(|| {
            let over_udp = names.address(EVIL, RecordType::A);
            let over_tcp = names.connect().ask(EVIL, RecordType::A).expect("an answer").data();
            assert_eq!(over_tcp, [over_udp.to_string()], "{server}");
            assert_eq!(names.name(over_udp).as_deref(), Some(EVIL), "{server}");
        });
    }
    assert_eq!(scene.world.dns.asked(EVIL), 0);
    assert_eq!(scene.site.leaked(&[]), []);
}

/// D03, D04, D07, pD20: as many at once as a browser tries, so that none waits for its own clock.
fn other_datagrams_are_refused_at_once(kind: Kind) {
    let scene = Scene::new(kind);
    let _gateway = scene.gateway(&json!([{"domain": API}]));
    let quic_initial = [0xc0; 1200];
    scene.one.inside(|| {
        for round in 0..20 {
            for address in ["11.22.33.44", "[2a00:1122:3344::44]"] {
                for port in [443, 123, 853, 5353] {
                    let to = format!("{address}:{port}");
                    let refused = datagram(&to, &quic_initial);
                    assert_eq!(refused, Err(ErrorKind::ConnectionRefused), "{round}: {to}");
                }
            }
        }
    });
    assert_eq!(scene.site.leaked(&[]), []);
}

fn the_address_of_a_name_means_nothing_to_another_sandbox(kind: Kind) {
    let scene = Scene::new(kind);
    let api = scene.api();
    let gateway = scene.gateway(&json!([{"domain": API}]));
    let names = Names::of("10.20.0.1:53".parse().expect("an address and a port"));
    let address = scene.one.inside(|| names.address(API, RecordType::A));
    // TLS that names no host: the address alone says where to.
    let status = || {
        let client = RawClient::connect((address, 443).into(), gateway.ca());
        let mut client = client.try_tls(&Hello::to(API).without_server_name()).ok()?;
        Some(client.exchange("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n").status)
    };
    assert_eq!(scene.one.inside(status), Some(200));
    assert_ne!(scene.two.inside(status), Some(200));
    assert_eq!(api.iter().map(Origin::connections).sum::<usize>(), 1);
    assert_eq!(scene.site.leaked(&API_ORIGINS), []);
}
