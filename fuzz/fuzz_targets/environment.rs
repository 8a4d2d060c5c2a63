//! Does every text either load or say why not, and mean the same when loaded twice?

#![no_main]

use libfuzzer_sys::fuzz_target;
use outgate_policy::{Destination, Host, Request, Scheme, compile, is_environment_document};

fuzz_target!(|text: &str| {
    let _ = is_environment_document(text);
    let environment = match compile(text, "fuzz") {
        Ok(environment) => environment,
        Err(problems) => {
            assert!(!problems.to_string().trim().is_empty(), "refused without a word");
            return;
        }
    };
    let again = compile(text, "fuzz").expect("the same text loads again");
    for host in ["example.com", "a.example.com", "localhost", "127.0.0.1", "11.22.33.44"] {
        let host = Host::from_wire(host.as_bytes()).expect("a host");
        let destination = Destination { host, port: 443 };
        let tunnel = environment.policy.judge_tunnel(&destination);
        assert_eq!(tunnel, again.policy.judge_tunnel(&destination));
        let request = Request {
            destination: &destination,
            scheme: Scheme::Https,
            method: "GET",
            path: "/v1/x",
        };
        let verdict = environment.policy.judge_request(&request);
        assert_eq!(verdict, again.policy.judge_request(&request));
        assert!(tunnel.is_ok() || verdict.is_err(), "a request passes where no tunnel does");
    }
    for never in ["localhost", "127.0.0.1", "169.254.169.254"] {
        let host = Host::from_wire(never.as_bytes()).expect("a host");
        let destination = Destination { host, port: 443 };
        assert!(environment.policy.judge_tunnel(&destination).is_err(), "{never} is open");
    }
});
