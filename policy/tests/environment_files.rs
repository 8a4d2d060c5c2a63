//! Which files load, and is every problem of one that doesn't said at once, with its place?

use outgate_policy::{
    AddressConfig, AddressRules, ClientFiles, EnvValue, Environment, MinTls, OriginOptions, Reason,
    Source, Target, compile, compile_under,
};
use serde_json::{Value, json};

fn load(file: &Value) -> Environment {
    compile(&file.to_string(), "file").unwrap_or_else(|problems| panic!("{problems}"))
}

fn problems(text: &str) -> Vec<String> {
    match compile(text, "file") {
        Ok(_) => Vec::new(),
        Err(problems) => problems.to_string().lines().map(str::to_owned).collect(),
    }
}

fn problems_of_entry(entry: Value) -> Vec<String> {
    problems(&json!({"network": {"allowlist": [entry]}}).to_string())
}

fn warnings_of_entry(entry: Value) -> Vec<String> {
    let file = json!({"network": {"allowlist": [entry]}});
    load(&file).warnings.iter().map(ToString::to_string).collect()
}

/// One problem, at this place under the entry, with this in its message.
fn refuses(entry: Value, place: &str, part: &str) {
    let said = problems_of_entry(entry.clone());
    let [problem] = said.as_slice() else { panic!("{entry}: {said:?}") };
    let path = format!("network.allowlist[0]{place}: ");
    assert!(problem.starts_with(&path), "{entry}: {problem}");
    assert!(problem.contains(part), "{entry}: {problem}");
}

#[test]
fn loads_the_network_of_the_reference() {
    let environment = load(&json!({
        "type": "remote",
        "environment_id": "env_xyz789",
        "network": {"allowlist": [
            {"domain": "telemetry.example.com", "transform": {"Authorization": "Bearer t_123"}},
            {"domain": "api.github.com", "credential": "github-token"},
            {"domain": "*.googleapis.com", "transform": [{"X-Team": "blue"}, {"X-Env": "prod"}]},
            {"domain": "*"},
        ]},
    }));
    assert_eq!(environment.id.as_str(), "env_xyz789");
    assert_eq!(environment.policy.entries(), 4);
    // googleapis.com is on the public suffix list.
    let places: Vec<_> = environment.warnings.iter().map(|warning| warning.path.as_str()).collect();
    assert_eq!(places, ["network.allowlist[2].domain"]);
}

#[test]
fn takes_the_id_from_the_file_name_where_none_is_given() {
    assert_eq!(load(&json!({"type": "remote"})).id.as_str(), "file");
    let error = compile("{}", "my file").expect_err("a blank in the id").to_string();
    assert!(error.starts_with("environment_id: "), "{error}");
    for id in ["../../e1", "e1\"; drop", "", &"a".repeat(64)] {
        let said = problems(&json!({"environment_id": id}).to_string());
        assert_eq!(said.len(), 1, "{id}: {said:?}");
        assert!(said[0].starts_with("environment_id: "), "{said:?}");
    }
}

#[test]
fn never_reads_something_empty_as_everything() {
    let refused = [
        r#"{"network": null}"#,
        r#"{"network": {}}"#,
        r#"{"network": []}"#,
        r#"{"network": ""}"#,
        r#"{"network": false}"#,
        r#"{"network": "disabeld"}"#,
        r#"{"network": {"allowlist": null}}"#,
        r#"{"network": {"allowlist": {}}}"#,
        r#"{"network": {"allowlist": ""}}"#,
        r#"{"network": {"allowlist": [null]}}"#,
        r#"{"network": {"allowlist": [{}]}}"#,
        r#"{"network": {"allowlist": ["a.test"]}}"#,
        r#"{"network": {"allowlist": [{"domain": null}]}}"#,
        r#"{"network": {"allowlist": [{"domain": ""}]}}"#,
        r#"{"network": {"alowlist": []}}"#,
        r#"{"netwrok": {"allowlist": []}}"#,
        r#"{"allowlist": []}"#,
        "null",
        "[]",
        "",
    ];
    for text in refused {
        assert!(!problems(text).is_empty(), "{text}");
    }
    assert_eq!(load(&json!({"network": {"allowlist": []}})).policy.entries(), 0);
    for disabled in [json!("disabled"), json!({"allowlist": "disabled"})] {
        assert!(load(&json!({"network": disabled})).policy.is_disabled());
    }
    assert_eq!(load(&json!({"type": "remote"})).policy.entries(), 1);
}

#[test]
fn names_a_misspelt_field_and_what_was_meant() {
    let entry = json!({"domain": "a.test"});
    let file = json!({"network": {"allowlist": [entry, entry, {"domian": "b.test"}]}});
    let said = problems(&file.to_string());
    assert_eq!(said[0], "network.allowlist[2].domian: unknown field, did you mean domain?");
    assert_eq!(said[1], "network.allowlist[2].domain: required");
    assert_eq!(
        problems(r#"{"network": {"alowlist": []}}"#)[0],
        "network.alowlist: unknown field, did you mean allowlist?"
    );
    refuses(json!({"domain": "a.test", "zzz": 1}), ".zzz", "unknown field");
}

#[test]
fn only_warns_of_unknown_fields_outside_the_network() {
    let environment = load(&json!({"name": "x", "soruces": [], "network": "disabled"}));
    let said: Vec<_> = environment.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["name: unknown field", "soruces: unknown field, did you mean sources?"]);
}

#[test]
fn reports_every_problem_of_a_file_at_once() {
    let said = problems(
        r#"{
            "type": "local", "environment_id": "a b", "env": {"A=": 1}, "sources": [{"type": "ftp"}],
            "network": {"allowlist": [
                {"domain": "https://a.test/x", "ports": [0, "443", 70000], "methods": ["get", "A B"]},
                {"domain": "a.test", "domain": "b.test", "paths": ["x"], "transform": {"Host": "a"}},
                7
            ]}
        }"#,
    );
    let places: Vec<_> = said.iter().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(
        places,
        [
            "network.allowlist[1].domain",
            "type",
            "environment_id",
            "env.A=",
            "env.A=",
            "sources[0].type",
            "sources[0].target",
            "network.allowlist[0].domain",
            "network.allowlist[0].ports[0]",
            "network.allowlist[0].ports[1]",
            "network.allowlist[0].ports[2]",
            "network.allowlist[0].methods[0]",
            "network.allowlist[0].methods[1]",
            "network.allowlist[1].paths[0]",
            "network.allowlist[1].transform.Host",
            "network.allowlist[2]",
        ],
        "{said:#?}"
    );
}

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
fn refuses_a_key_given_twice_at_any_depth() {
    let texts = [
        (r#"{"network": "disabled", "network": {"allowlist": [{"domain": "*"}]}}"#, "network"),
        (r#"{"network": {"allowlist": [], "allowlist": [{"domain": "*"}]}}"#, "network.allowlist"),
        (
            r#"{"network": {"allowlist": [{"domain": "a.test", "transform": {"A": "1", "A": "2"}}]}}"#,
            "network.allowlist[0].transform.A",
        ),
        (r#"{"network": "disabled", "x": [{"y": {"z": 1, "z": 1}}]}"#, "x[0].y.z"),
    ];
    for (text, place) in texts {
        let said = problems(text);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with(&format!("{place}: the key occurs twice")), "{said:?}");
    }
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
fn warns_of_values_too_short_to_be_scrubbed() {
    let entry = |scrub: bool, value: &str| json!({"domain": "a.test", "scrub": scrub, "transform": {"X-Key": value}});
    let warnings = format!("{:?}", warnings_of_entry(entry(true, "sh0rt")));
    assert!(
        warnings.contains("transform.x-key") && warnings.contains("shorter than 6"),
        "{warnings}"
    );
    assert!(!warnings.contains("sh0rt"));
    assert!(warnings_of_entry(entry(false, "sh0rt")).is_empty());
    assert!(warnings_of_entry(entry(true, "longer")).is_empty());
}

#[test]
fn reads_the_variables_of_the_sandbox_in_their_order() {
    let text = r#"{"env": {"MODE": "test", "KEY": {"value": "hunter2"}, "EMPTY": ""}}"#;
    let environment = compile(text, "file").expect("an environment");
    let plain = |name: &str, text: &str| (name.to_owned(), EnvValue::Plain(text.to_owned()));
    assert_eq!(
        environment.env,
        [plain("MODE", "test"), plain("KEY", "hunter2"), plain("EMPTY", "")]
    );
    assert!(!format!("{environment:?}").contains("hunter2"), "{environment:?}");
}

#[test]
fn reads_the_sources_of_the_sandbox() {
    let environment = load(&json!({"sources": [
        {"type": "inline", "target": ".agents/hooks.json", "content": "{}"},
        {"type": "inline", "target": "/a/../b", "content": "aG\r\nk=", "encoding": "base64", "read_only": true},
        {"type": "repository", "source": "https://github.com/o/r", "target": "/w/r"},
        {"type": "gcs", "source": "gs://bucket/a/prefix", "target": "/w/d"},
        {"type": "gcs", "source": "gs://bucket", "target": "/w/e"},
    ]}));
    let target = |text: &str| Target::parse(text).expect("a target");
    let bucket = || "bucket".to_owned();
    assert_eq!(
        environment.sources,
        [
            Source::Inline {
                target: target(".agents/hooks.json"),
                content: b"{}".to_vec(),
                read_only: false
            },
            Source::Inline { target: target("b"), content: b"hi".to_vec(), read_only: true },
            Source::Repository {
                target: target("w/r"),
                url: "https://github.com/o/r".to_owned(),
                read_only: false
            },
            Source::Gcs {
                target: target("w/d"),
                bucket: bucket(),
                prefix: "a/prefix".to_owned(),
                read_only: false
            },
            Source::Gcs {
                target: target("w/e"),
                bucket: bucket(),
                prefix: String::new(),
                read_only: false
            },
        ]
    );
}

#[test]
fn refuses_two_sources_in_one_place() {
    let inline = |target: &str| json!({"type": "inline", "target": target, "content": ""});
    for (one, other) in [("a/b", "/a/b/"), ("a", "a/b"), ("a/b/c", "a"), ("a/x/../b", "a/b")] {
        let file = json!({"sources": [inline("z"), inline(one), inline("a/bc"), inline(other)]});
        let said = problems(&file.to_string());
        assert!(said.iter().any(|line| line.starts_with("sources[3].target: ")), "{said:?}");
        assert!(said.iter().any(|line| line.contains("sources[1] brings this too")), "{said:?}");
    }
    let apart = json!({"sources": [inline("a/b"), inline("a/bc"), inline("b"), inline("a/a")]});
    assert_eq!(load(&apart).sources.len(), 4);
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
fn names_the_place_of_every_mistake_at_once() {
    let said = |file: Value| problems(&file.to_string()).join("\n");
    let entry = json!({
        "domain": "a.test", "protocol": "tcp", "tls": "none", "strip": ["Host", "query:"],
        "origin": {"client_key": "k.pem", "rootz": 1, "min_tls": "1.1"}, "paths": ["/x"], "credential": "c",
    });
    let text = said(json!({"network": {"allowlist": [entry]}}));
    for place in [
        "ports: required",
        "tls: \"none\"",
        "strip[0]",
        "strip[1]",
        "origin.rootz: unknown field, did you mean roots?",
        "origin.min_tls",
        "origin.client_certificate: required",
        "paths: no use",
        "credential: no use",
    ] {
        assert!(text.contains(&format!("network.allowlist[0].{place}")), "{place} in\n{text}");
    }
    let text = said(json!({
        "env": {"A": {"value": "hunter2\0"}, "B": {}, "C": {"value": "x", "credential": "y"}, "D": {"credential": "a b"}},
        "sources": [
            {"type": "inline", "target": "../x", "content": "not base64!", "encoding": "base64"},
            {"type": "repository", "target": "/x", "source": "http://me:hunter2@github.com/a"},
            {"type": "repository", "target": "/x", "source": "https://me:hunter2@github.com/a"},
            {"type": "gcs", "target": "/", "source": "s3://x"},
            {"type": "skill_registry", "target": "/x"},
        ],
    }));
    for place in [
        "env.A",
        "env.B",
        "env.C",
        "env.D.credential",
        "sources[0].target",
        "sources[0].content",
        "sources[1].source",
        "sources[2].source",
        "sources[3].source",
        "sources[3].target",
        "sources[4].type",
    ] {
        assert!(text.contains(&format!("{place}: ")), "{place} in\n{text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
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
fn warns_of_secrets_that_strangers_could_get() {
    let said = warnings_of_entry(json!({"domain": "*.com", "transform": {"Authorization": "x"}}));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("public suffix"), "{said:?}");
    assert!(said[1].contains("authorization"), "{said:?}");
    assert_eq!(warnings_of_entry(json!({"domain": "*.co.uk"})).len(), 1);
    assert_eq!(warnings_of_entry(json!({"domain": "*.github.io", "credential": "c"})).len(), 2);
    assert_eq!(warnings_of_entry(json!({"domain": "*", "credential": "c"})).len(), 1);
    assert_eq!(warnings_of_entry(json!({"domain": "*", "transform": {"X-Api-Key": "x"}})).len(), 1);
    for quiet in [
        json!({"domain": "*"}),
        json!({"domain": "*", "transform": {"X-Team": "x"}}),
        json!({"domain": "*.example.com", "transform": {"Authorization": "x"}}),
        json!({"domain": "*.com", "deny": true}),
    ] {
        assert!(warnings_of_entry(quiet.clone()).is_empty(), "{quiet}");
    }
}

#[test]
fn warns_of_a_pattern_that_only_denies_in_part() {
    let said = warnings_of_entry(json!({"domain": "a.test", "deny": true, "methods": ["DELETE"]}));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("all of it is denied"), "{said:?}");
}

#[test]
fn shows_no_secret_when_debugged() {
    let environment = load(&json!({"network": {"allowlist": [
        {"domain": "a.test", "transform": {"Authorization": "Bearer hunter2"}},
    ]}}));
    assert!(!format!("{environment:?}").contains("hunter2"));
}

#[test]
fn keeps_every_reason_code_distinct_and_stable() {
    let mut codes: Vec<_> = Reason::ALL.iter().map(|reason| reason.code()).collect();
    assert_eq!(codes.len(), 32);
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), 32);
    for reason in Reason::ALL {
        assert!(reason.code().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        assert!((400..600).contains(&reason.status()), "{reason}");
        assert!(reason.summary().ends_with('.'), "{reason}");
    }
    assert_eq!(Reason::DomainNotAllowed.status_name(), "PERMISSION_DENIED");
    assert_eq!(Reason::ProxyAuthenticationRequired.status_name(), "UNAUTHENTICATED");
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
