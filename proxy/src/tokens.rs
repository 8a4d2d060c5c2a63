//! How does the gateway ask a token endpoint for an access token?
//!
//! Not for any sandbox, so no environment's allowlist has a say; the operator's address rules have.
//! An address that may be dialled, TLS verified for the name, one request, no redirect, one bounded
//! answer. Connections are not kept: a token lasts for an hour.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderValue, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use outgate_certs::{CertsError, OriginRoots, OriginTls};
use outgate_credentials::{Answering, MAX_ANSWER, TokenAnswer, TokenTransport, TokenUrl};
use outgate_policy::{AddressRules, Destination, Scheme};
use tokio::task::JoinSet;
use zeroize::Zeroizing;

use crate::gateway::Gateway;
use crate::upstream::{Trail, handshake, reach};

/// The way to token endpoints.
pub struct TokenEndpoints {
    gateway: Weak<Gateway>,
    rules: ArcSwap<AddressRules>,
    tls: OriginTls,
}

impl TokenEndpoints {
    /// Dials what `rules` let it, and believes `roots`.
    ///
    /// # Errors
    /// There are no roots.
    pub fn new(
        gateway: &Arc<Gateway>,
        rules: AddressRules,
        roots: &OriginRoots,
    ) -> Result<TokenEndpoints, CertsError> {
        Ok(TokenEndpoints {
            gateway: Arc::downgrade(gateway),
            rules: ArcSwap::from_pointee(rules),
            tls: OriginTls::new(roots, &[b"http/1.1"])?,
        })
    }

    /// Other rules from now on.
    pub fn replace_rules(&self, rules: AddressRules) {
        self.rules.store(Arc::new(rules));
    }

    async fn ask(&self, url: &TokenUrl, form: Zeroizing<String>) -> Result<TokenAnswer, String> {
        let gateway = self.gateway.upgrade().ok_or("the gateway is stopping")?;
        let rules = self.rules.load_full();
        let limits = gateway.limits();
        let destination = Destination { host: url.host.clone(), port: url.port };
        let reached = reach(&gateway, &destination, &rules, &Trail::default()).await;
        let (stream, _) = reached.map_err(|error| error.to_string())?;
        let session = handshake(stream, &url.host, &self.tls, limits).await;
        let session = session.map_err(|error| error.to_string())?;

        let (mut sender, connection) = http1::Builder::new()
            .max_headers(limits.headers)
            .max_buf_size(limits.request_head_bytes)
            .handshake(TokioIo::new(session))
            .await
            .map_err(|error| error.to_string())?;
        // Its drop ends the connection, whatever becomes of this call.
        let mut driving = JoinSet::new();
        driving.spawn(connection);
        let answer = sender.send_request(request(url, &form)?).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|_| "the answer broke off or is too long".to_owned())?;
        Ok(TokenAnswer { status, body: Zeroizing::new(body.to_bytes().to_vec()) })
    }
}

impl TokenTransport for TokenEndpoints {
    fn post<'a>(&'a self, url: &'a TokenUrl, form: Zeroizing<String>) -> Answering<'a> {
        Box::pin(self.ask(url, form))
    }
}

fn request(url: &TokenUrl, form: &str) -> Result<Request<Full<Bytes>>, String> {
    let authority = url.destination().authority(Scheme::Https);
    let host = HeaderValue::try_from(authority).map_err(|error| error.to_string())?;
    Request::post(url.path.as_str())
        .header(header::HOST, host)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("outgate/", env!("CARGO_PKG_VERSION")))
        .header(header::CONNECTION, "close")
        .body(Full::from(form.as_bytes().to_vec()))
        .map_err(|error| error.to_string())
}
