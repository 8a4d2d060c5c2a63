//! How does a test play Cloud Storage?

use serde_json::{Value, json};

use crate::http::Request;
use crate::origin::{Connection, Script};

/// The name of the service.
pub const SERVICE: &str = "storage.googleapis.com";

/// What one bucket holds, served by the JSON API.
#[derive(Clone, Debug, Default)]
pub struct Bucket {
    name: String,
    objects: Vec<(String, Vec<u8>)>,
    page: usize,
}

impl Bucket {
    /// An empty one.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), objects: Vec::new(), page: 1000 }
    }

    /// Puts an object in.
    #[must_use]
    pub fn object(mut self, name: &str, content: impl Into<Vec<u8>>) -> Self {
        self.objects.push((name.to_owned(), content.into()));
        self
    }

    /// Lists this many names at a time.
    #[must_use]
    pub fn page(self, names: usize) -> Self {
        Self { page: names, ..self }
    }

    /// What the service does on each connection.
    pub fn serve(self) -> Box<Script> {
        Box::new(move |connection: &mut Connection| {
            while let Some(request) = connection.request() {
                if !connection.send(self.answer(&request)) {
                    return;
                }
            }
        })
    }

    fn answer(&self, request: &Request) -> Vec<u8> {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let base = format!("/storage/v1/b/{}/o", self.name);
        match path.strip_prefix(&base) {
            Some("") => response(200, self.listing(query).to_string().as_bytes()),
            Some(rest) if query == "alt=media" => {
                let name = decoded(rest.trim_start_matches('/'));
                match self.objects.iter().find(|(known, _)| *known == name) {
                    Some((_, content)) => response(200, content),
                    None => response(404, b"No such object"),
                }
            }
            _ => response(404, b"The specified bucket does not exist."),
        }
    }

    fn listing(&self, query: &str) -> Value {
        let value = |key: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.filter(|(name, _)| *name == key).map(|(_, value)| decoded(value)).next()
        };
        let prefix = value("prefix").unwrap_or_default();
        let start = value("pageToken").map_or(0, |token| token.parse().expect("one of ours"));
        let found: Vec<_> =
            self.objects.iter().filter(|(name, _)| name.starts_with(&prefix)).collect();
        let end = found.len().min(start + self.page);
        let items: Vec<_> = found[start..end]
            .iter()
            .map(|(name, content)| json!({"name": name, "size": content.len().to_string()}))
            .collect();
        let mut listing = json!({"items": items});
        if end < found.len() {
            listing["nextPageToken"] = json!(end.to_string());
        }
        listing
    }
}

fn response(status: u16, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Percent-decoded, whatever the bytes are.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = (*first == b'%').then(|| std::str::from_utf8(&tail[..2]).expect("two digits"));
        bytes.push(hex.map_or(*first, |hex| u8::from_str_radix(hex, 16).expect("hex")));
        rest = if hex.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).expect("names are UTF-8")
}
