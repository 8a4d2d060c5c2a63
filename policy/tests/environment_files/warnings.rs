//! What is worth a look, though the file loads?

use super::*;

#[test]
fn only_warns_of_unknown_fields_outside_the_network() {
    let environment = load(&json!({"name": "x", "soruces": [], "network": "disabled"}));
    let said: Vec<_> = environment.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["name: unknown field", "soruces: unknown field, did you mean sources?"]);
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
