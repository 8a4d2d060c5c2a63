//! What of a file is for the sandbox itself?

use super::*;

#[test]
fn reads_the_variables_of_the_sandbox_in_their_order() {
    let text = r#"{"env": {"MODE": "test", "KEY": {"value": "hunter2"}, "EMPTY": ""}}"#;
    let environment = compile(text, "file").expect("an environment");
    let plain = |name: &str, text: &str| (name.to_owned(), EnvValue::Plain(text.to_owned()));
    assert_eq!(
        environment.env,
        [plain("MODE", "test"), plain("KEY", "hunter2"), plain("EMPTY", "")]
    );
    assert!(!format!("{environment:?}").contains("hunter2"), "{environment:?}");
}

#[test]
fn reads_the_sources_of_the_sandbox() {
    let environment = load(&json!({"sources": [
        {"type": "inline", "target": ".agents/hooks.json", "content": "{}"},
        {"type": "inline", "target": "/a/../b", "content": "aG\r\nk=", "encoding": "base64", "read_only": true},
        {"type": "repository", "source": "https://github.com/o/r", "target": "/w/r"},
        {"type": "gcs", "source": "gs://bucket/a/prefix", "target": "/w/d"},
        {"type": "gcs", "source": "gs://bucket", "target": "/w/e"},
    ]}));
    let target = |text: &str| Target::parse(text).expect("a target");
    let bucket = || "bucket".to_owned();
    assert_eq!(
        environment.sources,
        [
            Source::Inline {
                target: target(".agents/hooks.json"),
                content: b"{}".to_vec(),
                read_only: false
            },
            Source::Inline { target: target("b"), content: b"hi".to_vec(), read_only: true },
            Source::Repository {
                target: target("w/r"),
                url: "https://github.com/o/r".to_owned(),
                read_only: false
            },
            Source::Gcs {
                target: target("w/d"),
                bucket: bucket(),
                prefix: "a/prefix".to_owned(),
                read_only: false
            },
            Source::Gcs {
                target: target("w/e"),
                bucket: bucket(),
                prefix: String::new(),
                read_only: false
            },
        ]
    );
}

#[test]
fn refuses_two_sources_in_one_place() {
    let inline = |target: &str| json!({"type": "inline", "target": target, "content": ""});
    for (one, other) in [("a/b", "/a/b/"), ("a", "a/b"), ("a/b/c", "a"), ("a/x/../b", "a/b")] {
        let file = json!({"sources": [inline("z"), inline(one), inline("a/bc"), inline(other)]});
        let said = problems(&file.to_string());
        assert!(said.iter().any(|line| line.starts_with("sources[3].target: ")), "{said:?}");
        assert!(said.iter().any(|line| line.contains("sources[1] brings this too")), "{said:?}");
    }
    let apart = json!({"sources": [inline("a/b"), inline("a/bc"), inline("b"), inline("a/a")]});
    assert_eq!(load(&apart).sources.len(), 4);
}
