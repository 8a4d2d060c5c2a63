//! Bytes that nobody reads, of clients that know of no gateway.

use super::*;

const BANNER: &[u8] = b"SSH-2.0-origin\r\n";

fn speaks_first(connection: &mut Connection) {
    connection.send(BANNER);
    let said = connection.bytes();
    connection.send(&said);
}

fn git(scene: &Scene) -> Origin {
    scene.start(Origin::http(&format!("{API_ADDRESS}:2222")).script(speaks_first))
}

fn converse(mut client: RawClient) {
    assert_eq!(client.read_exact(BANNER.len()), BANNER);
    client.send(b"SSH-2.0-client\r\n");
    client.finish_sending();
    assert_eq!(client.read_to_end().expect("a clean end"), b"SSH-2.0-client\r\n");
}

fn a_server_that_speaks_first_is_heard(domain: &str, find: impl Fn(&Scene) -> String) {
    let entry = json!({"domain": domain, "ports": [2222], "protocol": "tcp"});
    let scene = Scene::new(&json!({"network": {"allowlist": [entry]}}));
    let origin = git(&scene);
    converse(scene.client(&format!("{}:2222", find(&scene))));
    let line = scene.line(1);
    assert_eq!((&line["kind"], &line["verdict"]), (&json!("tunnel"), &json!("allow")));
    assert_eq!((&line["domain"], &line["entry"]), (&json!(domain), &json!(0)), "{line}");
    assert_eq!((&line["bytes_up"], &line["bytes_down"]), (&json!(16), &json!(32)));
    let mut client = scene.elsewhere(2222);
    client.send("SSH-2.0-client\r\n");
    assert!(client.is_closed());
    assert_eq!(scene.line(2)["reason"], "domain_not_allowed");
    assert_eq!(origin.connections(), 1);
}

#[test]
fn a_server_that_speaks_first_is_heard_where_the_name_is_known() {
    isolated(|| a_server_that_speaks_first_is_heard(API, |scene| scene.look_up(API).to_string()));
}

#[test]
fn a_server_that_speaks_first_is_heard_where_the_address_is_open() {
    isolated(|| a_server_that_speaks_first_is_heard(API_ADDRESS, |_| API_ADDRESS.to_owned()));
}

#[test]
fn an_origin_that_can_t_be_reached_closes_the_connection_with_its_reason() {
    isolated(|| {
        let entry = json!({"domain": "*.example.com", "ports": [2222], "protocol": "tcp"});
        let scene = Scene::new(&json!({"network": {"allowlist": [entry]}}));
        scene.world.name("private.example.com", "10.0.0.9");
        for (number, (name, reason)) in [
            (API, "origin_connect"),
            ("private.example.com", "address_not_allowed"),
            ("nowhere.example.com", "origin_dns"),
        ]
        .into_iter()
        .enumerate()
        {
            let address = scene.look_up(name);
            assert!(scene.client(&format!("{address}:2222")).is_closed(), "{name}");
            let line = scene.line(number + 1);
            assert_eq!((&line["reason"], &line["domain"]), (&json!(reason), &json!(name)));
        }
    });
}

#[test]
fn tls_passes_to_the_origin_that_its_sni_names() {
    isolated(|| {
        let scene = Scene::new(&json!({"network": {"allowlist": [
            {"domain": API, "tls": "passthrough"},
            {"domain": OK, "ports": [8080], "protocol": "tcp"},
        ]}}));
        let api = scene.start(scene.world.https(API));
        let ok = scene.start(scene.world.https(OK).port(8080));
        let pass = |name: &str, port: u16, hello: &Hello| {
            let elsewhere = ([55, 1, 2, 3], port).into();
            let roots = scene.world.pki.roots();
            let client = scene.sandbox.inside(|| RawClient::connect(elsewhere, roots));
            client.try_tls(hello).map(|mut client| client.exchange(get(name)).status)
        };
        assert_eq!(pass(API, 443, &Hello::to(API)), Ok(200));
        assert_eq!(pass(OK, 8080, &Hello::to(OK)), Ok(200));
        let hidden = pass(API, 443, &Hello::to(API).ech_grease());
        assert_eq!(hidden, Err(TlsFault::Alert(AlertDescription::AccessDenied)));
        assert_eq!((api.connections(), ok.connections()), (1, 1));
        let audit = scene.gateway.wait_audit(3);
        let reasons: Vec<_> = audit.iter().map(|line| line["reason"].as_str()).collect();
        assert!(reasons.contains(&Some("ech_in_passthrough")), "{audit:#?}");
        assert!(audit.iter().all(|line| line["kind"] == "tunnel"), "{audit:#?}");
    });
}

#[test]
fn requests_to_a_host_that_is_open_to_any_bytes_are_refused_where_it_is_not_known_before() {
    isolated(|| {
        let entry = json!({"domain": API, "ports": [80], "protocol": "tcp"});
        let scene = Scene::new(&json!({"network": {"allowlist": [entry]}}));
        let api = scene.start(scene.world.http(API));
        let refused = scene.elsewhere(80).exchange(get(API));
        assert_eq!(refused.header("outgate-reason"), Some("protocol_not_allowed"), "{refused:?}");
        assert_eq!(api.connections(), 0);
        let given = scene.look_up(API);
        assert_eq!(scene.client(&format!("{given}:80")).exchange(get(EVIL)).status, 200);
        assert_eq!(api.connections(), 1);
    });
}

#[test]
fn a_new_policy_closes_what_it_does_not_permit() {
    isolated(|| {
        let entry = json!({"domain": API, "ports": [2222], "protocol": "tcp"});
        let scene = Scene::new(&json!({"network": {"allowlist": [entry]}}));
        let _origin = git(&scene);
        let address = scene.look_up(API);
        let mut client = scene.client(&format!("{address}:2222"));
        assert_eq!(client.read_exact(BANNER.len()), BANNER);
        let path = network::folder().join("e1.json");
        std::fs::write(&path, allowing(&[API]).to_string()).expect("writable");
        assert!(client.read_timeout(Duration::from_secs(3)).is_closed());
        let error = scene.line(1)["error"].to_string();
        assert!(error.contains("new policy"), "{error}");
    });
}
