//! `dangerously_resolve_at_proxy`.

use super::*;

const UNKNOWN_HERE: &str = "only-there.example.com";

fn resolving(world: &World, more: &str) -> Gateway {
    let more = format!("dangerously_resolve_at_proxy = true\n{more}");
    let file = upstream(&format!("http://{PROXY}"), &more);
    let environment = allowing(&["*.example.com", "*.corp.test", "*", "10.1.2.3"]);
    world.gateway_builder().configuration(&file).environment(&environment).start()
}

#[test]
fn the_proxy_is_given_the_name_and_nothing_is_looked_up_here() {
    isolated(|| {
        let world = world!();
        world.name(API, "10.0.0.1");
        let name = UNKNOWN_HERE;
        let origin = Origin::https(&world.pki, name, "11.22.33.90").start();
        let authority = format!("{name}:443");
        let proxy = UpstreamProxy::at(PROXY).knows(&authority, "11.22.33.90:443").start();
        let gateway = resolving(&world, "");
        assert_eq!(gateway.curl(&format!("https://{name}/")).run().status, 200);
        let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
        assert!(proxy.heads()[0].starts_with(&head), "{:?}", proxy.heads());
        assert_eq!(proxy.connections(), 1);
        assert_eq!(origin.requests().len(), 1);
        let line = &gateway.wait_audit(1)[0];
        assert_eq!((&line["status"], line.get("address")), (&json!(200), None), "{line}");
        assert!(gateway.wait_log("dangerously_resolve_at_proxy"));
        // The next one is told apart by its certificate alone, so it must be told apart.
        let wrong = gateway.curl("https://other.example.com/").run();
        assert_eq!(wrong.reason(), Some("origin_connect"));
    });
}

#[test]
fn a_literal_is_judged_all_the_same_and_so_is_what_goes_directly() {
    isolated(|| {
        let world = world!();
        world.name("git.corp.test", "10.1.2.3");
        let inside = world.silent("10.1.2.3:443");
        let proxy = UpstreamProxy::at(PROXY).knows("git.corp.test:443", "10.1.2.3:443").start();
        let gateway = resolving(&world, "no_proxy = [\"*.corp.test\"]");
        for url in ["https://127.0.0.1/", "https://169.254.169.254/", "https://git.corp.test/"] {
            assert_eq!(gateway.curl(url).run().reason(), Some("address_not_allowed"), "{url}");
        }
        assert_eq!((proxy.connections(), inside.connections()), (0, 0));
        let _origin = Origin::https(&world.pki, "11.22.33.91", "11.22.33.91").start();
        assert_eq!(gateway.curl("https://11.22.33.91/").run().status, 200);
        assert_eq!(proxy.asked(), ["11.22.33.91:443"]);
    });
}
