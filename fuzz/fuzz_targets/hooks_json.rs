//! Does every text either load as hooks or say why not, and mean the same when loaded twice?

#![no_main]

use libfuzzer_sys::fuzz_target;
use outgate_hooks::{GroupState, HookFile, Phase, compile};

const TOOLS: [&str; 6] = ["view_file", "read_file", "code_execution", "", "é\n", "mcp__a_b"];

/// Which tools each rule matches, in order.
fn meaning(file: &HookFile) -> Vec<(String, Vec<bool>)> {
    let mut meaning = Vec::new();
    for group in &file.groups {
        let GroupState::Active(rules) = &group.state else {
            meaning.push((group.name.clone(), Vec::new()));
            continue;
        };
        for rule in [Phase::PreToolExecution, Phase::PostToolExecution].map(|phase| rules.of(phase))
        {
            for rule in rule {
                let matched = TOOLS.map(|tool| rule.matcher.matches(tool));
                meaning.push((group.name.clone(), matched.to_vec()));
                for handler in &rule.handlers {
                    assert!((1..=600).contains(&handler.timeout.as_secs()));
                }
            }
        }
    }
    meaning
}

fuzz_target!(|text: &str| match compile(text) {
    Ok(compiled) => {
        let again = compile(text).expect("the same text loads again");
        assert_eq!(meaning(&compiled.file), meaning(&again.file));
        let invalid = |state: &GroupState| matches!(state, GroupState::Invalid { .. });
        if compiled.file.groups.iter().any(|group| invalid(&group.state)) {
            assert!(!compiled.problems.is_empty(), "a group is disabled without a word");
        }
    }
    Err(unreadable) => {
        assert!(!unreadable.problems.is_empty(), "refused without a word");
        assert_eq!(compile(text).err(), Some(unreadable));
    }
});
