//! What does each mistake in a hooks file lead to: a warning, a disabled group, an unused file?

use std::time::Duration;

use outgate_hooks::{Action, Compiled, GroupState, OnFailure, Phase, compile};
use serde_json::{Value, json};

const EXAMPLE: &str = r#"{
  "security-gate": {
    "enabled": true,
    "pre_tool_execution": [
      {"matcher": "code_execution",
       "hooks": [{"type": "command", "command": "python3 /.agents/hooks-scripts/gate.py", "timeout": 10}]}
    ]
  },
  "audit-logging": {
    "post_tool_execution": [
      {"matcher": "view_file|write_to_file|replace_file_content",
       "hooks": [{"type": "http", "url": "https://telemetry.example.com/api/v1/agent-events",
                  "headers": {"X-Event-Source": "agent-sandbox"}, "timeout": 10}]}
    ]
  }
}"#;

fn read(text: &str) -> Compiled {
    compile(text).unwrap_or_else(|unreadable| panic!("{text}: {unreadable:?}"))
}

/// A file whose one group, `g`, has one handler.
fn with_handler(handler: Value) -> Compiled {
    read(&json!({"g": {"pre_tool_execution": [{"hooks": [handler]}]}}).to_string())
}

fn places(problems: &[outgate_policy::Problem]) -> Vec<&str> {
    problems.iter().map(|problem| problem.path.as_str()).collect()
}

fn is_invalid(compiled: &Compiled, group: usize) -> bool {
    matches!(compiled.file.groups[group].state, GroupState::Invalid { .. })
}

#[test]
fn the_example_of_the_reference_loads_without_a_word() {
    let compiled = read(EXAMPLE);
    assert_eq!((compiled.problems.len(), compiled.warnings.len()), (0, 0), "{compiled:?}");
    let names: Vec<_> = compiled.file.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["security-gate", "audit-logging"]);
    let GroupState::Active(rules) = &compiled.file.groups[1].state else {
        panic!("the group is not active");
    };
    let handler = &rules.of(Phase::PostToolExecution)[0].handlers[0];
    assert_eq!(handler.place, "post_tool_execution[0].hooks[0]");
    assert_eq!(handler.timeout, Duration::from_secs(10));
    assert!(
        matches!(&handler.action, Action::Http { url: Some(_), headers } if headers.len() == 1)
    );
}

#[test]
fn groups_keep_the_order_of_the_file() {
    let compiled = read(r#"{"z": {}, "a": {}, "m": {"enabled": false}, "b": {}}"#);
    let names: Vec<_> = compiled.file.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["z", "a", "m", "b"]);
    assert!(matches!(compiled.file.groups[2].state, GroupState::Off));
}

#[test]
fn a_key_that_occurs_twice_makes_the_whole_file_unused() {
    for (text, place) in [
        (r#"{"g": {"pre_tool_execution": [], "pre_tool_execution": []}}"#, "g.pre_tool_execution"),
        (r#"{"hooks": {}, "hooks": {}}"#, "hooks"),
        (
            r#"{"g": {"pre_tool_execution": [{"matcher": "a", "matcher": "b", "hooks": []}]}}"#,
            "g.pre_tool_execution[0].matcher",
        ),
    ] {
        let unreadable = compile(text).expect_err(text);
        assert_eq!(places(&unreadable.problems), [place]);
    }
}

#[test]
fn a_text_that_is_no_object_is_unused() {
    for text in ["", "[", "[]", "null", "{\"a\": {}", "{\"g\": {},}", "\0"] {
        assert!(compile(text).is_err(), "{text}");
    }
    let large = format!("{{\"g\": \"{}\"}}", "x".repeat(10 << 20));
    assert!(compile(&large).is_err());
}

#[test]
fn a_readable_on_failure_of_an_unused_file_is_kept() {
    let twice = r#"{"g": {"on_failure": "deny"}, "h": {}, "h": {}}"#;
    assert_eq!(compile(twice).expect_err("twice").on_failure, OnFailure::Deny);
    let cut = r#"{"g": {"on_failure": "deny"}, "h": {"#;
    assert_eq!(compile(cut).expect_err("cut").on_failure, OnFailure::Allow);
}

#[test]
fn a_wrong_handler_disables_its_group_alone_and_says_where() {
    let command = |extra: Value| {
        let mut handler = json!({"type": "command", "command": "true"});
        handler.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        handler
    };
    for (handler, place) in [
        (command(json!({"timeout": "5"})), ".timeout"),
        (command(json!({"timeout": 0})), ".timeout"),
        (command(json!({"timeout": -1})), ".timeout"),
        (command(json!({"timeout": 0.5})), ".timeout"),
        (command(json!({"timeout": 1.5})), ".timeout"),
        (command(json!({"timeout": null})), ".timeout"),
        (command(json!({"timeout": true})), ".timeout"),
        (command(json!({"type": "comand"})), ".type"),
        (command(json!({"type": 1})), ".type"),
        (command(json!({"command": ""})), ".command"),
        (command(json!({"command": ["true"]})), ".command"),
        (command(json!({"command": "a\0b"})), ".command"),
        (command(json!({"on_failure": "block"})), ".on_failure"),
        (json!({"type": "command"}), ".command"),
        (json!({"command": "true"}), ".type"),
        (json!({"type": "http"}), ".url"),
        (json!({"type": "http", "url": 1}), ".url"),
        (json!({"type": "http", "url": "https://a.example.com/", "headers": []}), ".headers"),
        (
            json!({"type": "http", "url": "https://a.example.com/", "headers": {"X": 1}}),
            ".headers.X",
        ),
        (
            json!({"type": "http", "url": "https://a.example.com/", "headers": {"Host": "b"}}),
            ".headers.Host",
        ),
        (
            json!({"type": "http", "url": "https://a.example.com/", "headers": {"X": "a\nb"}}),
            ".headers.X",
        ),
        (json!("true"), ""),
    ] {
        let text = json!({
            "bad": {"pre_tool_execution": [{"hooks": [handler]}]},
            "good": {"pre_tool_execution": [{"hooks": [{"type": "command", "command": "true"}]}]}
        });
        let compiled = read(&text.to_string());
        let expected = format!("bad.pre_tool_execution[0].hooks[0]{place}");
        assert_eq!(places(&compiled.problems), [expected.as_str()], "{text}");
        assert!(is_invalid(&compiled, 0) && !is_invalid(&compiled, 1), "{text}");
    }
}

#[test]
fn a_wrong_group_is_disabled_alone_and_says_where() {
    for (group, place) in [
        (json!([]), "bad"),
        (json!({"enabled": "true"}), "bad.enabled"),
        (json!({"pre_tool_excution": []}), "bad.pre_tool_excution"),
        (json!({"Pre_Tool_Execution": [{"hooks": []}]}), "bad.Pre_Tool_Execution"),
        (json!({"PreToolUse": [{"hooks": []}]}), "bad.PreToolUse"),
        (json!({"pre_tool_execution": {}}), "bad.pre_tool_execution"),
        (json!({"pre_tool_execution": [[]]}), "bad.pre_tool_execution[0]"),
        (json!({"pre_tool_execution": [{}]}), "bad.pre_tool_execution[0].hooks"),
        (json!({"pre_tool_execution": [{"hooks": {}}]}), "bad.pre_tool_execution[0].hooks"),
        (
            json!({"pre_tool_execution": [{"matcher": ["a"], "hooks": []}]}),
            "bad.pre_tool_execution[0].matcher",
        ),
        (
            json!({"pre_tool_execution": [{"matcher": null, "hooks": []}]}),
            "bad.pre_tool_execution[0].matcher",
        ),
        (json!({"applies_to": ["mcp"]}), "bad.applies_to[0]"),
        (json!({"applies_to": []}), "bad.applies_to"),
        (json!({"applies_to": "builtin"}), "bad.applies_to"),
        (json!({"on_failure": true}), "bad.on_failure"),
    ] {
        let good = json!({"post_tool_execution": []});
        let compiled = read(&json!({"bad": group, "good": good}).to_string());
        assert_eq!(places(&compiled.problems), [place], "{group}");
        assert!(is_invalid(&compiled, 0) && !is_invalid(&compiled, 1), "{group}");
    }
}

#[test]
fn a_disabled_group_keeps_a_readable_on_failure() {
    for (group, expected) in [
        (json!({"on_failure": "deny", "pre_tool_excution": []}), OnFailure::Deny),
        (json!({"on_failure": "Deny", "pre_tool_execution": []}), OnFailure::Allow),
        (json!({"pre_tool_execution": {}}), OnFailure::Allow),
        (
            json!({"pre_tool_execution": [{"hooks": [
                {"type": "command", "command": "true", "timeout": 0, "on_failure": "deny"}]}]}),
            OnFailure::Deny,
        ),
    ] {
        let compiled = read(&json!({"g": group}).to_string());
        let GroupState::Invalid { on_failure, .. } = compiled.file.groups[0].state else {
            panic!("{group} is not disabled");
        };
        assert_eq!(on_failure, expected, "{group}");
    }
}

#[test]
fn a_list_that_holds_no_rules_is_an_unknown_field() {
    let rules = json!([{"hooks": [{"type": "command", "command": "true"}]}]);
    for list in [json!([]), json!(["me", "you"]), json!([{"name": "me"}]), json!([["hooks"]])] {
        let text = json!({"g": {"authors": list, "pre_tool_execution": rules}});
        let compiled = read(&text.to_string());
        assert_eq!(places(&compiled.warnings), ["g.authors"]);
        assert!(compiled.problems.is_empty() && !is_invalid(&compiled, 0), "{text}");
    }
    for list in [json!(["x", {"matcher": "x"}]), rules.clone()] {
        let text = json!({"g": {"before": list, "pre_tool_execution": rules}});
        assert!(is_invalid(&read(&text.to_string()), 0), "{text}");
    }
}

#[test]
fn a_group_that_is_switched_off_never_fails() {
    for mut group in [
        json!({"pre_tool_excution": []}),
        json!({"pre_tool_execution": {}}),
        json!({"pre_tool_execution": [{"hooks": [{"type": "comand"}]}], "on_failure": "deny"}),
        json!({"on_failure": 1, "applies_to": []}),
    ] {
        group["enabled"] = json!(false);
        let compiled = read(&json!({"g": group}).to_string());
        assert!(!compiled.problems.is_empty(), "{group}");
        assert!(matches!(compiled.file.groups[0].state, GroupState::Off), "{group}");
    }
    for enabled in [json!("false"), json!(null), json!(0)] {
        let compiled = read(&json!({"g": {"enabled": enabled}}).to_string());
        assert!(is_invalid(&compiled, 0), "{enabled}");
    }
}

#[test]
fn an_unknown_field_is_warned_of_and_the_group_works() {
    let text = json!({"g": {"comment": "x", "enabld": true, "pre_tool_execution": [
        {"mather": "x", "hooks": [{"type": "command", "command": "true", "timout": 5}]}]}});
    let compiled = read(&text.to_string());
    assert!(compiled.problems.is_empty() && !is_invalid(&compiled, 0), "{compiled:?}");
    assert_eq!(
        places(&compiled.warnings),
        [
            "g.comment",
            "g.enabld",
            "g.pre_tool_execution[0].mather",
            "g.pre_tool_execution[0].hooks[0].timout"
        ]
    );
    assert!(compiled.warnings[3].message.contains("did you mean timeout"), "{compiled:?}");
}

#[test]
fn a_timeout_over_the_most_counts_as_the_most() {
    for timeout in ["601", "10000", "1e9", "18446744073709551616", "1e300"] {
        let text = format!(
            r#"{{"g": {{"pre_tool_execution": [{{"hooks":
                [{{"type": "command", "command": "true", "timeout": {timeout}}}]}}]}}}}"#
        );
        let compiled = read(&text);
        assert!(compiled.problems.is_empty(), "{compiled:?}");
        assert!(compiled.warnings[0].message.contains("seconds"), "{compiled:?}");
        let GroupState::Active(rules) = &compiled.file.groups[0].state else {
            panic!("{timeout} disables the group");
        };
        assert_eq!(rules.pre[0].handlers[0].timeout, Duration::from_secs(600), "{timeout}");
    }
}

#[test]
fn timeouts_have_a_default_and_bounds() {
    for (handler, seconds) in [
        (json!({"type": "command", "command": "true"}), 30),
        (json!({"type": "command", "command": "true", "timeout": 1}), 1),
        (json!({"type": "command", "command": "true", "timeout": 2.0}), 2),
        (json!({"type": "command", "command": "true", "timeout": 600}), 600),
    ] {
        let compiled = with_handler(handler);
        let GroupState::Active(rules) = &compiled.file.groups[0].state else {
            panic!("not active: {compiled:?}");
        };
        assert_eq!(rules.pre[0].handlers[0].timeout, Duration::from_secs(seconds));
    }
}

#[test]
fn what_only_fails_when_it_runs_is_a_problem_of_check_alone() {
    for (handler, place) in [
        (json!({"type": "http", "url": "http://a.example.com/"}), ".url"),
        (json!({"type": "http", "url": "ftp://x"}), ".url"),
        (json!({"type": "http", "url": "https://me:hunter2@a.example.com/"}), ".url"),
        (
            json!({"type": "http", "url": "https://a.example.com/",
                   "headers": {"authorization": "Bearer hunter2"}}),
            ".headers.authorization",
        ),
    ] {
        let compiled = with_handler(handler);
        let expected = format!("g.pre_tool_execution[0].hooks[0]{place}");
        assert_eq!(places(&compiled.problems), [expected.as_str()]);
        assert!(!is_invalid(&compiled, 0), "{compiled:?}");
        assert!(!compiled.problems[0].message.contains("hunter2"), "{compiled:?}");
    }
}

#[test]
fn an_invalid_matcher_matches_nothing_and_takes_nothing_else_down() {
    let text = json!({"g": {"pre_tool_execution": [
        {"matcher": "*_file", "hooks": [{"type": "command", "command": "true"}]},
        {"matcher": "view_file", "hooks": [{"type": "command", "command": "true"}]}]}});
    let compiled = read(&text.to_string());
    assert_eq!(places(&compiled.problems), ["g.pre_tool_execution[0].matcher"]);
    let GroupState::Active(rules) = &compiled.file.groups[0].state else {
        panic!("the group is disabled");
    };
    let matched: Vec<_> = rules.pre.iter().map(|rule| rule.matcher.matches("view_file")).collect();
    assert_eq!(matched, [false, true]);
    assert!(!rules.pre[0].matcher.matches("*_file"));
}

#[test]
fn a_group_without_rules_is_warned_of() {
    let compiled = read(r#"{"g": {}, "hooks": {"gate": {"pre_tool_execution": []}}}"#);
    assert_eq!(places(&compiled.warnings), ["g", "hooks.gate", "hooks"]);
    assert!(read("{}").warnings.is_empty());
}

#[test]
fn more_rules_than_are_read_disable_the_group_that_has_them() {
    let rule = json!({"matcher": "a", "hooks": [{"type": "command", "command": "true"}]});
    let rules = |count: usize| vec![rule.clone(); count];
    let text = json!({"a": {"pre_tool_execution": rules(200)}, "b": {"post_tool_execution": rules(57)},
                      "c": {}});
    let compiled = read(&text.to_string());
    assert_eq!(places(&compiled.problems), ["b"]);
    assert!(!is_invalid(&compiled, 0) && is_invalid(&compiled, 1));
}

#[test]
fn a_file_with_more_groups_than_are_read_is_unused_and_its_on_failure_is_kept() {
    let groups = |count: usize| -> Value {
        let group = |number| (format!("g{number}"), json!({"on_failure": "deny"}));
        (0..count).map(group).collect::<serde_json::Map<_, _>>().into()
    };
    assert_eq!(read(&groups(256).to_string()).file.groups.len(), 256);
    let unreadable = compile(&groups(257).to_string()).expect_err("too many");
    assert_eq!(unreadable.on_failure, OnFailure::Deny);
    let handler = json!({"type": "http", "url": "https://a.example.com/", "headers": groups(257)});
    let text = json!({"g": {"pre_tool_execution": [{"hooks": [handler]}]}});
    assert!(compile(&text.to_string()).is_err());
}

#[test]
fn rules_and_handlers_beyond_their_bounds_are_not_looked_at() {
    // Every one that is looked at is reported.
    let rules = vec![json!({"matcher": "*x", "hooks": []}); 129];
    let text = json!({"g": {"pre_tool_execution": rules, "post_tool_execution": rules}});
    assert_eq!(places(&read(&text.to_string()).problems), ["g"]);
    let handlers = vec![json!({"type": "comand"}); 513];
    let text = json!({"g": {"pre_tool_execution": [{"hooks": handlers}, {"hooks": handlers}]}});
    assert_eq!(places(&read(&text.to_string()).problems), ["g"]);
}
