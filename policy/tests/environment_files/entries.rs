//! Which entries of the allowlist load, and as what?

use super::*;

#[test]
fn checks_the_other_fields_of_an_entry_without_a_valid_domain() {
    let entry =
        json!({"domain": "a b", "scrub": 1, "tls": "passthrough", "paths": ["/x"], "origin": 1});
    let said = problems_of_entry(entry);
    let places: Vec<_> = said.iter().filter_map(|line| line.split(": ").next()).collect();
    let fields =
        ["domain", "origin", "scrub", "paths"].map(|field| format!("network.allowlist[0].{field}"));
    assert_eq!(places.len(), 4, "{said:?}");
    assert!(fields.iter().all(|field| places.contains(&field.as_str())), "{said:?}");
}

#[test]
fn refuses_text_that_would_become_configuration_elsewhere() {
    for domain in [
        "a.example.com\n    accept",
        "a.example.com; flush ruleset",
        "a.example.com # x",
        "$(id).example.com",
        "`id`.test",
        "a.test\0",
        "a.test{}",
        "a,b.test",
    ] {
        let said = problems_of_entry(json!({"domain": domain}));
        assert_eq!(said.len(), 1, "{domain}: {said:?}");
        assert!(!said[0].contains('\n') && !said[0].contains('\0'), "{said:?}");
    }
}

#[test]
fn hints_at_what_a_domain_should_be() {
    let table = [
        ("https://api.example.com/v1", "`api.example.com`"),
        ("api.example.com/v1", "`paths`"),
        ("*example.com", "`*.example.com`"),
        (".example.com", "`*.example.com`"),
        ("a.*.com", "`*` stands alone"),
        ("a b.com", "blanks"),
        ("127.1", "four decimal parts"),
        ("a.test:0", "1 to 65535"),
    ];
    for (domain, hint) in table {
        refuses(json!({"domain": domain}), ".domain", hint);
    }
    refuses(json!({"domain": "a.test:8443", "ports": [443]}), ".ports", "in `domain` already");
}

#[test]
fn refuses_structural_headers_and_header_injection() {
    let set = |name: &str, value: &str| json!({"domain": "a.test", "transform": {name: value}});
    for name in [
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Upgrade",
        ":authority",
        "Proxy-Authorization",
        "",
        "X Y",
        "X:Y",
        "TE",
        "Trailer",
        "Expect",
        "Keep-Alive",
    ] {
        refuses(set(name, "x"), &format!(".transform.{name}"), "");
    }
    let long = "x".repeat(64 << 10);
    for value in
        ["tok-hunter2\r\nX-Evil: 1", "hunter2\n", "hunter2\0", "hunter2ö", " hunter2 ", &long]
    {
        let said = problems_of_entry(set("Authorization", value));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("network.allowlist[0].transform.Authorization: "), "{said:?}");
        assert!(!said[0].contains("hunter2") && said[0].len() < 200, "{said:?}");
    }
    for twice in [
        json!({"Authorization": "a", "authorization": "b"}),
        json!([{"Authorization": "a"}, {"AUTHORIZATION": "b"}]),
    ] {
        let said = problems_of_entry(json!({"domain": "a.test", "transform": twice}));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("twice"), "{said:?}");
    }
    let numbered = json!({"domain": "a.test", "transform": {"X-A": 1}});
    refuses(numbered, ".transform.X-A", "expected a string");
}

#[test]
fn refuses_entries_that_can_never_work() {
    for domain in [
        "127.0.0.1",
        "[::1]",
        "169.254.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "224.0.0.1",
        "192.0.2.1",
        "[::ffff:127.0.0.1]",
        "198.18.0.1",
        "localhost",
        "*.localhost",
        "x.localhost",
    ] {
        refuses(json!({"domain": domain}), ".domain", "never works");
        assert!(problems_of_entry(json!({"domain": domain, "deny": true})).is_empty(), "{domain}");
    }
    let said = warnings_of_entry(json!({"domain": "10.1.2.3"}));
    assert!(said[0].contains("[addresses] allow"), "{said:?}");
}

#[test]
fn loads_entries_for_addresses_that_the_operator_opened() {
    let addresses = AddressRules::new(AddressConfig {
        allow: vec!["10.1.2.0/24".parse().expect("a range")],
        dangerously_allow: vec!["127.0.0.1:8443".parse().expect("an address")],
        ..AddressConfig::default()
    })
    .expect("rules");
    let under = |domain: &str| {
        let text = json!({"network": {"allowlist": [{"domain": domain}]}}).to_string();
        compile_under(&text, "file", &addresses)
    };
    assert!(under("10.1.2.3").expect("opened").warnings.is_empty());
    assert!(under("127.0.0.1:8443").is_ok());
    assert!(under("127.0.0.1:8444").is_err());
    assert!(under("127.0.0.1").is_err());
}

#[test]
fn reads_how_the_origin_of_an_entry_is_met() {
    let environment = load(&json!({"network": {"allowlist": [
        {"domain": "a.test"},
        {"domain": "b.test", "origin": {"roots": "r.pem", "min_tls": "1.3"}},
        {"domain": "c.test", "origin": {"client_certificate": "c.pem", "client_key": "c.key"}},
    ]}}));
    let client = ClientFiles { certificate: "c.pem".to_owned(), key: "c.key".to_owned() };
    let roots = Some("r.pem".to_owned());
    let origins: Vec<_> = environment.policy.origins().collect();
    assert_eq!(
        origins,
        [
            (1, &OriginOptions { roots, client: None, min_tls: MinTls::Tls13 }),
            (2, &OriginOptions { roots: None, client: Some(client), min_tls: MinTls::Tls12 }),
        ]
    );
    let files: Vec<_> = origins.iter().flat_map(|(_, origin)| origin.files()).collect();
    assert_eq!(files, ["r.pem", "c.pem", "c.key"]);
}

#[test]
fn refuses_an_origin_whose_tls_is_not_ours() {
    let origin = json!({"min_tls": "1.3"});
    let tcp = json!({"domain": "a.test", "ports": [22], "protocol": "tcp", "origin": origin});
    let passed = json!({"domain": "a.test", "tls": "passthrough", "origin": origin});
    for entry in [tcp, passed] {
        refuses(entry, ".origin", "the client's own");
    }
}

#[test]
fn refuses_to_promise_what_it_could_not_see_in_answers() {
    for field in ["scrub", "drop_set_cookie"] {
        for (way, of) in [("tls", "passthrough"), ("protocol", "tcp")] {
            let hidden = json!({"domain": "a.test", "ports": [443], way: of, field: true});
            refuses(hidden, &format!(".{field}"), "the gateway sees no request there");
            let not_said = json!({"domain": "a.test", "ports": [443], way: of, field: false});
            assert!(warnings_of_entry(not_said).is_empty());
        }
        assert!(warnings_of_entry(json!({"domain": "a.test", field: true})).is_empty());
    }
}

#[test]
fn loads_the_values_that_change_nothing() {
    let entry = json!({
        "domain": "a.test", "deny": false, "protocol": "http", "tls": "intercept", "allow_ech": false,
        "scrub": false, "drop_set_cookie": false, "websocket_text": false, "allow_plaintext": true,
        "credential": "c", "ports": [443], "methods": ["GET"], "paths": ["/v1/**"],
    });
    assert!(warnings_of_entry(entry).is_empty());
    assert!(problems(r#"{"env": {}, "sources": [], "network": "disabled"}"#).is_empty());
}

#[test]
fn refuses_entries_of_one_pattern_that_disagree_about_a_connection() {
    let file = json!({"network": {"allowlist": [
        {"domain": "a.test"},
        {"domain": "A.test.", "tls": "passthrough"},
        {"domain": "a.test:8443", "tls": "passthrough"},
        {"domain": "*.a.test", "tls": "passthrough"},
        {"domain": "a.test", "deny": true, "paths": ["/x"]},
    ]}});
    let said = problems(&file.to_string());
    let differing: Vec<_> = said.iter().filter(|line| line.contains("differs from")).collect();
    assert_eq!(
        differing,
        ["network.allowlist[1].tls: differs from network.allowlist[0], which is for a.test and \
          port 80 too"],
        "{said:#?}"
    );
}

#[test]
fn refuses_a_denial_of_requests_that_pass_unseen() {
    let with = |denial: Value| {
        problems(
            &json!({"network": {"allowlist": [
                {"domain": "a.test", "ports": [443], "tls": "passthrough"},
                {"domain": "*.a.test", "ports": [22], "protocol": "tcp"},
                denial,
            ]}})
            .to_string(),
        )
    };
    for denial in [
        json!({"domain": "a.test", "deny": true, "paths": ["/x"]}),
        json!({"domain": "a.test", "deny": true, "ports": [443], "methods": ["PUT"]}),
        json!({"domain": "*.a.test", "deny": true, "methods": ["PUT"]}),
    ] {
        let said = with(denial);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("network.allowlist[2].deny: can't be kept"), "{said:?}");
    }
    for denial in [
        json!({"domain": "a.test", "deny": true}),
        json!({"domain": "a.test", "deny": true, "ports": [80], "paths": ["/x"]}),
        json!({"domain": "x.a.test", "deny": true, "paths": ["/x"]}),
    ] {
        assert!(with(denial.clone()).is_empty(), "{denial}");
    }
}

#[test]
fn ports_are_those_on_which_something_is_allowed() {
    let environment = load(&json!({"network": {"allowlist": [
        {"domain": "example.com:8443"},
        {"domain": "git.example.com", "protocol": "tcp", "ports": [22, 8443]},
        {"domain": "evil.example.com", "deny": true, "ports": [9]},
        {"domain": "worse.example.com", "deny": true},
    ]}}));
    assert_eq!(environment.policy.ports().into_iter().collect::<Vec<_>>(), [22, 8443]);
    let open = load(&json!({})).policy.ports();
    assert_eq!(open.into_iter().collect::<Vec<_>>(), [80, 443]);
}
