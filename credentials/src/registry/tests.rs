use std::sync::atomic::{AtomicUsize, Ordering};

use http::header::HeaderMap;
use outgate_policy::{Destination, Document, EnvironmentId, Host, Reason, compile};

use super::*;
use crate::oauth2::TokenAnswer;
use crate::placeholder::Tag;
use crate::store::LocalStore;

fn credentials() -> Credentials {
    Credentials::open(Arc::new(LocalStore::in_memory().expect("a store"))).expect("opened")
}

fn document(text: &str) -> Document {
    Document::read(text).expect("JSON").0
}

fn create(credentials: &Credentials, text: &str) -> Result<Summary, ChangeError> {
    credentials.create(&document(text), Asker::Local)
}

fn id(text: &str) -> CredentialId {
    CredentialId::parse(text).expect("an id")
}

fn environment(text: &str) -> EnvironmentId {
    EnvironmentId::parse(text).expect("an id")
}

async fn header(credentials: &Credentials, name: &str) -> Result<String, Reason> {
    let applied = credentials.apply(&[id(name)]).await.map_err(|denial| denial.reason)?;
    match &applied[0].carrier {
        Carrier::Header(_, value, _) => Ok(value.to_str().expect("text").to_owned()),
        Carrier::Query(parameter) => Ok(parameter.set(&"/".parse().expect("a target")).to_string()),
        Carrier::Signature(_) => Ok("signed".to_owned()),
    }
}

/// Asks for the substitution of a header `x` and a query parameter `q`.
async fn swap(
    credentials: &Credentials,
    owner: &str,
    host: &str,
    head: &str,
    query: &str,
) -> Result<(String, String), Reason> {
    let file = r#"{"network": {"allowlist": [{"domain": "api.test"}, {"domain": "*"}]}}"#;
    let policy = compile(file, "e").expect("a policy").policy;
    let host = Host::from_wire(host.as_bytes()).expect("a host");
    let destination = Destination { host, port: 443 };
    let environment = environment(owner);
    let asking = Asking { environment: &environment, policy: &policy, destination: &destination };
    let mut headers = HeaderMap::new();
    headers.insert("x", HeaderValue::from_str(head).expect("a value"));
    let target: PathAndQuery = format!("/?q={query}").parse().expect("a target");
    let swapped = credentials.substitute(&asking, &mut headers, &target).await;
    let swapped = swapped.map_err(|denial| denial.reason)?;
    let value = headers["x"].to_str().expect("text").to_owned();
    let target = swapped.target.unwrap_or(target);
    Ok((value, target.query().unwrap_or_default().to_owned()))
}

#[tokio::test]
async fn a_new_value_is_used_by_the_next_request_and_a_deleted_one_by_none() {
    let credentials = credentials();
    let changes = credentials.changes();
    assert_eq!(header(&credentials, "a").await, Err(Reason::CredentialUnavailable));
    create(&credentials, r#"{"id": "a", "type": "bearer_token", "token": "one"}"#).expect("made");
    assert_eq!(header(&credentials, "a").await.as_deref(), Ok("Bearer one"));
    let used = credentials.apply(&[id("a")]).await.expect("applied")[0].used.clone();
    assert!(credentials.are_current(std::slice::from_ref(&used)));
    let said = document(r#"{"token": "two"}"#);
    credentials.update(&id("a"), &said, None, Asker::Local).expect("changed");
    assert_eq!(header(&credentials, "a").await.as_deref(), Ok("Bearer two"));
    assert!(!credentials.are_current(&[used]), "what was begun with the old one ends");
    credentials.delete(&id("a")).expect("deleted");
    assert_eq!(header(&credentials, "a").await, Err(Reason::CredentialUnavailable));
    assert!(changes.has_changed().expect("open"));
}

#[test]
fn no_answer_and_no_error_holds_a_value() {
    let credentials = credentials();
    let canary = "CANARY-5f3a";
    let made = create(
        &credentials,
        &format!(r#"{{"id": "a", "type": "bearer_token", "token": "{canary}"}}"#),
    );
    let shown = format!("{:?} {:?}", made, credentials.list(None, 10));
    assert!(!shown.contains("CANARY"), "{shown}");
    for text in [
        format!(r#"{{"id": "a", "type": "bearer_token", "token": "{canary}"}}"#),
        format!(r#"{{"id": "{canary} x", "type": "bearer_token", "token": "t"}}"#),
        format!(r#"{{"id": "b", "type": "{canary}"}}"#),
        format!(r#"{{"id": "b", "type": "bearer_token", "token": "{canary}\n"}}"#),
        format!(r#"{{"id": "b", "type": "bearer_token", "token": ["{canary}"]}}"#),
        format!(r#"{{"id": "b", "type": "basic", "username": "{canary}:", "password": " "}}"#),
        format!(
            r#"{{"id": "b", "type": "environment_variable", "value": "{canary}",
                     "trusted_domains": ["https://{canary}"], "injection_location": "{canary}",
                     "placeholder_prefix": "{canary} "}}"#
        ),
        format!(
            r#"{{"id": "b", "type": "oauth2", "client_id": "{canary}\u0000",
                     "client_secret": {{"from_command": ["{canary}", 1]}},
                     "refresh_token": {{"from_env": "{canary}"}},
                     "token_url": "http://{canary}/", "scopes": ["{canary} x"]}}"#
        ),
    ] {
        let error = create(&credentials, &text).expect_err("refused").to_string();
        assert!(!error.contains("CANARY"), "{error}");
    }
}

#[test]
fn every_problem_is_said_at_once_with_its_field() {
    let credentials = credentials();
    let text =
        r#"{"id": "a", "type": "bearer_token", "header_name": "Host", "prefix": 1, "tok": ""}"#;
    let error = create(&credentials, text).expect_err("refused").to_string();
    for said in ["tok: unknown field", "token: required", "header_name:", "prefix: expected"] {
        assert!(error.contains(said), "{said} in {error}");
    }
    let text = r#"{"id": "a", "type": "aws_sigv4", "access_key_id": "a/b"}"#;
    let error = create(&credentials, text).expect_err("refused").to_string();
    assert!(error.contains("access_key_id:") && error.contains("secret_access_key: required"));
    let text = r#"{"id": "a", "type": "gcp_service_account", "key_file_json": "{}"}"#;
    let error = create(&credentials, text).expect_err("refused").to_string();
    assert!(error.contains("key_file_json:") && error.contains("scopes:"), "{error}");
}

#[test]
fn a_patch_changes_what_it_names_and_its_mask_decides() {
    let credentials = credentials();
    let text = r#"{"id": "a", "type": "bearer_token", "token": "t", "header_name": "X-Key"}"#;
    let made = create(&credentials, text).expect("made");
    assert!(matches!(create(&credentials, text), Err(ChangeError::Exists(_))));
    let patch = |text: &str, mask: Option<&[&str]>| {
        credentials.update(&id("a"), &document(text), mask, Asker::Local)
    };
    let changed = patch(r#"{"type": "bearer_token", "prefix": ""}"#, None).expect("changed");
    assert!(changed.updated > made.updated && changed.created == made.created);
    assert_eq!(credentials.header_of(&id("a")), Some(Some("x-key".parse().expect("a name"))));
    patch(r#"{"token": "u", "header_name": "X-No"}"#, Some(&["token"])).expect("changed");
    assert_eq!(credentials.header_of(&id("a")), Some(Some("x-key".parse().expect("a name"))));
    patch("{}", Some(&["header_name"])).expect("back to the default");
    assert_eq!(credentials.header_of(&id("a")), Some(Some(http::header::AUTHORIZATION)));
    for (text, mask) in [
        (r#"{"type": "basic"}"#, None),
        (r#"{"id": "b"}"#, None),
        ("{}", Some(&["token"][..])),
        ("{}", Some(&["id"][..])),
        (r#"{"token": "v"}"#, Some(&["token", "tokne"][..])),
        (r#"{"nonsense": 1}"#, None),
        ("[]", None),
    ] {
        let refused = patch(text, mask);
        assert!(matches!(refused, Err(ChangeError::Invalid(_))), "{text} {refused:?}");
    }
    let refused = patch("{}", Some(&["tokne"])).expect_err("unknown").to_string();
    assert!(refused.contains("update_mask") && refused.contains("tokne"), "{refused}");
    let absent = credentials.update(&id("x"), &document("{}"), None, Asker::Local);
    assert!(matches!(absent, Err(ChangeError::Missing(_))));
    assert!(matches!(credentials.delete(&id("x")), Err(ChangeError::Missing(_))));
}

#[test]
fn a_value_on_this_machine_is_named_over_the_local_socket_only() {
    let credentials = credentials();
    let text = r#"{"id": "a", "type": "bearer_token", "token": {"from_file": "/etc/shadow"}}"#;
    let remote = credentials.create(&document(text), Asker::Remote);
    assert!(matches!(remote, Err(ChangeError::Invalid(_))));
    credentials.create(&document(text), Asker::Local).expect("made");
    assert_eq!(credentials.files(), [std::path::PathBuf::from("/etc/shadow")]);
    let patched =
        credentials.update(&id("a"), &document(r#"{"prefix": "x"}"#), None, Asker::Remote);
    assert!(matches!(patched, Err(ChangeError::Invalid(_))));
}

#[test]
fn lists_in_the_order_of_ids() {
    let credentials = credentials();
    for name in ["c", "a", "b"] {
        let text =
            format!(r#"{{"id": "{name}", "type": "basic", "username": "u", "password": "p"}}"#);
        create(&credentials, &text).expect("made");
    }
    let ids = |after, most| -> Vec<_> {
        credentials.list(after, most).into_iter().map(|one| one.id.to_string()).collect()
    };
    assert_eq!(ids(None, 2), ["a", "b"]);
    assert_eq!(ids(Some("b"), 2), ["c"]);
}

#[tokio::test]
async fn a_placeholder_stands_for_its_value_where_it_is_trusted_and_nowhere_else() {
    let credentials = credentials();
    let text = r#"{"id": "v", "type": "environment_variable", "value": "real",
                   "injection_location": "header", "placeholder_prefix": "ghp_"}"#;
    create(&credentials, text).expect("made");
    let placeholder = credentials.placeholder(&environment("e1"), &id("v")).expect("issued");
    let again = credentials.placeholder(&environment("e1"), &id("v")).expect("issued");
    assert_eq!(placeholder, again);
    assert!(placeholder.starts_with("ghp_") && placeholder.len() == 40);
    let good = swap(&credentials, "e1", "api.test", &placeholder, "1").await;
    assert_eq!(good, Ok(("real".to_owned(), "q=1".to_owned())));
    let refused = Err(Reason::PlaceholderNotTrusted);
    assert_eq!(swap(&credentials, "e2", "api.test", &placeholder, "1").await, refused);
    // `*` allows it, but names nothing.
    assert_eq!(swap(&credentials, "e1", "other.test", &placeholder, "1").await, refused);
    assert_eq!(swap(&credentials, "e1", "api.test", "x", &placeholder).await, refused);
    let unknown = Tag::issue().expect("random bytes").placeholder("ghp_");
    assert_eq!(swap(&credentials, "e1", "api.test", &unknown, "1").await, refused);
    assert_eq!(swap(&credentials, "e1", "api.test", &placeholder[4..], "1").await, refused);
}

#[tokio::test]
async fn trusted_domains_and_locations_are_the_owners_word() {
    let credentials = credentials();
    let text = r#"{"id": "v", "type": "environment_variable", "value": "a b&é",
                   "injection_location": ["query"], "trusted_domains": ["*.ok.test"]}"#;
    create(&credentials, text).expect("made");
    let placeholder = credentials.placeholder(&environment("e1"), &id("v")).expect("issued");
    let good = swap(&credentials, "e1", "a.ok.test", "x", &placeholder).await;
    assert_eq!(good, Ok(("x".to_owned(), "q=a%20b%26%C3%A9".to_owned())));
    for host in ["ok.test", "api.test"] {
        let refused = swap(&credentials, "e1", host, "x", &placeholder).await;
        assert_eq!(refused, Err(Reason::PlaceholderNotTrusted), "{host}");
    }
}

#[tokio::test]
async fn a_placeholder_outlives_its_value_but_not_its_credential() {
    let credentials = credentials();
    let text = r#"{"id": "v", "type": "environment_variable", "value": "one"}"#;
    create(&credentials, text).expect("made");
    let placeholder = credentials.placeholder(&environment("e1"), &id("v")).expect("issued");
    let two = document(r#"{"value": "two"}"#);
    credentials.update(&id("v"), &two, None, Asker::Local).expect("changed");
    let good = swap(&credentials, "e1", "api.test", &placeholder, "1").await;
    assert_eq!(good.map(|(value, _)| value).as_deref(), Ok("two"));
    credentials.delete(&id("v")).expect("deleted");
    create(&credentials, text).expect("made again");
    let stale = swap(&credentials, "e1", "api.test", &placeholder, "1").await;
    assert_eq!(stale, Err(Reason::PlaceholderNotTrusted));
    let fresh = credentials.placeholder(&environment("e1"), &id("v")).expect("issued");
    assert_ne!(fresh, placeholder);
    credentials.forget_environment(&environment("e1")).expect("forgotten");
    let stale = swap(&credentials, "e1", "api.test", &fresh, "1").await;
    assert_eq!(stale, Err(Reason::PlaceholderNotTrusted));
}

#[test]
fn a_placeholder_that_another_process_made_is_used_not_overwritten() {
    let store: Arc<dyn CredentialStore> = Arc::new(LocalStore::in_memory().expect("a store"));
    let first = Credentials::open(Arc::clone(&store)).expect("opened");
    let text = r#"{"id": "v", "type": "environment_variable", "value": "one"}"#;
    create(&first, text).expect("made");
    // Opened now, they know of no placeholder.
    let others: Vec<_> =
        (0..4).map(|_| Credentials::open(Arc::clone(&store)).expect("opened")).collect();
    let placeholder = first.placeholder(&environment("e1"), &id("v")).expect("issued");
    let barrier = std::sync::Barrier::new(others.len());
    std::thread::scope(|scope| {
        for other in &others {
            scope.spawn(|| {
                let same = other.placeholder(&environment("e1"), &id("v")).expect("known");
                assert_eq!(same, placeholder);
                barrier.wait();
                // None of them has made this one yet.
                let raced = other.placeholder(&environment("e2"), &id("v")).expect("issued");
                barrier.wait();
                let after = Credentials::open(Arc::clone(&store)).expect("opened");
                let stored = after.placeholder(&environment("e2"), &id("v")).expect("known");
                assert_eq!(raced, stored);
            });
        }
    });
}

#[test]
fn what_is_stored_is_there_after_a_restart() {
    let store: Arc<dyn CredentialStore> = Arc::new(LocalStore::in_memory().expect("a store"));
    let before = Credentials::open(Arc::clone(&store)).expect("opened");
    let text = r#"{"id": "v", "type": "environment_variable", "value": "one"}"#;
    let made = create(&before, text).expect("made");
    let placeholder = before.placeholder(&environment("e1"), &id("v")).expect("issued");
    drop(before);
    let after = Credentials::open(store).expect("opened");
    assert_eq!(after.get(&id("v")), Some(made));
    let same = after.placeholder(&environment("e1"), &id("v")).expect("known");
    assert_eq!(same, placeholder);
    let absent = after.placeholder(&environment("e1"), &id("x"));
    assert!(matches!(absent, Err(PlaceholderError::Missing(_))));
}

/// An endpoint that gives numbered tokens and takes the last refresh token that it gave alone.
#[derive(Default)]
struct Endpoint {
    calls: AtomicUsize,
}

impl TokenTransport for Endpoint {
    fn post<'a>(&'a self, _: &'a TokenUrl, form: Zeroizing<String>) -> Answering<'a> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        let body = match form.contains(&format!("refresh_token=r{number}")) {
            true => format!(r#"{{"access_token": "a{0}", "refresh_token": "r{0}"}}"#, number + 1),
            false => r#"{"error": "invalid_grant"}"#.to_owned(),
        };
        let status = if body.contains("error") { 400 } else { 200 };
        let answer = TokenAnswer { status, body: body.into_bytes().into() };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

const OAUTH2: &str = r#"{"id": "o", "type": "oauth2", "client_id": "c", "client_secret": "s",
    "refresh_token": "r0", "token_url": "https://auth.test/token"}"#;

#[tokio::test(start_paused = true)]
async fn a_rotated_refresh_token_outlives_restarts_and_other_changes() {
    let store: Arc<dyn CredentialStore> = Arc::new(LocalStore::in_memory().expect("a store"));
    let endpoint = Arc::new(Endpoint::default());
    let first = Credentials::open(Arc::clone(&store)).expect("opened");
    first.connect(endpoint.clone());
    create(&first, OAUTH2).expect("made");
    assert_eq!(header(&first, "o").await.as_deref(), Ok("Bearer a1"));
    drop(first);
    let second = Credentials::open(store).expect("opened");
    second.connect(endpoint.clone());
    assert_eq!(header(&second, "o").await.as_deref(), Ok("Bearer a2"));
    let scopes = document(r#"{"scopes": ["x"]}"#);
    second.update(&id("o"), &scopes, None, Asker::Local).expect("changed");
    assert_eq!(header(&second, "o").await.as_deref(), Ok("Bearer a3"));
    // A new token from the owner is stronger than what was rotated; this one is refused.
    let token = document(r#"{"refresh_token": "wrong"}"#);
    second.update(&id("o"), &token, None, Asker::Local).expect("changed");
    assert_eq!(header(&second, "o").await, Err(Reason::CredentialUnavailable));
    assert_eq!(second.get(&id("o")).map(|one| one.status), Some("revoked"));
}

#[tokio::test(start_paused = true)]
async fn gateways_on_one_store_never_use_a_refresh_token_that_another_used_up() {
    let store: Arc<dyn CredentialStore> = Arc::new(LocalStore::in_memory().expect("a store"));
    let endpoint = Arc::new(Endpoint::default());
    let first = Credentials::open(Arc::clone(&store)).expect("opened");
    create(&first, OAUTH2).expect("made");
    let second = Credentials::open(store).expect("opened");
    for (gateway, token) in [(&first, "Bearer a1"), (&second, "Bearer a2")] {
        gateway.connect(endpoint.clone());
        assert_eq!(header(gateway, "o").await.as_deref(), Ok(token));
    }
    // What a gateway has not seen changed yet is not sent where it went before.
    let token = document(r#"{"refresh_token": "new", "token_url": "https://other.test/token"}"#);
    let third = Credentials::open(Arc::clone(first.store())).expect("opened");
    third.connect(endpoint.clone());
    first.update(&id("o"), &token, None, Asker::Local).expect("changed");
    let stale = header(&third, "o").await;
    assert_eq!(stale, Err(Reason::CredentialTemporarilyUnavailable));
    assert_eq!(endpoint.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_out_of_reach_is_a_matter_of_time() {
    let credentials = credentials();
    create(&credentials, OAUTH2).expect("made");
    let refused = header(&credentials, "o").await;
    assert_eq!(refused, Err(Reason::CredentialTemporarilyUnavailable));
}

#[tokio::test]
async fn an_entry_can_use_no_variable_and_a_variable_no_other_kind() {
    let credentials = credentials();
    let text = r#"{"id": "v", "type": "environment_variable", "value": "one"}"#;
    create(&credentials, text).expect("made");
    assert_eq!(header(&credentials, "v").await, Err(Reason::CredentialUnavailable));
    create(&credentials, r#"{"id": "b", "type": "bearer_token", "token": "t"}"#).expect("made");
    let refused = credentials.placeholder(&environment("e1"), &id("b"));
    assert!(matches!(refused, Err(PlaceholderError::NotAVariable(_))));
    create(&credentials, r#"{"id": "q", "type": "api_key_query", "name": "key", "key": "k&"}"#)
        .expect("made");
    assert_eq!(header(&credentials, "q").await.as_deref(), Ok("/?key=k%26"));
}

#[tokio::test]
async fn a_file_that_is_gone_fails_closed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("token");
    std::fs::write(&path, "one\n").expect("written");
    let credentials = credentials();
    let text = format!(
        r#"{{"id": "a", "type": "bearer_token", "token": {{"from_file": {:?}}}}}"#,
        path.display().to_string()
    );
    create(&credentials, &text).expect("made");
    assert_eq!(header(&credentials, "a").await.as_deref(), Ok("Bearer one"));
    std::fs::remove_file(path).expect("removed");
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(header(&credentials, "a").await, Err(Reason::CredentialUnavailable));
}
