//! Is an origin whose certificate is not good for the judged name sent nothing, not one byte?

use outgate_tests::pki::{Identity, Pki};
use outgate_tests::prelude::*;

const NAME: &str = "api.example.com";
/// Must be nowhere but inside a verified session.
const PATH: &str = "/the-path-of-the-request";

fn injecting(domain: &str, secret: &str) -> serde_json::Value {
    let transform = json!({"Authorization": format!("Bearer {secret}")});
    json!({"network": {"allowlist": [{"domain": domain, "transform": transform}]}})
}

/// What the client and the origin see of a request to `name` when the origin shows `identity`.
fn attempt(world: &World, name: &str, identity: Identity) -> (u16, Option<String>, String) {
    let secret = canary(40);
    let origin = world.https(NAME).identity(identity).start();
    let gateway = world.gateway(injecting("*.com", &secret));
    let answer = gateway.curl(&format!("https://{name}{PATH}")).run();
    let audit = gateway.wait_audit(1);
    assert_eq!(audit.len(), 1, "{audit:#?}");
    assert_eq!(audit[0]["verdict"], "allow", "it was permitted; {audit:#?}");
    let class = audit[0]["error"].as_str().unwrap_or_default().to_owned();
    assert_secret_absent(gateway.output(), &secret);
    if answer.status != 200 {
        assert_secret_absent(format!("{:?}{}", answer.heads, answer.text()), &secret);
        assert_eq!(origin.connections(), 1, "no second try with less care");
        assert_eq!(origin.records()[0].received(), 0, "not one byte of a request was sent");
        let wire = origin.records()[0].wire();
        assert!(!wire.windows(PATH.len()).any(|bytes| bytes == PATH.as_bytes()));
        assert_secret_absent(wire, &secret);
    }
    (answer.status, answer.reason().map(str::to_owned), class)
}

#[test]
fn an_unverified_origin_is_502_and_gets_no_byte_of_the_request() {
    isolated(|| {
        let world = world!();
        let leaf = || world.pki.leaf(NAME);
        for (identity, class) in [
            (leaf().expired().issue(), "expired"),
            (leaf().not_yet_valid().issue(), "not_yet_valid"),
            (leaf().names(&["other.example.com"]).issue(), "wrong_name"),
            (leaf().self_signed().issue(), "unknown_issuer"),
            (leaf().by_unknown_root().issue(), "unknown_issuer"),
            (leaf().missing_intermediate().issue(), "unknown_issuer"),
            (leaf().for_clients_only().issue(), "wrong_usage"),
            (leaf().common_name_only().issue(), "wrong_name"),
        ] {
            let (status, reason, said) = attempt(&world, NAME, identity);
            assert_eq!((status, reason.as_deref()), (502, Some("origin_tls")), "{class}: {said}");
            assert!(said.contains(class), "{said} does not say {class}");
        }
        for good in [leaf().issue(), leaf().by_intermediate().issue()] {
            assert_eq!(attempt(&world, NAME, good).0, 200, "the control");
        }
    });
}

#[test]
fn names_of_a_certificate_are_matched_as_rfc_6125_says() {
    isolated(|| {
        let world = world!();
        world.name("example.com", "11.22.33.44");
        world.name("a.b.example.com", "11.22.33.44");
        for (shown, asked, status) in [
            ("*.example.com", "api.example.com", 200),
            ("*.example.com", "a.b.example.com", 502),
            ("*.com", "api.example.com", 502),
            ("a*.example.com", "api.example.com", 502),
            ("*", "api.example.com", 502),
            ("*.*.com", "api.example.com", 502),
            ("api.example.com.", "api.example.com", 502),
            ("api.example.com.evil.example.test", "api.example.com", 502),
            ("api.example.com\0.evil.example.test", "api.example.com", 502),
            ("API.Example.COM", "api.example.com", 200),
            ("api.example.com", "API.example.COM", 200),
            ("api.example.com", "api.example.com.", 200),
        ] {
            let identity = world.pki.leaf(NAME).names(&[shown]).issue();
            let (answered, _, said) = attempt(&world, asked, identity);
            assert_eq!(answered, status, "{shown:?} for {asked}: {said}");
        }
    });
}

#[test]
fn a_certificate_of_another_environments_origin_opens_nothing() {
    isolated(|| {
        let world = world!();
        // The same address, both names allowed: only the certificate tells them apart.
        world.name("a.ok.example.test", "11.22.33.44");
        let secret = canary(40);
        let origin = world.https(NAME).start();
        let gateway = world.gateway(injecting("*", &secret));
        assert_eq!(gateway.curl("https://api.example.com/").run().status, 200);
        let other = gateway.curl("https://a.ok.example.test/").run();
        assert_eq!((other.status, other.reason()), (502, Some("origin_tls")), "{other:?}");
        assert_eq!(origin.requests().len(), 1);
    });
}

#[test]
fn an_origin_that_speaks_only_old_tls_is_refused_without_a_downgrade() {
    isolated(|| {
        let world = world!();
        // A ServerHello of TLS 1.1, and the alert that a server of TLS 1.1 sends.
        let hello =
            [&[22, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2], [7; 32].as_slice(), &[0, 0, 0x2f, 0]].concat();
        let alert = vec![21, 3, 2, 0, 2, 2, 70];
        for answer in [hello, alert] {
            let origin = world
                .http(NAME)
                .port(443)
                .script(move |connection| {
                    connection.bytes();
                    connection.send(&answer);
                    connection.bytes();
                })
                .start();
            let gateway = world.gateway(injecting(NAME, &canary(40)));
            let refused = gateway.curl(&format!("https://{NAME}{PATH}")).run();
            assert_eq!((refused.status, refused.reason()), (502, Some("origin_tls")));
            assert_eq!(origin.connections(), 1, "no second try with an older version");
            let said = String::from_utf8_lossy(&origin.raw()).into_owned();
            assert!(!said.contains(PATH) && !said.contains("authorization"), "{said}");
        }
    });
}

#[test]
fn a_client_that_speaks_only_old_tls_gets_an_alert() {
    isolated(|| {
        let world = world!();
        let api = world.https(NAME).start();
        let gateway = world.gateway(injecting(NAME, &canary(40)));
        let curl = |versions: &[&str]| {
            let curl = gateway.curl(&format!("https://{NAME}/"));
            versions.iter().fold(curl, |curl, argument| curl.argument(*argument)).run()
        };
        let old = ["--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"];
        let refused = curl(&old);
        assert_eq!((refused.exit_code, refused.status), (35, 0), "{refused:?}");
        assert!(refused.stderr.contains("alert"), "it is told, not cut off: {refused:?}");
        let weak = curl(&["--tls-max", "1.2", "--ciphers", "AES128-SHA@SECLEVEL=0"]);
        assert_eq!((weak.exit_code, weak.status), (35, 0), "{weak:?}");
        assert_eq!(api.connections(), 0);
        assert_eq!(curl(&["--tls-max", "1.2"]).status, 200);
        assert_eq!(curl(&["--tlsv1.3"]).status, 200);
        assert_eq!(gateway.wait_audit(4).len(), 4);
    });
}

#[test]
fn roots_of_the_operator_are_added_by_flag_or_by_file() {
    isolated(|| {
        let world = world!();
        let folder = network::folder().join("company");
        std::fs::create_dir(&folder).expect("the folder is writable");
        let own = Pki::new(&folder);
        let _api = world.https(NAME).identity(own.leaf(NAME).issue()).start();
        let environment = injecting(NAME, &canary(40));
        let roots = own.roots().display();
        let program = env!("CARGO_BIN_EXE_outgate");
        let by_file = Gateway::builder(program)
            .configuration(&format!("[origin]\nroots = [\"{roots}\"]\n"))
            .environment(&environment)
            .start();
        assert_eq!(by_file.curl(&format!("https://{NAME}/")).run().status, 200);
        let without = Gateway::builder(program).environment(&environment).start();
        let refused = without.curl(&format!("https://{NAME}/")).run();
        assert_eq!(refused.reason(), Some("origin_tls"), "{refused:?}");
    });
}
