//! How does a POST of a hook leave? As a request of its environment, and by no other way.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use outgate_hooks::{Cause, Failure, HookTransport, Reason};
use outgate_policy::{
    Authority, Denial, Destination, Reason as Code, Request as JudgedRequest, Scheme,
};
use outgate_proxy::{Content, Egress, Environment};

/// Shorter values are in any text, and no secrets.
const SHORTEST: usize = 8;

/// The proxy, on behalf of one environment, for one run.
pub(super) struct Transport {
    egress: Egress,
    environment: Arc<Environment>,
    /// What was put on the wire of its requests.
    injected: Mutex<Vec<HeaderValue>>,
}

impl Transport {
    pub(super) fn new(egress: Egress, environment: Arc<Environment>) -> Transport {
        Transport { egress, environment, injected: Mutex::default() }
    }

    /// A reason without what its server may have sent back of an injected header: it is shown to
    /// the model, which the secret was kept from.
    pub(super) fn scrubbed(&self, reason: &Reason) -> Reason {
        let mut text = reason.as_str().to_owned();
        for value in self.injected().iter().filter_map(|value| value.to_str().ok()) {
            // The token alone is as good as the whole.
            let token = value.rsplit(' ').next().unwrap_or(value);
            for secret in [value, token].into_iter().filter(|secret| secret.len() >= SHORTEST) {
                text = text.replace(secret, "[removed]");
            }
        }
        Reason::new(&text)
    }

    fn note_injected(&self, request: &Request<Bytes>) {
        let Some(destination) = destination(request.uri()) else { return };
        let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let judged = JudgedRequest {
            destination: &destination,
            scheme: Scheme::Https,
            method: request.method().as_str(),
            path,
        };
        if let Ok(verdict) = self.environment.snapshot().policy.judge_request(&judged) {
            self.injected().extend(verdict.headers.into_iter().map(|(_, value)| value));
        }
    }

    fn injected(&self) -> MutexGuard<'_, Vec<HeaderValue>> {
        self.injected.lock().expect("nothing panics while it is held")
    }
}

impl HookTransport for Transport {
    type Body = Content;

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Content>, Failure> {
        self.note_injected(&request);
        self.egress.send(&self.environment, request).await.map_err(|denial| failure(&denial))
    }
}

fn destination(uri: &Uri) -> Option<Destination> {
    let authority = Authority::from_wire(uri.authority()?.as_str().as_bytes()).ok()?;
    Some(Destination { host: authority.host, port: authority.port.unwrap_or(443) })
}

/// What the origin is to blame for is another cause than what policy refuses.
fn failure(denial: &Denial) -> Failure {
    let cause = match denial.reason {
        Code::OriginDns
        | Code::OriginConnect
        | Code::OriginTls
        | Code::OriginProtocol
        | Code::OriginTimeout
        | Code::NotReady
        | Code::TooManyConnections
        | Code::CredentialTemporarilyUnavailable => Cause::Transport,
        _ => Cause::UrlRefused,
    };
    Failure::new(cause, format!("{}: {denial}", denial.reason))
}
