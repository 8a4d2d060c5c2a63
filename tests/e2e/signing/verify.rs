//! Is a request signed for AWS with this key (Signature Version 4)?
//!
//! Written from the definition of the signature, and with nothing of the gateway's.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA256};

/// A key pair, and the token that belongs to it.
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
}

/// A request as an origin has received it.
pub(crate) struct Received<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) body: &'a [u8],
    /// The values of a header.
    pub(crate) values: &'a dyn Fn(&str) -> Vec<String>,
}

impl Key {
    /// Says what is wrong.
    pub(crate) fn verify(&self, received: &Received<'_>) -> Result<(), String> {
        let authorization = received.one("authorization")?;
        let rest = authorization.strip_prefix("AWS4-HMAC-SHA256 ").ok_or("another algorithm")?;
        let part = |name: &str| {
            let mut parts = rest.split(", ").filter_map(|part| part.strip_prefix(name));
            parts.next().ok_or(format!("no {name} in {rest}"))
        };
        let (credential, signed) = (part("Credential=")?, part("SignedHeaders=")?);
        let signature = part("Signature=")?;
        let [id, date, region, service, "aws4_request"] =
            *credential.split('/').collect::<Vec<_>>()
        else {
            return Err(format!("scope {credential}"));
        };
        let time = received.one("x-amz-date")?;
        if id != self.id || !time.starts_with(date) || time.len() != 16 {
            return Err(format!("{credential} at {time}"));
        }
        if received.optional("x-amz-security-token")? != self.token {
            return Err("another session token".to_owned());
        }
        let names: Vec<&str> = signed.split(';').collect();
        let needed = ["host", "x-amz-date"];
        let has_token = self.token.is_some().then_some("x-amz-security-token");
        if let Some(missing) = needed.into_iter().chain(has_token).find(|one| !names.contains(one))
        {
            return Err(format!("{missing} is not signed"));
        }
        let request = received.canonical(&names, service)?;
        let scope = format!("{date}/{region}/{service}/aws4_request");
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", sha256(request.as_bytes()));
        let mut key = format!("AWS4{}", self.secret).into_bytes();
        for step in [date, region, service, "aws4_request"] {
            key = mac(&key, step);
        }
        let ours = hex(&mac(&key, &text));
        (ours == signature).then_some(()).ok_or(format!("not the signature of\n{request}\n{text}"))
    }
}

impl Received<'_> {
    fn optional(&self, name: &str) -> Result<Option<String>, String> {
        let mut values = (self.values)(name);
        match values.len() {
            0 | 1 => Ok(values.pop()),
            several => Err(format!("{name} {several} times")),
        }
    }

    fn one(&self, name: &str) -> Result<String, String> {
        self.optional(name)?.ok_or(format!("no {name}"))
    }

    fn canonical(&self, names: &[&str], service: &str) -> Result<String, String> {
        let (path, query) = self.target.split_once('?').unwrap_or((self.target, ""));
        let path = if service == "s3" { path.to_owned() } else { encoded(path) };
        let mut pairs: Vec<String> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") })
            .collect();
        pairs.sort();
        let mut text = format!("{}\n{path}\n{}\n", self.method, pairs.join("&"));
        for name in names {
            let values: Vec<String> =
                (self.values)(name).iter().map(|value| value.trim().to_owned()).collect();
            if values.is_empty() {
                return Err(format!("{name} is signed and not there"));
            }
            writeln!(text, "{name}:{}", values.join(",")).expect("a String takes all");
        }
        let hash = self.payload(service)?;
        write!(text, "\n{}\n{hash}", names.join(";")).expect("a String takes all");
        Ok(text)
    }

    /// What stands for the body, which has to be so where it is a hash.
    fn payload(&self, service: &str) -> Result<String, String> {
        let hash = sha256(self.body);
        match self.optional("x-amz-content-sha256")? {
            None if service == "s3" => Err("S3 wants to be told of the body".to_owned()),
            None => Ok(hash),
            Some(said) if said.len() == 64 && said != hash => Err("another body".to_owned()),
            Some(said) => Ok(said),
        }
    }
}

/// Every byte of a path but these, as `%XX`.
fn encoded(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            _ => write!(text, "%{byte:02X}").expect("a String takes all"),
        }
    }
    text
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all");
        text
    })
}
