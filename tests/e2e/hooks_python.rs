//! Does the example that is written in Python do what it is there for?

#[path = "hooks/scene.rs"]
#[allow(dead_code, reason = "the tests of other hooks use the rest of it")]
mod scene;

use outgate_tests::prelude::*;

use self::scene::{Place, example, only, view};

#[test]
fn the_security_gate_stops_dangerous_code() {
    isolated(|| {
        let place = Place::new(&world!(), &example("security-gate"));
        let call =
            |code: &str| json!({"tool_call": {"name": "code_execution", "args": {"code": code}}});
        let denied = place.ask(&call("import os; os.system('rm -rf /workspace')"));
        assert_eq!((only(&denied), &denied["decision"]), ("deny", &json!("deny")));
        assert!(denied["reason"].as_str().is_some_and(|reason| reason.contains("recursively")));
        assert_eq!(only(&place.ask(&call("print(1 + 1)"))), "allow");
        assert_eq!(place.ask(&view("/rm -rf"))["outcomes"], json!([]));
    });
}
