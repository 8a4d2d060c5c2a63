//! What is known so far of one request or tunnel, and has it been written?

use std::net::IpAddr;
use std::time::Instant;

use http::{HeaderName, Method, Version};
use outgate_credentials::scrub::Place;
use outgate_policy::{CredentialId, Destination, EnvironmentId, Reason, Scheme};
use smallvec::SmallVec;

use super::AuditSink;
use super::line::{Kind, Line, PATH_BYTES, RecordId, printable};
use crate::ingress::Ingress;
use crate::upstream::Peer;

/// What a line says that nobody finished: its task was dropped, most often with a client's connection.
const BROKEN_OFF: &str = "the client left, or was cut off, before the end";

/// One audit line in the making. Finished by [`Record::finish`], else by dropping it.
pub(crate) struct Record {
    line: Option<Box<Line>>,
    sink: AuditSink,
    started: Instant,
}

/// A moment of an exchange whose time the line tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Milestone {
    /// A connection to the origin is established.
    Connected,
    /// Its TLS handshake is done.
    Secured,
    /// The head of the answer is there.
    Answered,
}

impl Record {
    pub(super) fn new(line: Box<Line>, sink: AuditSink) -> Record {
        Record { line: Some(line), sink, started: Instant::now() }
    }

    /// What the client asked for.
    pub(crate) fn asks(&mut self, method: &Method, path: &str) {
        self.edit(|line| {
            line.method = Some(method.clone());
            // The target of CONNECT has none.
            line.path = (!path.is_empty()).then(|| printable(path, PATH_BYTES));
        });
    }

    /// Where the client wants to go.
    pub(crate) fn goes_to(&mut self, destination: &Destination, scheme: Option<Scheme>) {
        self.edit(|line| {
            line.host = Some(destination.host.clone());
            line.port = Some(destination.port);
            line.scheme = scheme;
        });
    }

    /// Whose request it is.
    pub(crate) fn belongs_to(&mut self, environment: &EnvironmentId) {
        self.edit(|line| line.environment = Some(environment.clone()));
    }

    /// It was permitted by `entry` and carries these names of injected headers.
    pub(crate) fn permitted<'a>(
        &mut self,
        entry: usize,
        injected: impl Iterator<Item = &'a HeaderName>,
    ) {
        self.edit(|line| {
            line.entry = Some(entry);
            line.injected = injected.cloned().collect();
        });
    }

    /// Stored credentials that the request's entries name.
    pub(crate) fn uses_credentials(&mut self, ids: &[CredentialId]) {
        self.edit(|line| line.credentials = ids.iter().cloned().collect());
    }

    /// Values that were put there came back in its answer.
    pub(crate) fn reflected(&mut self, places: SmallVec<[Place; 1]>) {
        self.edit(|line| line.reflected = places);
    }

    /// The gateway refused it.
    pub(crate) fn refused(&mut self, reason: Reason) {
        self.edit(|line| {
            line.denied = true;
            line.reason = Some(reason);
            line.status = Some(reason.status());
        });
    }

    /// The gateway refused the rest of it, when an answer had begun.
    pub(crate) fn cut(&mut self, reason: Reason) {
        self.edit(|line| {
            line.denied = true;
            line.reason = Some(reason);
        });
    }

    /// It was permitted, but the origin could not be reached or did not answer.
    pub(crate) fn failed(&mut self, reason: Reason) {
        self.edit(|line| {
            line.reason = Some(reason);
            line.status = Some(reason.status());
        });
    }

    /// The status the client was given.
    pub(crate) fn answered(&mut self, status: u16) {
        self.edit(|line| line.status = Some(status));
    }

    /// What went wrong, in a sentence without a secret; the first one stays.
    pub(crate) fn error(&mut self, error: impl Into<String>) {
        self.edit(|line| {
            line.error.get_or_insert_with(|| printable(&error.into(), PATH_BYTES));
        });
    }

    /// Body bytes of a request, or all bytes of a spliced tunnel.
    pub(crate) fn moved(&mut self, up: u64, down: u64) {
        self.edit(|line| (line.bytes_up, line.bytes_down) = (up, down));
    }

    /// The address that was dialled, or asked of the upstream proxy.
    pub(crate) fn dialled(&mut self, peer: Peer) {
        self.edit(|line| line.address = peer.address());
    }

    /// What the client speaks.
    pub(crate) fn client_speaks(&mut self, version: Version) {
        self.edit(|line| line.http.client = Some(version));
    }

    /// What the origin speaks.
    pub(crate) fn origin_speaks(&mut self, version: Version) {
        self.edit(|line| line.http.origin = Some(version));
    }

    /// Notes that `milestone` is reached now.
    pub(crate) fn reached(&mut self, milestone: Milestone) {
        let passed = self.started.elapsed();
        self.edit(|line| match milestone {
            Milestone::Connected => line.times.connect = Some(passed),
            Milestone::Secured => line.times.tls = Some(passed),
            Milestone::Answered => line.times.first_byte = Some(passed),
        });
    }

    /// Writes the line.
    pub(crate) fn finish(mut self) {
        self.write();
    }

    /// Writes nothing: a tunnel whose requests each wrote their own line.
    pub(crate) fn discard(mut self) {
        self.line = None;
    }

    fn edit(&mut self, change: impl FnOnce(&mut Line)) {
        if let Some(line) = &mut self.line {
            change(line);
        }
    }

    fn write(&mut self) {
        if let Some(mut line) = self.line.take() {
            line.times.total = self.started.elapsed();
            self.sink.take(line);
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.edit(|line| {
            line.error.get_or_insert_with(|| BROKEN_OFF.to_owned());
        });
        self.write();
    }
}

/// What a record knows when it begins.
#[derive(Clone)]
pub(crate) struct Beginning {
    pub(crate) ingress: Ingress,
    pub(crate) client: Option<IpAddr>,
    pub(crate) environment: Option<EnvironmentId>,
}

impl Beginning {
    pub(super) fn line(self, kind: Kind, id: RecordId) -> Box<Line> {
        let mut line = Line::begun(kind, id, self.ingress.as_str());
        line.environment = self.environment;
        line.client = self.client;
        line
    }
}
