//! Is what a client claims to have signed read without a fault, and signed so that whoever reads the
//! request as AWS does comes to the same text?

use std::time::{Duration, UNIX_EPOCH};

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, header};

use crate::secret::{Fit, Secret};
use crate::sigv4::{Claim, Payload, Signer, Subject, canonical};

const KEY_ID: &str = "AKIAFUZZING";
const SECRET: &str = "s3cret-access-key";
const SESSION: &str = "s3ssion-token";
/// As many as fit beside those that the signer sets, of what a claim may name.
const MOST_HEADERS: usize = 90;

/// A request by lines: its target, its host, then headers.
struct Asked {
    target: PathAndQuery,
    host: HeaderValue,
    headers: HeaderMap,
}

/// Signs a request made of `input`, if its claim can be read.
pub fn signed(input: &[u8]) {
    if input.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
        // A client that knows the key may say it.
        return;
    }
    let Some(asked) = Asked::read(input) else { return };
    let claim = match Claim::read(&asked.headers, &asked.target) {
        Ok(claim) => claim,
        Err(error) => {
            // A sentence of ours, whatever the client wrote.
            let said = error.to_string();
            assert!(said.is_ascii() && said.len() < 300, "{said}");
            return;
        }
    };
    let payload = match Payload::stated(&asked.headers) {
        Ok(stated) => stated.unwrap_or_else(Payload::empty),
        Err(_) => return,
    };
    let mut headers = asked.headers.clone();
    for name in Signer::CARRIERS {
        headers.remove(name);
    }
    let once = sign(&claim, &asked, &payload, headers);
    check_headers(&once, &claim);
    check_text(&claim, &asked, &payload, &once);
    // The new signature is a claim for the same, and signed again it is the same.
    let again = Claim::read(&once, &asked.target).expect("our own signature can be read");
    assert_eq!((again.region(), again.service()), (claim.region(), claim.service()));
    let twice = sign(&again, &asked, &payload, once.clone());
    assert_eq!(once[AUTHORIZATION], twice[AUTHORIZATION]);
}

impl Asked {
    fn read(input: &[u8]) -> Option<Asked> {
        let mut lines = input.split(|byte| *byte == b'\n');
        let target = PathAndQuery::try_from(lines.next()?).ok()?;
        // `*` is no path, and is not forwarded.
        target.path().starts_with('/').then_some(())?;
        let host = HeaderValue::from_bytes(lines.next()?).ok()?;
        let mut headers = HeaderMap::new();
        for line in lines.take(MOST_HEADERS) {
            let at = line.iter().position(|byte| *byte == b':')?;
            let value = HeaderValue::from_bytes(line[at + 1..].trim_ascii()).ok()?;
            headers.append(HeaderName::from_bytes(&line[..at]).ok()?, value);
        }
        headers.remove(header::HOST);
        Some(Asked { target, host, headers })
    }

    fn subject<'a>(&'a self, payload: &'a Payload) -> Subject<'a> {
        Subject { method: &Method::PUT, host: &self.host, target: &self.target, payload }
    }
}

fn sign(claim: &Claim, asked: &Asked, payload: &Payload, mut headers: HeaderMap) -> HeaderMap {
    let secret = |text| Secret::parse(text, Fit::Header).expect("a secret");
    let (secret, session_token) = (secret(SECRET), Some(secret(SESSION)));
    let signer = Signer { access_key_id: KEY_ID.into(), secret, session_token };
    let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let set = signer.sign_at(claim, &asked.subject(payload), &mut headers, now);
    assert!(set.is_some_and(|set| set.contains(&AUTHORIZATION)));
    headers
}

/// The names that an `Authorization` of ours says are signed.
fn names(headers: &HeaderMap) -> Vec<String> {
    let value = headers[AUTHORIZATION].to_str().expect("text");
    let begin = format!("AWS4-HMAC-SHA256 Credential={KEY_ID}/20270115/");
    let rest = value.strip_prefix(&begin).expect("our key, our date");
    let [scope, signed, signature] = rest.splitn(3, ", ").collect::<Vec<_>>()[..] else {
        panic!("{value}")
    };
    assert!(scope.ends_with("/aws4_request") && scope.matches('/').count() == 2, "{value}");
    let signature = signature.strip_prefix("Signature=").expect("the last");
    assert!(signature.len() == 64 && signature.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let signed = signed.strip_prefix("SignedHeaders=").expect("the second");
    signed.split(';').map(str::to_owned).collect()
}

fn check_headers(headers: &HeaderMap, claim: &Claim) {
    for name in Signer::CARRIERS {
        assert_eq!(headers.get_all(&name).iter().count(), 1, "{name}");
    }
    for (name, value) in headers {
        let holds = |secret: &str| {
            value.as_bytes().windows(secret.len()).any(|window| window == secret.as_bytes())
        };
        assert!(!holds(SECRET), "{name}");
    }
    let names = names(headers);
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "sorted, each once: {names:?}");
    assert!(names.iter().any(|name| name == "host"));
    for name in headers.keys() {
        let is_signed = names.iter().any(|signed| signed == name.as_str());
        assert!(is_signed || !name.as_str().starts_with("x-amz-"), "{name}");
        assert!(is_signed || !claim.covers(name) || *name == AUTHORIZATION, "{name}");
    }
    for never in ["authorization", "connection", "content-length", "transfer-encoding", "te"] {
        assert!(!names.iter().any(|name| name == never), "{never}");
    }
}

/// The text that was signed, against the request, by a reader that shares nothing with the writer.
fn check_text(claim: &Claim, asked: &Asked, payload: &Payload, headers: &HeaderMap) {
    let text = canonical(claim, &asked.subject(payload), headers);
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let names = names(headers);
    assert_eq!(lines.len(), names.len() + 6, "one line each");
    let line = |index: usize| std::str::from_utf8(lines[index]).expect("ASCII");
    assert_eq!((line(0), line(lines.len() - 3)), ("PUT", ""));
    assert_eq!(line(lines.len() - 2), names.join(";"));
    for (index, name) in names.iter().enumerate() {
        assert!(lines[3 + index].starts_with(format!("{name}:").as_bytes()), "{name}");
        assert!(!lines[3 + index].windows(2).any(|pair| pair == b"  "), "{name}");
    }
    let (path, sent) = (line(1), asked.target.path());
    assert!(path.starts_with('/') && path.split('/').all(is_encoded), "{path}");
    match claim.is_for_s3() {
        true => {
            let bytes = |path: &str| path.split('/').map(bytes_of).collect::<Vec<_>>();
            assert_eq!(bytes(path), bytes(sent));
        }
        false => {
            assert!(!path.split('/').any(|segment| matches!(segment, "." | "..")), "{path}");
            assert!(!path.contains("//"), "{path}");
            if !sent.contains("/.") && !sent.contains("//") {
                assert_eq!(bytes_of(path), sent.as_bytes(), "encoded once more");
            }
        }
    }
    let query = line(2);
    let written = pairs(query);
    let mut due = pairs(&asked.target.query().unwrap_or_default().replace('+', "%20"));
    due.sort();
    assert!(query.split('&').flat_map(|pair| pair.split('=')).all(is_encoded), "{query}");
    let mut sorted = written.clone();
    sorted.sort();
    assert_eq!(sorted, due);
    let encoded: Vec<_> = query.split('&').map(|pair| pair.split_once('=')).collect();
    assert!(encoded.windows(2).all(|two| two[0] <= two[1]), "{query}");
}

/// Unreserved characters (RFC 3986 §2.3), and `%XX` in capitals of all others.
fn is_encoded(text: &str) -> bool {
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let is_capital = |digit: u8| digit.is_ascii_digit() || (b'A'..=b'F').contains(&digit);
        let fits = match byte {
            b'%' => rest.next().is_some_and(is_capital) && rest.next().is_some_and(is_capital),
            byte => byte.is_ascii_alphanumeric() || b"-._~".contains(&byte),
        };
        if !fits {
            return false;
        }
    }
    true
}

fn pairs(query: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (bytes_of(name), bytes_of(value))
        })
        .collect()
}

/// What `%XX` stands for; a `%` before anything else is itself.
fn bytes_of(text: &str) -> Vec<u8> {
    let text = text.as_bytes();
    let (mut bytes, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let digit = |index: usize| text.get(index).and_then(|one| char::from(*one).to_digit(16));
        match (text[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high << 4 | low).expect("two digits"));
                at += 3;
            }
            (byte, ..) => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_hold_of_any_signed_request_holds_of_these() {
        let signature = "0".repeat(64);
        for (target, service, more) in [
            ("/", "s3", ""),
            ("/b/a%20b//./..?z=1&a=+&a=%2b&&=x", "s3", "\nx-amz-acl: private"),
            ("/a/../b%2f?b&a=%zz", "sts", "\nx-amz-content-sha256: UNSIGNED-PAYLOAD"),
            ("//./", "dynamodb", "\nte: trailers\nx-a:  b   c \nx-a: d"),
        ] {
            let request = format!(
                "{target}\na.test:443\nauthorization: AWS4-HMAC-SHA256 Credential=A/20261201/r/\
                 {service}/aws4_request, SignedHeaders=host;te;x-a, Signature={signature}{more}"
            );
            let asked = Asked::read(request.as_bytes()).expect("a request");
            assert!(Claim::read(&asked.headers, &asked.target).is_ok(), "{request}");
            signed(request.as_bytes());
        }
        for request in ["", "*\n", "/\n\n", "/?X-Amz-Signature=1\na", "/\na\nauthorization: x"] {
            signed(request.as_bytes());
        }
    }
}
