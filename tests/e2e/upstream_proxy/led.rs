//! Connections that the network led to the gateway.

#[path = "../transparent/scene.rs"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod scene;

use self::scene::Scene;
use super::*;

const OK: &str = "a.ok.example.test";
const EVIL: &str = "evil.example.test";

#[test]
fn a_connection_that_was_led_here_leaves_by_the_proxy() {
    isolated(|| {
        let file = upstream(&format!("http://{PROXY}"), "");
        let scene = Scene::with(&allowing(&[API]), &file);
        let proxy = UpstreamProxy::at(PROXY).start();
        let [secure, plain] =
            [scene.world.https(API), scene.world.http(API)].map(|origin| scene.start(origin));
        assert_eq!(scene.curl("https://api.example.com/").status, 200);
        assert_eq!(scene.curl("http://api.example.com/").status, 200);
        assert_eq!(scene.curl("https://evil.example.test/").status, 403);
        assert_eq!(proxy.asked(), ["11.22.33.4:443", "11.22.33.4:80"]);
        assert_eq!((secure.requests().len(), plain.requests().len()), (1, 1));
    });
}
