//! Which addresses does a name get, and what if its answers lie, change, mix or fail?

#[path = "resolving/crowd.rs"]
mod crowd;
#[path = "resolving/upgrades.rs"]
mod upgrades;

use std::time::Instant;

use outgate_tests::dns::RecordType;
use outgate_tests::prelude::*;
use serde_json::Value;

const OK: &str = "a.ok.example.test";
const ADDRESS: &str = "11.22.33.55";

/// Everything under `ok.example.test` is allowed.
fn environment() -> Value {
    json!({"network": {"allowlist": [{"domain": "*.ok.example.test"}]}})
}

/// Whoever listens here must not be met.
fn loopback(world: &World) -> Vec<SilentListener> {
    ["127.0.0.1:443", "127.0.0.1:80", "[::1]:443", "[::1]:80", "10.0.0.9:443", "10.0.0.9:80"]
        .map(|address| world.silent(address))
        .into()
}

fn assert_unmet(listeners: &[SilentListener]) {
    assert!(listeners.iter().all(|listener| listener.connections() == 0));
}

/// Refused with this reason by every door, with one line each.
fn assert_refused(gateway: &Gateway, host: &str, reason: &str) {
    for door in Door::ALL {
        let refused = door.get(gateway, host);
        assert_eq!(refused.header("outgate-reason"), Some(reason), "{door:?} {host} {refused:?}");
    }
    let lines = || -> Vec<Value> {
        gateway.audit().into_iter().filter(|line| line["domain"] == host).collect()
    };
    wait_until(Duration::from_secs(5), || lines().len() >= Door::ALL.len());
    assert_eq!(lines().len(), Door::ALL.len(), "{:#?}", lines());
    for line in lines() {
        assert_eq!(line["reason"], reason, "{line}");
        assert_eq!(line.get("address"), None, "nothing was dialled: {line}");
    }
}

/// A TLS origin whose connections serve one request each.
fn one_request_each(world: &World) -> Origin {
    let response = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    world.https(OK).script(scripts::respond_and_close(&response[..])).start()
}

#[test]
fn a_name_that_leads_to_a_private_address_is_refused_whatever_leads_there() {
    isolated(|| {
        let world = world!();
        let locals = loopback(&world);
        let label = canary(8).replace(['-', '_'], "x").to_lowercase();
        let private = format!("{label}.ok.example.test");
        world.dns.name(&private, &["10.0.0.9"]);
        world.dns.name("localhost", &["127.0.0.1", "::1"]);
        world.dns.reply("cn.ok.example.test", &Reply::alias("localhost."));
        world.dns.reply("chain.ok.example.test", &Reply::alias("cn.ok.example.test"));
        world.dns.reply("alias.ok.example.test", &Reply::alias(OK));
        world.dns.name("six.ok.example.test", &["::1"]);
        world.dns.name("mapped.ok.example.test", &["::ffff:127.0.0.1"]);
        world.dns.name("ula.ok.example.test", &["fd00::9"]);
        world.dns.name("zero.ok.example.test", &["0.0.0.0", "::"]);
        let gateway = world.gateway(environment());
        for host in [
            private.as_str(),
            "cn.ok.example.test",
            "chain.ok.example.test",
            "six.ok.example.test",
            "mapped.ok.example.test",
            "ula.ok.example.test",
            "zero.ok.example.test",
        ] {
            assert_refused(&gateway, host, "address_not_allowed");
        }
        assert_unmet(&locals);
        // The name asked for counts, not the one that it is an alias of.
        let identity = world.pki.leaf("alias.ok.example.test").issue();
        let origin = world.https(OK).identity(identity).start();
        assert_eq!(Door::ConnectTls.get(&gateway, "alias.ok.example.test").status, 200);
        assert_eq!(origin.connections(), 1);
    });
}

#[test]
fn of_a_mixed_answer_the_good_addresses_alone_are_dialled() {
    isolated(|| {
        let world = world!();
        let locals = loopback(&world);
        let origin = one_request_each(&world);
        let gateway = world.gateway(environment());
        let mixes: [&[&str]; 4] = [
            &[ADDRESS, "127.0.0.1"],
            &["127.0.0.1", ADDRESS],
            &[ADDRESS, "::1"],
            &["10.0.0.9", "127.0.0.1", ADDRESS, "::1", "::ffff:127.0.0.1"],
        ];
        for (number, mix) in mixes.iter().enumerate() {
            let name = format!("mix{number}.ok.example.test");
            world.dns.name(&name, mix);
        }
        for _ in 0..6 {
            for number in 0..mixes.len() {
                let url = format!("http://mix{number}.ok.example.test/");
                let name = format!("mix{number}.ok.example.test");
                // The certificate is another name's: the connection is what counts here.
                let refused = Door::ConnectTls.get(&gateway, &name);
                assert_eq!(refused.header("outgate-reason"), Some("origin_tls"), "{refused:?}");
                assert_eq!(gateway.curl(&url).run().reason(), Some("origin_connect"));
            }
        }
        assert_eq!(origin.connections(), 24);
        // A fallback would be tempting where the good one refuses.
        world.dns.name("tempting.ok.example.test", &["11.22.33.99", "127.0.0.1", "::1"]);
        for door in Door::ALL {
            let refused = door.get(&gateway, "tempting.ok.example.test");
            assert_eq!(refused.header("outgate-reason"), Some("origin_connect"), "{door:?}");
        }
        assert_unmet(&locals);
    });
}

#[test]
fn an_answer_that_changes_after_the_look_is_judged_again() {
    isolated(|| {
        let world = world!();
        let locals = loopback(&world);
        let origin = one_request_each(&world);
        let good = Reply::addresses(&[ADDRESS]).seconds_to_live(0);
        let bad = Reply::addresses(&["127.0.0.1"]).seconds_to_live(0);
        let six = Reply::addresses(&["::1"]).seconds_to_live(0);
        world.dns.script(OK, RecordType::A, vec![good.clone(), bad.clone()]);
        world.dns.script(OK, RecordType::AAAA, vec![Reply::nothing().seconds_to_live(0), six]);
        let gateway = world.gateway(environment());
        let mut tunnel = gateway.client().connect_tunnel("a.ok.example.test:443");
        // The answer of CONNECT has run out when the request needs a connection.
        std::thread::sleep(Duration::from_millis(1500));
        tunnel = tunnel.tls(&Hello::to(OK));
        let refused = tunnel.exchange("GET / HTTP/1.1\r\nHost: a.ok.example.test\r\n\r\n");
        assert_eq!(refused.header("outgate-reason"), Some("address_not_allowed"), "{refused:?}");
        // Good and bad in turn: whatever is dialled was judged.
        let turns = [good, bad].iter().cycle().take(200).cloned().collect();
        world.dns.script(OK, RecordType::A, turns);
        let mut seen = Vec::new();
        for _ in 0..3 {
            let answer = Door::AbsoluteHttps.get(&gateway, OK);
            seen.push(answer.status);
            std::thread::sleep(Duration::from_millis(1100));
        }
        assert!(seen.iter().all(|status| [200, 403].contains(status)), "{seen:?}");
        assert!(seen.contains(&200), "{seen:?}");
        assert_eq!(origin.connections(), seen.iter().filter(|status| **status == 200).count());
        assert_unmet(&locals);
    });
}

#[test]
fn an_answer_that_may_not_be_kept_is_kept_for_a_moment() {
    isolated(|| {
        let world = world!();
        world.dns.reply(OK, &Reply::addresses(&[ADDRESS]).seconds_to_live(0));
        world.dns.script(OK, RecordType::AAAA, vec![Reply::nothing().seconds_to_live(0)]);
        let _origin = one_request_each(&world);
        let gateway = world.gateway(environment());
        let started = Instant::now();
        for _ in 0..5 {
            assert_eq!(Door::ConnectTls.get(&gateway, OK).status, 200);
        }
        // At most one more look for each second that this took.
        let looks = 1 + usize::try_from(started.elapsed().as_secs()).expect("few");
        assert!(world.dns.asked_for(OK, RecordType::A) <= looks + 1, "{:?}", world.dns.questions());
    });
}

#[test]
fn trouble_with_the_name_server_fails_closed_and_in_time() {
    isolated(|| {
        let world = world!();
        world.dns.reply("broken.ok.example.test", &Reply::server_failure());
        world.dns.reply("none.ok.example.test", &Reply::no_such_name());
        world.dns.reply("empty.ok.example.test", &Reply::nothing());
        world.dns.reply("silent.ok.example.test", &Reply::silence());
        let gateway = world.gateway(environment());
        for host in ["broken", "none", "empty", "unknown"] {
            assert_refused(&gateway, &format!("{host}.ok.example.test"), "origin_dns");
        }
        let started = Instant::now();
        let refused = Door::AbsoluteHttp.get(&gateway, "silent.ok.example.test");
        assert_eq!(refused.header("outgate-reason"), Some("origin_dns"), "{refused:?}");
        assert_eq!(refused.status, 502);
        assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
        // The others were served meanwhile and are now.
        let _origin = world.https(OK).start();
        assert_eq!(Door::ConnectTls.get(&gateway, OK).status, 200);
    });
}

#[test]
fn a_family_that_gets_no_answer_does_not_hold_up_the_other() {
    isolated(|| {
        let world = world!();
        world.dns.script(OK, RecordType::AAAA, vec![Reply::silence()]);
        let _origin = one_request_each(&world);
        let gateway = world.gateway(environment());
        let started = Instant::now();
        assert_eq!(Door::AbsoluteHttps.get(&gateway, OK).status, 200);
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    });
}

#[test]
fn the_hosts_file_comes_first_and_is_judged_like_any_answer() {
    isolated(|| {
        let world = world!();
        let locals = loopback(&world);
        network::set_hosts(
            "127.0.0.1 localhost\n10.0.0.9 bad.ok.example.test\n11.22.33.77 Here.ok.example.test x\n\
             127.0.0.1 mixed.ok.example.test\n11.22.33.77 mixed.ok.example.test\n",
        );
        world.dns.name("bad.ok.example.test", &[ADDRESS]);
        world.dns.name("here.ok.example.test", &["127.0.0.1"]);
        let here = Origin::http("11.22.33.77").start();
        let gateway = world.gateway(environment());
        assert_refused(&gateway, "bad.ok.example.test", "address_not_allowed");
        for (number, host) in ["here.ok.example.test", "mixed.ok.example.test"].iter().enumerate() {
            assert_eq!(Door::AbsoluteHttp.get(&gateway, host).status, 200, "{host}");
            assert_eq!(here.connections(), number + 1);
            assert_eq!(world.dns.asked(host), 0);
        }
        assert_eq!(world.dns.asked("bad.ok.example.test"), 0);
        assert_unmet(&locals);
    });
}

#[test]
fn names_are_absolute_whatever_the_search_list_says() {
    isolated(|| {
        let world = world!();
        network::set_resolver(
            "search corp.example.test ok.example.test\noptions ndots:5\nnameserver 127.0.0.53\n",
        );
        for name in ["api.corp.example.test", "printer.local.corp.example.test"] {
            world.dns.name(name, &[ADDRESS]);
        }
        world.dns.name("a.ok.example.test.corp.example.test", &["11.22.33.66"]);
        let evil = Origin::https(&world.pki, OK, "11.22.33.66").start();
        let origin = world.https(OK).start();
        let gateway = world.gateway(json!({"network": {"allowlist": [
            {"domain": "*"}, {"domain": "api"}, {"domain": "*.ok.example.test"},
        ]}}));
        assert_eq!(Door::AbsoluteHttps.get(&gateway, OK).status, 200);
        assert_refused(&gateway, "api", "origin_dns");
        assert_refused(&gateway, "printer.local", "origin_dns");
        assert_refused(&gateway, "printer", "domain_not_allowed");
        assert_eq!((origin.connections(), evil.connections()), (1, 0));
        let asked = world.dns.questions();
        assert!(asked.iter().all(|question| !question.name.contains("corp")), "{asked:?}");
    });
}

#[test]
fn one_family_alone_and_both_together_are_reached() {
    isolated(|| {
        let world = world!();
        let (four, six) = ("11.22.33.91", "2606:4700::1111");
        let names = ["six.ok.example.test", "dual.ok.example.test", "hole.ok.example.test"];
        world.dns.name(names[0], &[six]);
        world.dns.name(names[1], &[four, six]);
        world.dns.name(names[2], &[four, "2606:4700::2222"]);
        let identity = || world.pki.leaf(names[0]).names(&names).issue();
        let v6 = Origin::https(&world.pki, names[0], six).identity(identity()).start();
        let v4 = Origin::https(&world.pki, names[0], four).identity(identity()).start();
        let gateway = world.gateway(environment());
        assert_eq!(Door::ConnectTls.get(&gateway, names[0]).status, 200);
        assert_eq!((v6.connections(), v4.connections()), (1, 0));
        assert_eq!(Door::ConnectTls.get(&gateway, names[1]).status, 200);
        assert_eq!((v6.connections(), v4.connections()), (2, 0), "IPv6 has the head start");
        // Closed ports and black holes of one family are no trouble of the other.
        v6.stop();
        let fresh = world.gateway(environment());
        assert_eq!(Door::ConnectTls.get(&fresh, names[1]).status, 200);
        let _hole = Blackhole::start("[2606:4700::2222]:443");
        assert_eq!(Door::ConnectTls.get(&fresh, names[2]).status, 200);
        assert_eq!(v4.connections(), 2);
        let connect = fresh.wait_audit(2)[1]["milliseconds"]["connect"].as_f64().expect("a number");
        assert!(connect < 1500.0, "the head start is 250 ms, this took {connect} ms");
    });
}
