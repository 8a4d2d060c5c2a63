//! What becomes of a tool call, whatever the URL of a hook answers?

#[path = "support/scene.rs"]
mod scene;

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use outgate_hooks::{Answer, Cause, Failure, HookTransport, Verdict};
use scene::{Answering, Nowhere, ask, before_every_call, endings, table, unreachable};
use serde_json::{Value, json};

const DENY: &str = r#"{"decision": "deny", "reason": "no"}"#;

fn hook() -> Value {
    json!({"type": "http", "url": "https://hooks.example.com/ask?x=1", "timeout": 5,
           "headers": {"X-Event-Source": "agent-sandbox"}})
}

async fn asked(transport: &impl HookTransport) -> (bool, String) {
    let answer = ask(&before_every_call(&[hook()]), &Nowhere, transport).await;
    verdict(&answer)
}

fn verdict(answer: &Answer) -> (bool, String) {
    (answer.decision == Verdict::Deny, endings(answer).join(","))
}

#[tokio::test]
async fn each_status_and_body_means_what_the_document_says() {
    let body = |row: &str| match row {
        "deny" => DENY.to_owned(),
        "allow" => r#"{"decision": "allow"}"#.to_owned(),
        "nothing" => String::new(),
        "no JSON" => "<html>denied</html>".to_owned(),
        "JSON without `decision`" => r#"{"reason": "no"}"#.to_owned(),
        "text around the JSON" => r#"so: {"decision": "deny"}"#.to_owned(),
        "a key twice" => r#"{"decision": "deny", "decision": "deny"}"#.to_owned(),
        "over 1 MiB" => format!("{DENY}{}", " ".repeat(2 << 20)),
        other => panic!("what is {other}?"),
    };
    let cells = table("### URLs");
    assert_eq!(cells.len(), 8 * 9);
    for (row, column, expected) in cells {
        let answering = Answering::status(column.parse().expect("a status"), body(&row));
        let denied = expected == "deny";
        assert_eq!(asked(&answering).await, (denied, expected), "{row}, {column}");
    }
}

#[test]
fn the_document_tells_every_cause() {
    let cells = table("### Causes");
    let told: Vec<_> = cells.iter().map(|(row, ..)| row.trim_matches('`')).collect();
    assert_eq!(told, Cause::ALL.map(Cause::code));
}

#[tokio::test]
async fn the_request_is_one_post_of_the_payload() {
    let answering = Answering::status(200, DENY);
    asked(&answering).await;
    let asked = answering.asked.into_inner().unwrap();
    let [request] = asked.as_slice() else {
        panic!("{} requests", asked.len());
    };
    assert_eq!(request.method(), "POST");
    assert_eq!(request.uri(), "https://hooks.example.com/ask?x=1");
    assert_eq!(request.headers()["x-event-source"], "agent-sandbox");
    assert_eq!(request.headers()["content-type"], "application/json");
    assert_eq!(request.headers()["accept-encoding"], "identity");
    assert_eq!(
        request.body(),
        r#"{"tool_call":{"name":"view_file","args":{"path":"/public/x"}},"environment_id":"env_1"}"#
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let answering = Answering::with(|| {
        let response = Response::builder().status(307).header("location", "http://127.0.0.1:9/");
        Ok(response.body(Bytes::from_static(DENY.as_bytes())).unwrap())
    });
    assert_eq!(asked(&answering).await, (false, "http_status".to_owned()));
    assert_eq!(answering.asked.into_inner().unwrap().len(), 1);
}

#[tokio::test]
async fn an_answer_over_its_bound_is_a_failure_and_one_at_it_is_read() {
    let padded = |len: usize| format!("{DENY}{}", " ".repeat(len - DENY.len()));
    assert_eq!(asked(&Answering::status(200, padded(1 << 20))).await, (true, "deny".to_owned()));
    let larger = Answering::status(200, padded((1 << 20) + 1));
    assert_eq!(asked(&larger).await, (false, "output_too_large".to_owned()));
}

#[tokio::test]
async fn a_coded_answer_is_not_decoded() {
    let gzip: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xab\x56\x4a\x49\x4d\xce\x2c\xce\xcc\xcf";
    assert_eq!(asked(&Answering::status(200, gzip)).await, (false, "invalid_output".to_owned()));
}

#[tokio::test]
async fn a_request_that_is_refused_or_fails_is_a_failure_of_that_cause() {
    for cause in [Cause::UrlRefused, Cause::Transport] {
        let refusing = Answering::with(move || Err(Failure::new(cause, "no")));
        assert_eq!(asked(&refusing).await, (false, cause.code().to_owned()));
    }
}

#[tokio::test]
async fn a_url_that_cannot_be_used_is_never_asked() {
    for url in ["http://hooks.example.com/", "ftp://x", "https://me@hooks.example.com/"] {
        let answering = Answering::status(200, r#"{"decision": "allow"}"#);
        let set = before_every_call(&[json!({"type": "http", "url": url})]);
        let answer = ask(&set, &Nowhere, &answering).await;
        assert_eq!(verdict(&answer), (false, "url_refused".to_owned()), "{url}");
        assert!(answering.asked.into_inner().unwrap().is_empty(), "{url}");
    }
    let set = before_every_call(&[hook()]);
    assert_eq!(verdict(&ask(&set, &Nowhere, &unreachable()).await).1, "transport");
}

/// Sends one byte a second, for ever.
struct Dripping;

struct Drip(Pin<Box<tokio::time::Sleep>>);

impl http_body::Body for Drip {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        std::task::ready!(Future::poll(self.0.as_mut(), context));
        self.0 = Box::pin(tokio::time::sleep(Duration::from_secs(1)));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b" ")))))
    }
}

impl HookTransport for Dripping {
    type Body = Drip;

    async fn send(&self, _: Request<Bytes>) -> Result<Response<Drip>, Failure> {
        Ok(Response::new(Drip(Box::pin(tokio::time::sleep(Duration::from_secs(1))))))
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_covers_the_whole_exchange() {
    let started = tokio::time::Instant::now();
    assert_eq!(asked(&Dripping).await, (false, "timeout".to_owned()));
    assert_eq!(started.elapsed().as_secs(), 5);
}

/// Never answers.
struct Silent;

impl HookTransport for Silent {
    type Body = http_body_util::Full<Bytes>;

    async fn send(&self, _: Request<Bytes>) -> Result<Response<Self::Body>, Failure> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_answers_is_waited_for_no_longer_than_the_timeout() {
    let started = tokio::time::Instant::now();
    assert_eq!(asked(&Silent).await, (false, "timeout".to_owned()));
    assert_eq!(started.elapsed().as_secs(), 5);
}
