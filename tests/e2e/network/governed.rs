//! Is a client that knows of no gateway served by it, and judged?

use super::*;

for_every_kind![serves_both_families];

fn serves_both_families(kind: Kind) {
    let scene = Scene::new(kind);
    let _four = scene.world.https(API).start();
    let _six = Origin::https(&scene.world.pki, API, &format!("[{API6}]:443")).start();
    let gateway = scene.gateway(&json!([{"domain": API}]));
    for family in ["--ipv4", "--ipv6"] {
        let ask = |url| {
            let curl = Curl::new(url).ca(gateway.ca()).argument(family);
            scene.one.inside(|| curl.run())
        };
        let allowed = ask("https://api.example.com/");
        assert_eq!(allowed.status, 200, "{family} {allowed:?}");
        let refused = ask("https://evil.example.test/");
        assert_eq!((refused.status, refused.reason()), (403, Some("domain_not_allowed")));
    }
    let leaked = scene.site.leaked(&["11.22.33.44:443", "[2a00:1122:3344::44]:443"]);
    assert_eq!(leaked, []);
}
