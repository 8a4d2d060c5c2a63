//! Do real clients accept what the gateway shows, and does its CA stay its own?

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use outgate_tests::prelude::*;

/// Longest name that the grammar allows but for a label of its own: beyond the 64 characters that
/// a common name may have.
fn long_name() -> String {
    let label = "x".repeat(60);
    format!("{label}.{label}.{label}.ok.example.test")
}

fn everything() -> serde_json::Value {
    json!({"network": {"allowlist": [{"domain": "*"}]}})
}

#[test]
fn curl_accepts_a_leaf_for_every_kind_of_name() {
    isolated(|| {
        let world = world!();
        let long = long_name();
        for name in [
            "api.example.com",
            long.as_str(),
            "_x.ok.example.test",
            "xn--bcher-kva.example.test",
            "11.22.33.44",
        ] {
            world.dns.name(name, &["11.22.33.44"]);
            let _origin = Origin::https(&world.pki, name, "11.22.33.44").start();
            let gateway = world.gateway(everything());
            let answer = gateway.curl(&format!("https://{name}/")).run();
            assert_eq!(answer.status, 200, "{name}: {answer:?}");
        }
    });
}

#[test]
fn a_leaf_is_for_its_one_name_and_comes_with_its_issuer() {
    isolated(|| {
        let world = world!();
        let gateway = world.gateway(everything());
        let chain = gateway
            .client()
            .connect_tunnel("api.example.com:443")
            .tls(&Hello::to("api.example.com"))
            .certificates();
        assert_eq!(chain.len(), 2, "some clients want the CA in the chain");
        let tunnel = gateway.client().connect_tunnel("a.ok.example.test:443");
        let fault = tunnel.try_tls(&Hello::to("api.example.com").without_server_name()).err();
        assert!(matches!(fault, Some(TlsFault::Certificate(_))), "{fault:?}");
        let spelled = gateway
            .client()
            .connect_tunnel("API.Example.COM.:443")
            .tls(&Hello::to("api.example.com"))
            .certificates();
        assert_eq!(spelled, chain, "one name, one leaf");
    });
}

#[test]
fn names_without_end_cost_no_memory_without_end() {
    isolated(|| {
        let world = world!();
        let gateway = world
            .gateway_builder()
            .configuration("[limits]\nleaves = 16\n")
            .environment(&json!({"network": {"allowlist": [{"domain": "*.ok.example.test"}]}}))
            .start();
        let handshakes = |range: std::ops::Range<u32>| {
            for number in range {
                let name = format!("n{number}.ok.example.test");
                world.dns.name(&name, &["11.22.33.55"]);
                let tunnel = gateway.client().connect_tunnel(&format!("{name}:443"));
                drop(tunnel.tls(&Hello::to(&name)));
            }
        };
        handshakes(0..50);
        let before = gateway.resident_kib();
        handshakes(50..450);
        let grown = gateway.resident_kib().saturating_sub(before);
        assert!(grown < 16 << 10, "{grown} KiB for 400 names");
        let denied = gateway.client().try_connect_tunnel("n1.denied.example.test:443").err();
        assert_eq!(denied.expect("a refusal").status, 403, "and none is issued before policy");
    });
}

#[test]
fn the_key_of_the_ca_is_its_owners_alone_and_of_one_installation() {
    isolated(|| {
        let world = world!();
        let (one, two) = (world.gateway(everything()), world.gateway(everything()));
        let key = |gateway: &Gateway| {
            let file = gateway.state().join("ca.key");
            assert_eq!(fs::metadata(&file).expect("the key is there").mode() & 0o777, 0o600);
            fs::read_to_string(file).expect("the key is ours")
        };
        assert_ne!(key(&one), key(&two));
        assert_ne!(fs::read(one.ca()).expect("readable"), fs::read(two.ca()).expect("readable"));
        let with_keys = files_with_keys(one.state());
        assert_eq!(with_keys, HashSet::from(["ca.key".to_owned()]));
        let state = one.state().display().to_string();
        for command in ["show", "export", "env"] {
            let said = world.outgate(&["ca", command, "--state-dir", &state]);
            assert_eq!(said.code(), 0, "{}", said.stderr);
            assert!(!said.text().contains("PRIVATE KEY") && !said.stderr.contains("PRIVATE KEY"));
        }
        assert_eq!(files_with_keys(one.state()), with_keys, "and `ca env` copies none");
        let answer = one.management("GET /ca.key HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.status == 401 && !answer.text().contains("PRIVATE KEY"));
        assert!(!one.output().contains("PRIVATE KEY"));
    });
}

fn files_with_keys(folder: &Path) -> HashSet<String> {
    let files = fs::read_dir(folder).expect("the state folder is ours").filter_map(Result::ok);
    files
        .filter(|file| {
            let bytes = fs::read(file.path()).unwrap_or_default();
            String::from_utf8_lossy(&bytes).contains("PRIVATE KEY")
        })
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn the_trust_variables_make_curl_trust_the_gateway_and_the_systems_roots() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let gateway = world.gateway(everything());
        let state = gateway.state().display().to_string();
        let said = world.outgate(&["ca", "env", "--state-dir", &state]);
        assert_eq!(said.code(), 0, "{}", said.stderr);
        let value = |name: &str| {
            let text = said.text();
            let line = text.lines().find(|line| line.starts_with(&format!("export {name}=")));
            let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
            Path::new(line.split_once('=').expect("it has one").1.trim_matches('\'')).to_owned()
        };
        let count = |file: &Path| {
            let pem = fs::read_to_string(file).expect("the file is there");
            pem.matches("BEGIN CERTIFICATE").count()
        };
        // A client that adds the file to its own roots gets the CA, one that reads no other gets all.
        assert_eq!(count(&value("NODE_EXTRA_CA_CERTS")), 1);
        assert!(count(&value("SSL_CERT_FILE")) > 1);
        let bundle = value("SSL_CERT_FILE");
        let curl = Curl::new("https://api.example.com/").proxy(gateway.explicit()).ca(&bundle);
        assert_eq!(curl.run().status, 200);
    });
}

#[test]
fn an_operators_own_ca_is_the_one_everywhere() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let theirs = network::folder().join("company");
        let made = world.outgate(&["ca", "export", "--state-dir", &theirs.display().to_string()]);
        assert_eq!(made.code(), 0, "{}", made.stderr);
        let configuration =
            format!("[ca]\ncertificate = \"{0}/ca.pem\"\nkey = \"{0}/ca.key\"\n", theirs.display());
        let gateway = world
            .gateway_builder()
            .configuration(&configuration)
            .environment(&everything())
            .start();
        assert_eq!(gateway.ca(), theirs.join("ca.pem"));
        let company = Curl::new("https://api.example.com/").proxy(gateway.explicit());
        assert_eq!(company.ca(&theirs.join("ca.pem")).run().status, 200);
        assert!(!gateway.state().join("ca.key").exists(), "no other CA is made beside it");
        let file = network::folder().join("outgate.toml");
        fs::write(&file, configuration).expect("the folder is writable");
        let state = network::folder().join("other").display().to_string();
        let config = file.display().to_string();
        let shown = world.outgate(&["ca", "export", "--config", &config, "--state-dir", &state]);
        assert_eq!(shown.text(), made.text(), "{}", shown.stderr);
        let refused = world.outgate(&["ca", "new", "--config", &config, "--state-dir", &state]);
        assert_eq!(refused.code(), 1, "{}", refused.stderr);
    });
}

#[test]
fn an_operators_ca_that_is_none_stops_the_start() {
    isolated(|| {
        let world = world!();
        let folder = network::folder();
        fs::write(folder.join("no.pem"), "nothing").expect("the folder is writable");
        for certificate in ["absent.pem", "no.pem", "origin-roots.pem"] {
            let configuration = format!(
                "[ca]\ncertificate = \"{0}/{certificate}\"\nkey = \"{0}/absent.key\"\n",
                folder.display()
            );
            let builder = world.gateway_builder().configuration(&configuration);
            let failed = builder.environment(&everything()).try_start().err();
            let failed = failed.expect("it may not start with another CA than the operator's");
            assert_eq!(failed.code, Some(1), "{}", failed.output);
            assert!(failed.output.contains(&folder.display().to_string()), "{}", failed.output);
            assert!(failed.stdout.is_empty());
        }
    });
}
