//! What does a denial say?

use super::*;

#[test]
fn says_which_entry_would_allow_it() {
    let policy = policy(json!([
        {"domain": "a.test", "methods": ["GET"]},
        {"domain": "b.test", "paths": ["/v1/*"]},
    ]));
    let refusal = |method, host, port, path| {
        let destination = to(host, port);
        let request = Request { destination: &destination, scheme: Scheme::Https, method, path };
        policy.judge_request(&request).expect_err("refused")
    };
    let fix = |denial: outgate_policy::Denial| denial.fix.unwrap_or(Value::Null);
    assert_eq!(fix(refusal("GET", "c.test", 443, "/")), json!({"domain": "c.test"}));
    assert_eq!(fix(refusal("GET", "c.test", 22, "/")), json!({"domain": "c.test", "ports": [22]}));
    assert_eq!(fix(refusal("GET", "a.test", 22, "/")), json!({"domain": "a.test", "ports": [22]}));
    assert_eq!(
        fix(refusal("POST", "a.test", 443, "/")),
        json!({"domain": "a.test", "methods": ["POST"]})
    );
    assert_eq!(
        fix(refusal("GET", "b.test", 443, "/v2")),
        json!({"domain": "b.test", "paths": ["/v2"]})
    );
    assert_eq!(fix(refusal("GET", "b.test", 443, "/v2/*")), Value::Null);
    assert_eq!(fix(refusal("GET", "127.0.0.1", 443, "/")), Value::Null);
    assert_eq!(fix(refusal("GET", "10.0.0.1", 443, "/")), json!({"domain": "10.0.0.1"}));
}

#[test]
fn names_the_environment_in_messages_about_its_allowlist() {
    let id = EnvironmentId::parse("env_xyz789").expect("an id");
    let refusal = |policy: &Policy, host| {
        policy.judge_tunnel(&to(host, 443)).expect_err("refused").in_environment(&id).message
    };
    assert_eq!(
        refusal(&Policy::deny_all(), "evil.example"),
        "evil.example is not in network.allowlist of environment env_xyz789"
    );
    assert_eq!(
        refusal(&Policy::disabled(), "evil.example"),
        "evil.example is out of reach of the disabled network of environment env_xyz789"
    );
    assert!(!refusal(&Policy::open(), "localhost").contains("env_xyz789"));
}

#[test]
fn repeats_little_of_what_the_client_sent() {
    let policy = policy(json!([{"domain": "a.test", "paths": ["/v1"], "methods": ["GET"]}]));
    let path = format!("/{}", "x".repeat(5000));
    let method = "M".repeat(5000);
    let destination = to("a.test", 443);
    for (method, path) in [("GET", path.as_str()), (method.as_str(), "/v1")] {
        let request = Request { destination: &destination, scheme: Scheme::Https, method, path };
        let denial = policy.judge_request(&request).expect_err("refused");
        assert!(denial.message.len() < 200, "{}", denial.message);
        assert!(denial.fix.is_none_or(|fix| fix.to_string().len() < 200));
    }
}
