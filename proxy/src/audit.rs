//! What happened to each request and each tunnel?
//!
//! One JSON line for each, written exactly once. A [`Record`] begins before the request is judged,
//! and finishing it can neither fail nor wait: when the sink is full it is the next request that
//! waits. Dropping a record finishes it too, with what is known.

mod line;
mod record;
mod sink;
mod tally;

pub use self::line::HookOutcome;
pub(crate) use self::record::{Beginning, Milestone, Record};
pub use self::sink::{AuditSink, AuditWriter, CredentialChange, SinkFull};
pub use self::tally::Tally;
