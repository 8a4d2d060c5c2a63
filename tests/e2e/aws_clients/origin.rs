//! What does an object store answer, that takes good signatures alone?

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use outgate_tests::origin::Script;
use outgate_tests::prelude::*;

use crate::verify::{Key, Received};

/// A store of objects, and a little of STS and DynamoDB.
pub(crate) struct Objects(Arc<Inner>);

struct Inner {
    key: Key,
    /// The length of each.
    objects: Mutex<BTreeMap<String, (Vec<u8>, usize)>>,
    refusals: Mutex<Vec<String>>,
}

impl Objects {
    pub(crate) fn new(key: Key) -> Objects {
        Objects(Arc::new(Inner { key, objects: Mutex::default(), refusals: Mutex::default() }))
    }

    pub(crate) fn key(&self) -> &Key {
        &self.0.key
    }

    /// Why requests were not taken.
    pub(crate) fn refusals(&self) -> Vec<String> {
        self.0.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn script(&self) -> Box<Script> {
        let inner = Arc::clone(&self.0);
        Box::new(move |connection: &mut Connection| {
            while let Some(request) = connection.request() {
                let answer = inner.answer(&request);
                connection.send(answer);
            }
        })
    }
}

impl Inner {
    fn answer(&self, request: &Request) -> Vec<u8> {
        let values =
            |name: &str| request.head.values(name).into_iter().map(str::to_owned).collect();
        let (method, target) = (request.method.as_str(), request.target.as_str());
        let received = Received { method, target, body: &request.body, values: &values };
        if let Err(why) = self.key.verify(&received) {
            self.refusals.lock().unwrap_or_else(PoisonError::into_inner).push(why);
            return said("403 Forbidden", "<Error><Code>SignatureDoesNotMatch</Code></Error>");
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match method {
            "POST" if path == "/" => of_another_service(request),
            "POST" if query.contains("uploadId=") => said(
                "200 OK",
                "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>",
            ),
            "POST" => said(
                "200 OK",
                "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>",
            ),
            "PUT" => self.put(path, request),
            "DELETE" => said("204 No Content", ""),
            _ if query.contains("list-type=2") => self.list(query),
            _ => self.get(path, method == "HEAD"),
        }
    }

    fn put(&self, path: &str, request: &Request) -> Vec<u8> {
        let body = match request.header("content-encoding") {
            Some("aws-chunked") => unchunked(&request.body),
            _ => request.body.clone(),
        };
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, length) = objects.entry(path.to_owned()).or_default();
        // Parts of one object: what is in them is all the same.
        *length += body.len();
        *kept = body;
        b"HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 0\r\n\r\n".to_vec()
    }

    fn get(&self, path: &str, head: bool) -> Vec<u8> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((body, length)) = objects.get(path) else {
            return said("404 Not Found", "<Error><Code>NoSuchKey</Code></Error>");
        };
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\
             Content-Length: {length}\r\n\r\n"
        )
        .into_bytes();
        if !head {
            answer.extend_from_slice(body);
        }
        answer
    }

    fn list(&self, query: &str) -> Vec<u8> {
        let prefix = query.split('&').find_map(|pair| pair.strip_prefix("prefix="));
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let listed: String = objects
            .iter()
            .filter_map(|(path, (_, length))| path.strip_prefix("/b/").zip(Some(length)))
            .filter(|(key, _)| key.starts_with(prefix.unwrap_or_default()))
            .map(|(key, length)| {
                format!(
                    "<Contents><Key>{key}</Key><Size>{length}</Size>\
                     <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
                )
            })
            .collect();
        let list = "ListBucketResult";
        said("200 OK", &format!("<{list}><IsTruncated>false</IsTruncated>{listed}</{list}>"))
    }
}

fn of_another_service(request: &Request) -> Vec<u8> {
    match request.header("x-amz-target") {
        Some(_) => said("200 OK", r#"{"TableNames": ["a-table"]}"#),
        None => said(
            "200 OK",
            "<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123456789012</Account>\
             </GetCallerIdentityResult></GetCallerIdentityResponse>",
        ),
    }
}

/// The bytes inside of chunks that nobody signed; behind them comes a checksum.
fn unchunked(mut text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let end = text.windows(2).position(|two| two == b"\r\n").expect("a size and a line end");
        let size = std::str::from_utf8(&text[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size in hex");
        if size == 0 {
            return bytes;
        }
        text = &text[end + 2..];
        bytes.extend_from_slice(&text[..size]);
        text = &text[size + 2..];
    }
}

fn said(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}
