//! Does a service account's key bring access tokens, without leaving the gateway?

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use outgate_tests::origin::Script;

use super::*;

const AUTH: &str = "auth.example.test";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

fn key_file() -> (Value, Vec<u8>) {
    let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
    let der: Pkcs8V1Der<'_> = pair.as_der().expect("it can be written");
    let text = STANDARD.encode(der.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    let file = json!({
        "type": "service_account", "private_key_id": "k1", "private_key": pem,
        "client_email": "robot@example.test", "token_uri": format!("https://{AUTH}/token"),
    });
    (file, pair.public_key().as_ref().to_vec())
}

/// Gives a token to who proves to have the key.
fn endpoint(public: Vec<u8>) -> Box<Script> {
    Box::new(move |connection: &mut Connection| {
        while let Some(request) = connection.request() {
            let form = request.text();
            let good = form
                .strip_prefix("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&")
                .and_then(|rest| rest.strip_prefix("assertion="))
                .is_some_and(|jwt| is_good(jwt, &public));
            let (status, body) = match good {
                true => ("200 OK", r#"{"access_token": "token-of-google", "expires_in": 3600}"#),
                false => ("400 Bad Request", r#"{"error": "invalid_grant"}"#),
            };
            connection.send(format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ));
        }
    })
}

fn is_good(jwt: &str, public: &[u8]) -> bool {
    let Some((text, signature)) = jwt.rsplit_once('.') else { return false };
    let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else { return false };
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public);
    let claims = text.split_once('.').and_then(|(_, claims)| URL_SAFE_NO_PAD.decode(claims).ok());
    let claims: Value =
        claims.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    key.verify(text.as_bytes(), &signature).is_ok()
        && claims["iss"] == "robot@example.test"
        && claims["scope"] == SCOPE
        && claims["aud"] == format!("https://{AUTH}/token")
}

#[test]
fn a_signed_statement_brings_a_token_and_the_key_stays() {
    isolated(|| {
        let world = world!();
        world.name(AUTH, "11.22.33.77");
        let (file, public) = key_file();
        let auth = world.https(AUTH).script(endpoint(public)).start();
        let origin = world.https(NAME).respond(scripts::ok("yes")).start();
        let gateway = world.gateway(environment());
        let (other, _) = key_file();
        let account = |file: &Value| {
            json!({"id": "main", "type": "gcp_service_account", "key_file_json": file,
                   "scopes": [SCOPE]})
        };
        // A key that the endpoint does not know, and then its own, as text.
        store(&gateway, &account(&other));
        let ask = || gateway.curl(&format!("https://{NAME}/")).run();
        let refused = ask();
        assert_eq!(refused.reason(), Some("credential_unavailable"), "{refused:?}");
        done(&gateway, "PATCH", "credentials/main", &json!({"key_file_json": file.to_string()}));
        assert_eq!((ask().status, ask().status), (200, 200));
        assert_eq!(auth.requests().len(), 2, "a token is kept");
        for request in origin.requests() {
            assert_eq!(request.header("authorization"), Some("Bearer token-of-google"));
        }
        assert_eq!(origin.requests().len(), 2);
        let shown = done(&gateway, "GET", "credentials/main", &Value::Null).to_string();
        let secret = file["private_key"].as_str().expect("text").replace('\n', "");
        assert!(!shown.contains("private_key") && !shown.contains(&secret[40..80]), "{shown}");
        assert!(!gateway.output().contains("token-of-google"));
    });
}
