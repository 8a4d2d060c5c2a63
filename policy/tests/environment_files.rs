//! Which files load, and is every problem of one that doesn't said at once, with its place?

#[path = "environment_files/entries.rs"]
mod entries;
#[path = "environment_files/sandbox.rs"]
mod sandbox;
#[path = "environment_files/warnings.rs"]
mod warnings;

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
