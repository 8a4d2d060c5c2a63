//! Where does a connection go whose client knows of no gateway?

#[path = "transparent/scene.rs"]
mod scene;

use outgate_tests::prelude::*;

use scene::{API_ADDRESS, ELSEWHERE, Scene, allowing};

const API: &str = "api.example.com";
const OK: &str = "a.ok.example.test";
const EVIL: &str = "evil.example.test";

fn get(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

#[test]
fn tls_goes_to_the_host_that_its_sni_names() {
    isolated(|| {
        let scene = Scene::new(&allowing(&[API]));
        let api = scene.start(scene.world.https(API));
        let answer = scene.curl("https://api.example.com/x?y");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(api.requests()[0].target, "/x?y");
        let line = &scene.gateway.wait_audit(1)[0];
        assert_eq!((&line["kind"], &line["ingress"]), (&json!("request"), &json!("transparent")));
        assert_eq!((&line["domain"], &line["port"]), (&json!(API), &json!(443)));
        assert_eq!(line["address"], format!("{API_ADDRESS}:443"));
        assert_eq!((&line["environment_id"], &line["client"]), (&json!("e1"), &json!("10.20.1.2")));
    });
}
