//! What does a URL of a hook answer? One POST, one answer of at most 1 MiB, one deadline for both.
//!
//! How the POST reaches its host is the business of [`HookTransport`]: the gateway sends it where
//! everything of the environment goes.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use crate::outcome::{Cause, Failure};
use crate::url::HookUrl;

/// Far above any decision with its reason.
const MAX_BODY: usize = 1 << 20;

/// How long the rest of an answer that doesn't count may take.
const REST: Duration = Duration::from_secs(1);

/// Why a body broke off.
type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Sends requests in an environment's name.
pub trait HookTransport: Sync {
    /// The body of an answer.
    type Body: Body<Data = Bytes, Error: Into<BodyError>> + Send;

    /// Sends one request, following no redirect. [`Cause::UrlRefused`] where policy says no,
    /// [`Cause::Transport`] for the rest. May be dropped at any time.
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Failure>> + Send;
}

/// Calls one URL; gives the body of its answer, if the status is 2xx.
pub(crate) async fn call(
    transport: &impl HookTransport,
    url: Option<&HookUrl>,
    headers: &[(HeaderName, HeaderValue)],
    payload: &[u8],
    time: Duration,
) -> Result<Vec<u8>, Failure> {
    let Some(url) = url else {
        return Err(Failure::new(Cause::UrlRefused, "the URL in the hooks file can't be used"));
    };
    let request = request(url, headers, payload);
    timeout(time, exchange(transport, request)).await.unwrap_or_else(|_| {
        Err(Failure::new(Cause::Timeout, format!("no answer within {} s", time.as_secs())))
    })
}

async fn exchange(
    transport: &impl HookTransport,
    request: Request<Bytes>,
) -> Result<Vec<u8>, Failure> {
    let response = transport.send(request).await?;
    let status = response.status();
    let body = std::pin::pin!(response.into_body());
    // The body of any other answer may hold what its server shows to nobody else: it is read so
    // that the connection can be used again, and dropped.
    if !status.is_success() {
        let _ = timeout(REST, Limited::new(body, MAX_BODY).collect()).await;
        let redirect = if status.is_redirection() { "; redirects are not followed" } else { "" };
        return Err(Failure::new(
            Cause::HttpStatus,
            format!("status {}{redirect}", status.as_u16()),
        ));
    }
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes().to_vec()),
        Err(error) if error.is::<LengthLimitError>() => {
            let detail = format!("more than {MAX_BODY} bytes of answer");
            Err(Failure::new(Cause::OutputTooLarge, detail))
        }
        Err(error) => Err(Failure::new(Cause::Transport, format!("the answer broke off: {error}"))),
    }
}

fn request(url: &HookUrl, headers: &[(HeaderName, HeaderValue)], payload: &[u8]) -> Request<Bytes> {
    let mut request = Request::new(Bytes::copy_from_slice(payload));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = url.uri().clone();
    let json = HeaderValue::from_static("application/json");
    let own = request.headers_mut();
    own.insert(ACCEPT, json.clone());
    // What is coded is not decoded: a small answer could become a large one.
    own.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, value) in headers {
        own.insert(name, value.clone());
    }
    // The author's headers don't change what the body is.
    own.insert(CONTENT_TYPE, json);
    request
}
