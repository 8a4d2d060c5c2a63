//! Is a decision only what another JSON reader takes for one too?

#![no_main]

use libfuzzer_sys::fuzz_target;
use outgate_hooks::{Decision, Event, parse_decision};
use serde_json::Value;

fuzz_target!(|answer: &[u8]| {
    // The other strict reader of what comes from outside.
    let _ = Event::parse(answer);
    let read = serde_json::from_slice::<Value>(answer).ok();
    let said = read.as_ref().and_then(|value| value.get("decision")).and_then(Value::as_str);
    match parse_decision(answer) {
        Ok(Decision::Allow) => assert_eq!(said, Some("allow")),
        Ok(Decision::Deny(reason)) => {
            assert_eq!(said, Some("deny"));
            if let Some(reason) = reason {
                assert!(reason.as_str().len() <= 4096);
                assert!(!reason.as_str().chars().any(char::is_control));
            }
        }
        Err(_) => {}
    }
});
