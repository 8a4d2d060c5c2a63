//! How long may anything wait, and how much may anything hold?
//!
//! Every deadline and every bound of the data path, each with the reason for its number. In the
//! operator's file durations are texts with a unit (`"10s"`, `"250ms"`, `"10min"`), sizes are
//! bytes.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

use crate::names::MOST_NAMES;

/// Deadlines and bounds, `[limits]` in the operator's file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// From CONNECT's answer (or an accepted socket) to the end of the client's TLS handshake: a
    /// client on a slow link needs two round trips, an idle one holds a socket for nothing.
    #[serde(deserialize_with = "duration")]
    pub client_handshake: Duration,
    /// From the first byte of a request head to its last.
    #[serde(deserialize_with = "duration")]
    pub request_head: Duration,
    /// Size of a request head: cookies and signed URLs fit, a flood does not.
    #[serde(deserialize_with = "buffer")]
    pub request_head_bytes: usize,
    /// Header lines of a request or an answer.
    #[serde(deserialize_with = "positive")]
    pub headers: usize,
    /// From the first SYN to an established connection, over all addresses of a name; through an
    /// upstream proxy, to its word that there is one.
    #[serde(deserialize_with = "duration")]
    pub connect: Duration,
    /// Head start of one address before the next is tried beside it (RFC 8305 §5).
    #[serde(deserialize_with = "duration")]
    pub happy_eyeballs: Duration,
    /// The TLS handshake with an origin.
    #[serde(deserialize_with = "duration")]
    pub origin_handshake: Duration,
    /// A silent client connection outside a tunnel, and an unused upstream connection: most
    /// origins hang up earlier.
    #[serde(deserialize_with = "duration")]
    pub idle_keep_alive: Duration,
    /// A silent intercepted tunnel: pools of HTTP clients keep theirs for minutes.
    #[serde(deserialize_with = "duration")]
    pub idle_tunnel: Duration,
    /// A silent upgraded or spliced tunnel: WebSockets ping rarely, a shell waits for its person.
    #[serde(deserialize_with = "duration")]
    pub idle_upgraded: Duration,
    /// From the end of a request to the head of its answer: models think for minutes.
    #[serde(deserialize_with = "duration")]
    pub response_head: Duration,
    /// How long an upload that asked `Expect: 100-continue` waits for the origin's word before it
    /// is sent anyway (RFC 9110 §10.1.1).
    #[serde(deserialize_with = "duration")]
    pub continue_wait: Duration,
    /// A body in which values take the place of placeholders, whole in memory so that its length
    /// is known and nothing of it is sent if it is refused: a prompt with a picture fits. A longer
    /// one is searched as it streams.
    #[serde(deserialize_with = "positive")]
    pub body_buffer_bytes: usize,
    /// All such bodies of one environment at a time, and unfinished texts of its WebSockets; a body
    /// that finds no room is searched as it streams, a text is refused. Its clients could fill the machine's memory otherwise.
    #[serde(deserialize_with = "positive")]
    pub body_buffers_bytes: usize,
    /// How long such a body of unknown length may pause before it is sent as it comes: its client
    /// may be waiting for an answer to what it has said so far.
    #[serde(deserialize_with = "duration")]
    pub body_pause: Duration,
    /// A text message of a WebSocket in which placeholders are looked for: it can't be sent before
    /// it is whole.
    #[serde(deserialize_with = "positive")]
    pub websocket_message_bytes: usize,
    /// Client connections of one environment at a time.
    #[serde(deserialize_with = "positive")]
    pub connections: usize,
    /// Client connections that have not said yet whose they are, over all environments: they hold
    /// a descriptor and belong to nobody.
    #[serde(deserialize_with = "positive")]
    pub strangers: usize,
    /// HTTP/2 streams of one connection at a time, on either leg.
    #[serde(deserialize_with = "positive")]
    pub streams: usize,
    /// HTTP/2 streams of one environment at a time, over all connections of its clients. Each may
    /// hold a connection of its own to an origin of HTTP/1.1, and 400 KiB of what is not read on:
    /// without a bound `streams` times as much as the same connections of HTTP/1.1.
    #[serde(deserialize_with = "positive")]
    pub environment_streams: usize,
    /// Look-ups and connections to origins that are in the making, of one environment at a time: each
    /// may take several sockets for as long as nobody answers. One more waits its turn.
    #[serde(deserialize_with = "positive")]
    pub connecting: usize,
    /// The body of a request that `aws_sigv4` has to hash before it is sent: above it clients send in
    /// parts, or say the hash themselves.
    #[serde(deserialize_with = "positive")]
    pub hashed_body: usize,
    /// All such bodies of one environment at a time: what more there is waits.
    #[serde(deserialize_with = "positive")]
    pub hashed_bodies: usize,
    /// What answers of one environment that are scrubbed may need at a time to be decompressed: a
    /// client that stops reading holds 16 MiB with each in `br`, 8 with `zstd`, and some 100 KiB
    /// with `gzip`, which is not counted.
    #[serde(deserialize_with = "positive")]
    pub decompression_bytes: usize,
    /// Unused upstream connections kept for one environment.
    pub idle_upstream: usize,
    /// One look-up of a name, with all its retries.
    #[serde(deserialize_with = "duration")]
    pub dns: Duration,
    /// How long a request waits for room in the audit sink before it is refused.
    #[serde(deserialize_with = "duration")]
    pub audit_wait: Duration,
    /// From SIGTERM until what still runs is cut.
    #[serde(deserialize_with = "duration")]
    pub drain: Duration,
    /// Leaves kept in memory: about 2 KiB each.
    #[serde(deserialize_with = "positive")]
    pub leaves: usize,
    /// Handshakes a second that are completed only to say why a name is refused; beyond it the
    /// client gets an alert.
    pub refused_handshakes_per_second: u32,
    /// Names of one environment that its DNS keeps an address for, at most 130,815: more than a
    /// browser asks for in a day, and under 8 MiB if each is as long as a name can be.
    #[serde(deserialize_with = "names")]
    pub names: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            client_handshake: Duration::from_secs(10),
            request_head: Duration::from_secs(30),
            request_head_bytes: 64 << 10,
            headers: 100,
            connect: Duration::from_secs(10),
            happy_eyeballs: Duration::from_millis(250),
            origin_handshake: Duration::from_secs(10),
            idle_keep_alive: Duration::from_secs(120),
            idle_tunnel: Duration::from_secs(600),
            idle_upgraded: Duration::from_secs(3600),
            response_head: Duration::from_secs(600),
            continue_wait: Duration::from_secs(1),
            body_buffer_bytes: 1 << 20,
            body_buffers_bytes: 256 << 20,
            body_pause: Duration::from_secs(2),
            websocket_message_bytes: 1 << 20,
            connections: 4096,
            strangers: 1024,
            streams: 100,
            environment_streams: 4096,
            connecting: 512,
            hashed_body: 64 << 20,
            hashed_bodies: 256 << 20,
            decompression_bytes: 256 << 20,
            idle_upstream: 256,
            dns: Duration::from_secs(5),
            audit_wait: Duration::from_secs(1),
            drain: Duration::from_secs(30),
            leaves: 4096,
            refused_handshakes_per_second: 50,
            names: 16_384,
        }
    }
}

/// What is read and thrown away after a last answer, so that the client gets to read it: closing a
/// socket with unread input resets the connection.
pub(crate) const LINGER_BYTES: usize = 256 << 10;
/// How long that may take.
pub(crate) const LINGER: Duration = Duration::from_secs(2);
/// A method: the longest that is registered has 17 letters.
pub(crate) const METHOD_BYTES: usize = 32;
/// RFC 9113 §6.9.1: the codec panics beyond it.
pub(crate) const HTTP2_MOST_WINDOW: u32 = (1 << 31) - 1;
/// How often a silent HTTP/2 peer is asked whether it still lives.
pub(crate) const HTTP2_PING: Duration = Duration::from_secs(30);
/// And how long it may take to say so.
pub(crate) const HTTP2_PONG: Duration = Duration::from_secs(20);
/// A DNS client's silence on a connection, and what it may take to send a question or to take an
/// answer: a few seconds (RFC 7766 §6.2.3), since it may connect again whenever it likes.
pub(crate) const DNS_IDLE: Duration = Duration::from_secs(10);
/// What an upstream proxy may say before the tunnel is open: a status line and a few headers.
pub(crate) const PROXY_ANSWER_BYTES: usize = 8 << 10;
/// Gateways that a tunnel may come through: one behind the other is a plan, more are a loop.
pub(crate) const MOST_HOPS: usize = 8;
/// Interim (1xx) answers of one request: origins send one or two, a flood is an attack.
pub(crate) const INTERIM_ANSWERS: u32 = 16;
/// Compressed answers are scrubbed in pieces of this size.
pub(crate) const DECODING_PIECE: usize = 32 << 10;
/// What is read for one: more can come to much work also where it comes to little text.
pub(crate) const DECODING_FEED: usize = 8 << 10;
/// Work in one go, before other connections have a turn, in bytes of text: a few milliseconds.
pub(crate) const DECODING_AT_ONCE: u64 = 2 << 20;
/// What a byte that is read counts for in it: tables, and blocks without content.
pub(crate) const DECODING_PER_BYTE: u64 = 16;
/// What beginning another member or frame counts for: its state is made anew.
pub(crate) const DECODING_BEGINNING: u64 = 4 << 10;
/// Bytes in a row that come to nothing: flushes are a few, and skippable frames are short.
pub(crate) const DECODING_SILENCE: u64 = 1 << 20;
/// Codings one inside the other: two happen by mistake, more are an attack.
pub(crate) const MOST_CODINGS: usize = 2;
/// What a compressed answer may come to for each of its bytes: more than gzip can do (1032).
pub(crate) const DECODED_PER_BYTE: u64 = 1100;
/// What it may come to in any case: a short one says little about its ratio.
pub(crate) const DECODED_AT_LEAST: u64 = 16 << 20;
/// Windows of zstd up to 8 MiB, as RFC 9659 §3 has it for HTTP.
pub(crate) const ZSTD_WINDOW_LOG: u32 = 23;
/// And of brotli up to 16 MiB (RFC 7932 §9.1).
pub(crate) const BROTLI_WINDOW_LOG: u32 = 24;

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = || {
        de::Error::custom(format!(
            "`{text}` is not a duration: write a number and a unit, such as \"10s\", \"250ms\" or \"10min\""
        ))
    };
    let signed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    match Duration::try_from(signed) {
        Ok(length) if !length.is_zero() => Ok(length),
        _ => Err(wrong()),
    }
}

fn positive<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    match usize::deserialize(from)? {
        0 => Err(de::Error::custom("0 would refuse everything: write 1 or more")),
        bound => Ok(bound),
    }
}

/// The synthetic ranges have no more addresses.
fn names<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    match positive(from)? {
        many if many > MOST_NAMES as usize => {
            Err(de::Error::custom(format!("write {MOST_NAMES} or fewer")))
        }
        bound => Ok(bound),
    }
}

/// hyper's buffers can't be made smaller than 8 KiB.
fn buffer<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    match usize::deserialize(from)? {
        small if small < 8 << 10 => Err(de::Error::custom("write 8192 or more bytes")),
        bound => Ok(bound),
    }
}
