//! Gateways that are each other's proxy.

use std::time::Instant;

use super::*;

const PORTS: [u16; 2] = [3128, 3129];

/// Two, each of which asks the other for what leaves, by name if `resolves`.
fn each_others(world: &World, environment: &Value, resolves: bool) -> [Gateway; 2] {
    let file = network::folder().join("env_test.json");
    std::fs::write(&file, environment.to_string()).expect("the folder is writable");
    [(PORTS[0], PORTS[1]), (PORTS[1], PORTS[0])].map(|(own, other)| {
        let more = format!("dangerously_resolve_at_proxy = {resolves}");
        let configuration = format!(
            "{}[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:{own}\"\n\
             [[environment]]\nfile = {file:?}\n",
            upstream(&format!("http://127.0.0.1:{other}"), &more)
        );
        let builder = world.gateway_builder().configuration(&configuration);
        builder.listeners_from_configuration().start()
    })
}

/// Whatever the deadlines of a loop would come to.
const AT_ONCE: Duration = Duration::from_secs(3);

#[test]
fn a_spliced_tunnel_between_two_that_lead_to_each_other_is_refused_at_once() {
    isolated(|| {
        let world = world!();
        let origin = world.silent("11.22.33.44:2222");
        let environment = json!({"network": {"allowlist": [
            {"domain": "*", "ports": [2222], "protocol": "tcp"},
        ]}});
        let mut gateways = each_others(&world, &environment, false);
        let begun = Instant::now();
        let refused = gateways[0].client().try_connect_tunnel("api.example.com:2222").err();
        let refused = refused.expect("it leads nowhere");
        assert_eq!(refused.header("outgate-reason"), Some("origin_connect"));
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
        // What the client asked for and what came back to be refused; what was asked of the other.
        for (gateway, lines) in gateways.iter_mut().zip([2, 1]) {
            let audit = gateway.final_audit();
            assert_eq!(audit.len(), lines, "{audit:#?}");
            assert!(audit.iter().all(|line| line["reason"] == "origin_connect"), "{audit:#?}");
        }
        assert_eq!(origin.connections(), 0);
    });
}

/// Each has a connection to the other then that is good for more requests.
#[test]
fn requests_do_not_go_round_over_connections_that_are_open_already() {
    isolated(|| {
        let world = world!();
        let origin = world.http(API).start();
        let mut gateways = each_others(&world, &allowing(&[API]), true);
        let rounds = 3;
        for _ in 0..rounds {
            for gateway in &gateways {
                let begun = Instant::now();
                let answer = gateway.curl("http://api.example.com/").run();
                assert_eq!(answer.status, 502, "{answer:?}");
                assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
            }
        }
        for gateway in &mut gateways {
            let audit = gateway.final_audit();
            let of = |kind: &str| audit.iter().filter(|line| line["kind"] == kind).count();
            // Its own clients' requests, the other's, and what came back of its own.
            assert_eq!(of("request"), 2 * rounds, "{audit:#?}");
            assert_eq!(of("tunnel"), rounds, "{audit:#?}");
            let back = audit.iter().find(|line| line["kind"] == "tunnel").expect("one");
            assert_eq!(back["reason"], "origin_connect", "{back}");
        }
        assert_eq!(origin.connections(), 0);
    });
}

#[test]
fn marks_that_a_sandbox_sends_refuse_nobody_but_itself() {
    isolated(|| {
        let world = world!();
        let _origin = world.https(API).start();
        let proxy = UpstreamProxy::at(PROXY).start();
        let gateway = behind(&world, &allowing(&[API])).start();
        let mark = canary(32).bytes().map(|byte| format!("{:x}", byte % 16)).collect::<String>();
        let ask = |marks: &str| {
            let mut client = gateway.client();
            client.send(format!("CONNECT {API}:443 HTTP/1.1\r\nHost: {API}:443\r\n{marks}\r\n"));
            client.try_read_response("CONNECT").expect("an answer")
        };
        let many = format!("Outgate-Hop: {}\r\n", [mark.as_str(); 9].join(", "));
        for (marks, reason) in
            [(format!("Outgate-Hop: {mark}, x\r\n"), "malformed_request"), (many, "origin_connect")]
        {
            assert_eq!(ask(&marks).header("outgate-reason"), Some(reason), "{marks}");
        }
        assert_eq!(proxy.connections(), 0);
        // One that could be another gateway's goes on, beside ours, to the proxy alone.
        let mut client = gateway.client();
        client.send(format!(
            "CONNECT {API}:443 HTTP/1.1\r\nHost: {API}:443\r\nOutgate-Hop: {mark}\r\n\r\n"
        ));
        assert_eq!(client.try_read_response("CONNECT").expect("an answer").status, 200);
        let request = format!("GET / HTTP/1.1\r\nHost: {API}\r\nOutgate-Hop: {mark}\r\n\r\n");
        let mut tunnel = client.tls(&Hello::to(API));
        assert_eq!(tunnel.exchange(&request).status, 200);
        let ours = |head: &String| {
            let line = head.lines().find_map(|line| line.strip_prefix("Outgate-Hop: "));
            line.expect("the header").to_owned()
        };
        let first = ours(&proxy.heads()[0]);
        let own = first.strip_prefix(&format!("{mark}, ")).expect("its own is the last").to_owned();
        assert_eq!(own.len(), 32, "{first}");
        // Nobody else is led over that connection, and nobody else's marks are there.
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        assert_eq!(proxy.heads().iter().map(ours).collect::<Vec<_>>(), [first, own.clone()]);
        // Who has read ours at the proxy refuses himself with it.
        assert_eq!(
            ask(&format!("Outgate-Hop: {own}\r\n")).header("outgate-reason"),
            Some("origin_connect")
        );
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
    });
}
