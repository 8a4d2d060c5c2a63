//! Is a decision only what another JSON reader takes for one too?

#![no_main]

use libfuzzer_sys::fuzz_target;
use outgate_hooks::{Decision, Event, parse_decision};
use serde_json::Value;

fuzz_target!(|answer: &[u8]| {
    // The other strict reader of what comes from outside.
    let _ = Event::parse(answer);
    let decision = parse_decision(answer);
    if let Ok(Decision::Deny(Some(reason))) = &decision {
        assert!(reason.as_str().len() <= 4096);
        assert!(!reason.as_str().chars().any(char::is_control));
    }
    // This reader has bounds, of depth and numbers, that an answer has not.
    let Ok(read) = serde_json::from_slice::<Value>(answer) else {
        return;
    };
    let said = read.get("decision").and_then(Value::as_str);
    match decision {
        Ok(Decision::Allow) => assert_eq!(said, Some("allow")),
        Ok(Decision::Deny(_)) => assert_eq!(said, Some("deny")),
        Err(_) => {}
    }
});
