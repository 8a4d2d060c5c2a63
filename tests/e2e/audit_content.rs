//! Can anything that a sandbox sends break an audit line, or a secret end in one?

use outgate_tests::prelude::*;
use serde_json::Value;

/// What a terminal or a viewer of logs would act on.
fn acts(letter: char) -> bool {
    matches!(letter, '\0'..='\x08' | '\x0b'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}')
}

#[test]
fn no_value_of_an_injected_header_and_no_query_is_in_anything_it_writes() {
    isolated(|| {
        let world = world!();
        let secret = canary(40);
        let query = canary(40);
        let sent = canary(40);
        let _api = world.https("api.example.com").respond("HTTP/1.1 999\r\nbroken\r\n").start();
        let spoiled = world.pki.leaf("evil.example.test").expired().issue();
        let _evil = world.https("evil.example.test").identity(spoiled).start();
        let transform = json!({"Authorization": format!("Bearer {secret}"), "X-Key": secret});
        let mut gateway = world
            .gateway_builder()
            .variable("RUST_LOG", "trace")
            .configuration("[limits]\nrequest_head_bytes = 8192\n")
            .environment(&json!({"network": {"allowlist": [
                {"domain": "api.example.com", "transform": transform},
                {"domain": "evil.example.test", "transform": transform},
                {"domain": "a.ok.example.test", "transform": transform},
            ]}}))
            .start();
        let long = "x".repeat(9000);
        for (url, header) in [
            (format!("https://api.example.com/?access_token={query}"), "short"),
            (format!("https://api.example.com/?access_token={query}"), long.as_str()),
            (format!("http://api.example.com/?sig={query}"), "short"),
            (format!("https://evil.example.test/?code={query}"), "short"),
            (format!("https://a.ok.example.test/?code={query}"), "short"),
            (format!("https://nobody.example.test/?code={query}"), "short"),
            (format!("https://user:{query}@api.example.com/"), "short"),
        ] {
            let curl = gateway.curl(&url).header("X-Long", header).header("X-Mine", &sent);
            let answer = curl.header("Cookie", &format!("session={sent}")).run();
            assert_ne!(answer.exit_code, 28, "{answer:?}");
            assert_secret_absent(format!("{:?}{}", answer.heads, answer.text()), &secret);
        }
        assert_eq!(gateway.wait_audit(7).len(), 7);
        let process = format!("/proc/{}", gateway.pid());
        for file in ["cmdline", "environ"] {
            let shown = std::fs::read(format!("{process}/{file}")).unwrap_or_default();
            assert_secret_absent(shown, &secret);
        }
        assert_eq!(gateway.final_audit().len(), 7);
        for value in [&secret, &query, &sent] {
            assert_secret_absent(gateway.output(), value);
        }
        assert!(gateway.output().contains("TRACE"), "the control: it did log at that level");
    });
}

#[test]
fn nothing_that_a_client_sends_makes_a_second_line_or_reaches_a_terminal() {
    isolated(|| {
        let world = world!();
        let _api = world.http("api.example.com").start();
        let mut gateway =
            world.gateway(json!({"network": {"allowlist": [{"domain": "api.example.com"}]}}));
        let host = "HTTP/1.1\r\nHost: api.example.com\r\n";
        let huge = "a".repeat(60_000);
        let hostile: Vec<Vec<u8>> = vec![
            format!("GET http://api.example.com/%0a{{\"verdict\":\"allow\"}} {host}\r\n").into(),
            b"GET http://api.example.com/\x1b]0;x HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
                .to_vec(),
            b"GET http://api.example.com/\xc2\x9b HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
                .to_vec(),
            b"GET http://api.example.com/\xe2\x80\xa8 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
                .to_vec(),
            b"GET http://api.example.com/\xff\xfe HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
                .to_vec(),
            b"GET http://api.example.com/\x7f HTTP/1.1\r\nHost: api.example.com\r\n\r\n".to_vec(),
            b"GET http://api.example.com/ HTTP/1.1\r\nHost: \x1b]0;\xc2\x9b\xff\xfe\r\n\r\n"
                .to_vec(),
            b"CONNECT \x1b[2J:443 HTTP/1.1\r\n\r\n".to_vec(),
            b"CONNECT \xff\xfe:443 HTTP/1.1\r\n\r\n".to_vec(),
            b"G\x1bT http://api.example.com/ HTTP/1.1\r\n\r\n".to_vec(),
            format!("{} http://api.example.com/ {host}\r\n", "M".repeat(500)).into(),
            format!("GET http://api.example.com/{huge} {host}\r\n").into(),
            format!("GET http://api.example.com/ {host}User-Agent: {huge}\r\n\r\n").into(),
            format!("GET http://{huge}/ {host}\r\n").into(),
        ];
        let count = hostile.len();
        for request in hostile {
            let mut client = gateway.client();
            client.send(&request);
            let answer = client.try_read_response("GET").map(|answer| answer.status);
            assert!(answer.is_ok(), "{answer:?} to {}", request.escape_ascii());
        }
        let audit = gateway.final_audit();
        assert_eq!(audit.len(), count, "{audit:#?}");
        let output = gateway.output();
        let unprintable: Vec<char> = output.chars().filter(|letter| acts(*letter)).collect();
        assert!(unprintable.is_empty(), "{unprintable:?} reached stderr");
        for line in &audit {
            assert!(longest(line, "path") <= 512 + 64, "{line}");
            assert!(longest(line, "method") <= 32 && longest(line, "domain") <= 255, "{line}");
            assert!(line.to_string().len() < 3000, "{line}");
            assert!(line.to_string().chars().all(|letter| !acts(letter)), "{line}");
        }
    });
}

fn longest(line: &Value, field: &str) -> usize {
    line[field].as_str().map_or(0, str::len)
}
