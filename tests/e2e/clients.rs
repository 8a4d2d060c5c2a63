//! Do the tools that people really run work, in a sandbox of `outgate run` with nothing else
//! configured, and through the explicit proxy?
//!
//! `tests/real-clients` installs them. `docs/clients.md` tells what these tests show.

#[path = "clients/host.rs"]
mod host;
#[path = "clients/scene.rs"]
mod scene;
#[path = "clients/table.rs"]
mod table;

use std::process::Command;

use outgate_tests::command::{clean, run};
use outgate_tests::prelude::{Duration, json, network, world};
use outgate_tests::wait::SOON;

use scene::{Scene, Way};
use table::Client;

/// One test for each client, and all of them in the order of the page.
macro_rules! clients {
    ($($test:ident: $client:expr,)*) => {
        const CLIENTS: &[&Client] = &[$(&$client),*];

        mod works_both_ways {
            use super::{table, works};

            $(#[test]
            fn $test() {
                works(&$client);
            })*
        }
    };
}

clients! {
    curl: table::fetch::CURL,
    curl_with_gnutls: table::fetch::CURL_GNUTLS,
    wget: table::fetch::WGET,
    git_over_https: table::git::HTTPS,
    git_over_ssh: table::git::SSH,
    pip: table::packages::PIP,
    uv: table::packages::UV,
    npm: table::packages::NPM,
    yarn_1: table::packages::YARN,
    yarn_4: table::packages::YARN4,
    cargo: table::packages::CARGO,
    maven: table::packages::MAVEN,
    apt: table::packages::APT,
    python_urllib: table::python::URLLIB,
    python_requests: table::python::REQUESTS,
    python_httpx: table::python::HTTPX,
    python_aiohttp: table::python::AIOHTTP,
    python_boto3: table::python::BOTO3,
    aws: table::python::AWS,
    python_grpcio: table::python::GRPCIO,
    node_fetch: table::node::FETCH,
    node_https: table::node::HTTPS,
    node_undici: table::node::UNDICI,
    node_axios: table::node::AXIOS,
    node_ws: table::node::WS,
    node_grpc_js: table::node::GRPC_JS,
    wscat: table::node::WSCAT,
    go: table::fetch::GO,
    java: table::fetch::JAVA,
    ruby: table::fetch::RUBY,
    php: table::fetch::PHP,
    chromium: table::fetch::CHROMIUM,
}

fn works(client: &Client) {
    network::isolated_for(Duration::from_secs(240), || {
        let world = world!();
        let scene = Scene::new(&world, client);
        scene.works(Way::Run);
        scene.works(Way::Proxy);
    });
}

#[test]
fn a_client_that_was_not_told_of_the_ca_fetches_nothing() {
    network::isolated_for(Duration::from_secs(240), || {
        let world = world!();
        for client in [
            &table::fetch::CURL,
            &table::fetch::GO,
            &table::fetch::RUBY,
            &table::git::HTTPS,
            &table::packages::CARGO,
            &table::python::REQUESTS,
            &table::node::HTTPS,
        ] {
            let scene = Scene::new(&world, client);
            let finished = scene.try_it(Way::Untold, scene::WEB);
            assert_ne!(finished.code(), 0, "{}: {finished:?}", client.name);
            assert!(scene.has_seen_nobody(), "{}", client.name);
            // With these words and no others it was the CA that was missing.
            scene.works(Way::Proxy);
        }
    });
}

/// What a person reads whose client was refused: in a sandbox, and by the proxy.
const REFUSED: &[(&Client, &str, &str)] = &[
    (&table::fetch::CURL, "error: 403", "error: 403"),
    (&table::fetch::WGET, "domain_not_allowed", "domain_not_allowed"),
    (&table::fetch::GO, "is not in network.allowlist", "domain_not_allowed"),
    (&table::git::HTTPS, "error: 403", "CONNECT tunnel failed, response 403"),
    (&table::packages::UV, "403", "tunnel error"),
    (&table::packages::NPM, "domain_not_allowed", "403"),
    (&table::packages::CARGO, "is not in network.allowlist", "response 403"),
    (&table::packages::MAVEN, "domain_not_allowed", "domain_not_allowed"),
    (&table::packages::APT, "domain_not_allowed", "domain_not_allowed"),
    (&table::python::AWS, "403", "proxy"),
    (&table::python::REQUESTS, "is not in network.allowlist", "domain_not_allowed"),
];

#[test]
fn a_refused_client_says_so_and_ends() {
    network::isolated_for(Duration::from_secs(240), || {
        let world = world!();
        let refused = world.silent("11.22.33.66:443");
        for (client, in_sandbox, by_proxy) in REFUSED {
            let scene = Scene::new(&world, client);
            for (way, expected) in [(Way::Run, in_sandbox), (Way::Proxy, by_proxy)] {
                let finished = scene.try_it(way, "evil.example.test");
                let said = format!("{}{}", finished.text(), finished.stderr);
                assert!(said.contains(expected), "{} {way:?}: {said}", client.name);
            }
        }
        assert_eq!(refused.connections(), 0);
    });
}

#[test]
fn a_browser_keeps_the_policies_of_the_administrator() {
    network::isolated(|| {
        let policies = "cd \"$FOLDER\" && mkdir -p own/policies/managed own/policies/recommended &&
                        echo kept > own/policies/managed/own.json &&
                        echo too > own/policies/recommended/own.json && echo prefs > own/prefs &&
                        mount --bind own /etc/chromium";
        let mut shell = Command::new("/bin/sh");
        clean(&mut shell).args(["-c", policies]).env("FOLDER", network::folder());
        let mounted = run(&mut shell, b"", SOON);
        assert_eq!(mounted.code(), 0, "{mounted:?}");
        let finished = world!().run().environment(&json!({"network": "disabled"})).sh(
            "cd /etc/chromium && cat prefs policies/*/own.json policies/managed/zz-outgate.json
             rm policies/managed/zz-outgate.json || echo refused",
        );
        let said = finished.text();
        assert!(said.starts_with("prefs\nkept\ntoo\n{\"CACertificates\":[\"MII"), "{finished:?}");
        assert!(said.ends_with("refused\n"), "{finished:?}");
    });
}

#[test]
fn the_page_tells_of_these_clients_and_no_others() {
    let page = include_str!("../../docs/clients.md");
    let rows = page
        .split_once("<!-- clients -->")
        .and_then(|(_, rest)| rest.split_once("<!-- /clients -->"))
        .map(|(rows, _)| rows.trim())
        .expect("the page marks its table of clients");
    let rows: Vec<&str> = rows.lines().skip(2).collect();
    let expected: Vec<String> = CLIENTS.iter().map(|client| client.row()).collect();
    assert_eq!(rows, expected);
}
