//! How does a refresh token, or a service account's key, become access tokens, early enough and one
//! call at a time?
//!
//! Every request that needs a token asks [`Minter::token`]. One of them makes the call, in a task of
//! its own that goes on when its client leaves: an answer may carry a new refresh token, and the old
//! one is worth nothing any more. The new one is on the disk before the access token is used.

mod answer;
mod assertion;
mod refresh;
mod turn;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use http::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};
use zeroize::Zeroizing;

pub(crate) use self::answer::{Granted, TokenError, read};
pub use self::answer::{MAX_ANSWER, TokenAnswer};
pub(crate) use self::assertion::{AssertionGrant, ServiceKey};
pub(crate) use self::refresh::RefreshGrant;
pub(crate) use self::turn::{Rotation, Turn};
use crate::credential::TokenUrl;
use crate::source::Files;

/// One call, from the look-up of the endpoint's name to the last byte of its answer.
const CALL: Duration = Duration::from_secs(15);
/// What a request waits for a token: a call that is under way, and one more.
const WAIT: Duration = Duration::from_secs(40);
/// Calls to one endpoint are at least this far apart, whatever they brought.
const APART: Duration = Duration::from_secs(1);
/// After failures in a row the next call is twice as far as the last, up to this.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);
/// An access token is replaced so long before its end, or at half its life if that is later.
const EARLY: Duration = Duration::from_secs(300);
/// And not used so shortly before its end, or in the last tenth of its life: clocks differ, and a
/// request takes its time.
const MARGIN: Duration = Duration::from_secs(30);
/// A token that an origin refused is replaced at once, but one got that way stays for so long: an
/// origin that refuses every token must not make a call of each request.
const AFTER_REFUSAL: Duration = Duration::from_secs(60);

/// A future of a trait object's method.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<TokenAnswer, String>> + Send + 'a>>;

/// How a form reaches a token endpoint: over verified TLS, to an address that may be dialled, and
/// without following redirects.
pub trait TokenTransport: Send + Sync + 'static {
    /// Posts `form` as `application/x-www-form-urlencoded`. The error is for the log, so nothing of
    /// the form or the answer is in it.
    fn post<'a>(&'a self, url: &'a TokenUrl, form: Zeroizing<String>) -> Answering<'a>;
}

/// What a call needs beside what the minter has.
pub(crate) struct Means {
    pub(crate) transport: Arc<dyn TokenTransport>,
    pub(crate) rotation: Arc<dyn Rotation>,
    /// How the files of values are read.
    pub(crate) files: Arc<Files>,
}

impl fmt::Debug for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Means")
    }
}

/// The access tokens of one credential.
#[derive(Debug)]
pub(crate) struct Minter {
    grant: Grant,
    token: ArcSwapOption<Token>,
    flight: Mutex<Flight>,
}

/// What an access token is given for.
#[derive(Debug)]
pub(crate) enum Grant {
    Refresh(RefreshGrant),
    Assertion(AssertionGrant),
}

#[derive(Debug)]
struct Token {
    header: HeaderValue,
    /// From when on the next one is got while this one is used.
    early: Instant,
    until: Instant,
    /// Until when a refusal by an origin means nothing.
    spared: Option<Instant>,
}

/// What only the one who makes the call has.
#[derive(Debug)]
struct Flight {
    /// Before this no call is made.
    not_before: Instant,
    failures: u32,
    failed: Option<TokenError>,
    /// The token that an origin refused.
    refused: bool,
}

impl Minter {
    pub(crate) fn new(grant: Grant) -> Minter {
        let flight =
            Flight { not_before: Instant::now(), failures: 0, failed: None, refused: false };
        Minter { grant, token: ArcSwapOption::empty(), flight: Mutex::new(flight) }
    }

    /// A header with a token that is good for a while.
    pub(crate) async fn token(
        self: &Arc<Minter>,
        means: &Arc<Means>,
    ) -> Result<HeaderValue, TokenError> {
        let now = Instant::now();
        if let Some(token) = self.token.load().as_ref().filter(|token| now < token.until) {
            if token.early <= now && self.flight.try_lock().is_ok() {
                drop(self.refresh(means));
            }
            return Ok(token.header.clone());
        }
        match timeout(WAIT, self.refresh(means)).await {
            Ok(Ok(outcome)) => outcome,
            // The runtime that the task ran on has ended.
            Ok(Err(_)) => Err(TokenError::Unreached("the gateway is stopping".to_owned())),
            Err(_) => Err(TokenError::Late(WAIT)),
        }
    }

    /// An origin refused this header's token: the next request gets another.
    pub(crate) async fn refused(&self, header: &HeaderValue) -> bool {
        let mut flight = self.flight.lock().await;
        let token = self.token.load_full();
        let Some(token) = token.filter(|token| token.header == header) else {
            // Another has taken its place already.
            return true;
        };
        if token.spared.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        self.token.store(None);
        flight.refused = true;
        true
    }

    /// The last call was answered by a no that stays.
    pub(crate) fn is_revoked(&self) -> bool {
        let flight = self.flight.try_lock();
        flight.is_ok_and(|flight| flight.failed.as_ref().is_some_and(TokenError::is_final))
    }

    fn refresh(
        self: &Arc<Minter>,
        means: &Arc<Means>,
    ) -> tokio::task::JoinHandle<Result<HeaderValue, TokenError>> {
        let (minter, means) = (Arc::clone(self), Arc::clone(means));
        tokio::spawn(async move { minter.fly(&means).await })
    }

    async fn fly(&self, means: &Means) -> Result<HeaderValue, TokenError> {
        let mut flight = self.flight.lock().await;
        let now = Instant::now();
        let token = self.token.load_full();
        if let Some(token) = token.filter(|token| now < token.early) {
            return Ok(token.header.clone());
        }
        if now < flight.not_before {
            if let Some(failed) = &flight.failed {
                return Err(failed.clone());
            }
            sleep_until(flight.not_before).await;
        }
        let outcome = self.call(means).await;
        let after = Instant::now();
        match outcome {
            Ok(Granted { header, lifetime, .. }) => {
                let spared = std::mem::take(&mut flight.refused).then_some(after + AFTER_REFUSAL);
                (flight.failures, flight.failed) = (0, None);
                flight.not_before = after + APART;
                self.keep(header.clone(), after, lifetime, spared);
                Ok(header)
            }
            Err(error) => {
                tracing::warn!(url = %self.grant, %error, "no access token");
                flight.failures = flight.failures.saturating_add(1);
                let back_off = APART * 2u32.saturating_pow(flight.failures.min(7) - 1);
                flight.not_before = after + back_off.min(LONGEST_BACK_OFF);
                flight.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    fn keep(&self, header: HeaderValue, got: Instant, lifetime: Duration, spared: Option<Instant>) {
        let until = got + lifetime - MARGIN.min(lifetime / 10);
        let early = got + lifetime - EARLY.min(lifetime / 2);
        self.token.store(Some(Arc::new(Token { header, early, until, spared })));
    }

    async fn call(&self, means: &Means) -> Result<Granted, TokenError> {
        match &self.grant {
            Grant::Refresh(grant) => grant.call(means).await,
            Grant::Assertion(grant) => grant.call(means).await,
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grant::Refresh(grant) => grant.token_url.fmt(f),
            Grant::Assertion(_) => f.write_str("the token_uri of the key file"),
        }
    }
}

/// Posts a form, and reads what comes back in time.
async fn ask(
    means: &Means,
    url: &TokenUrl,
    form: Zeroizing<String>,
) -> Result<Granted, TokenError> {
    let answer = timeout(CALL, means.transport.post(url, form))
        .await
        .map_err(|_| TokenError::Late(CALL))?
        .map_err(TokenError::Unreached)?;
    read(&answer)
}

#[cfg(test)]
mod tests;
