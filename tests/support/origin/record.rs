//! What is known of one connection to an origin?

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Bytes beyond are counted and not kept: big uploads are tests too.
const LONGEST: usize = 16 * 1024 * 1024;

/// What one connection received, while it lasts and after.
#[derive(Default)]
pub struct Record {
    /// Keeps no byte.
    forgetful: bool,
    raw: Mutex<Vec<u8>>,
    received: AtomicUsize,
    /// Where HTTP ended, after 101.
    upgraded_at: OnceLock<usize>,
    wire: OnceLock<Arc<Mutex<Vec<u8>>>>,
    handshake: OnceLock<Result<Handshake, String>>,
    ended: AtomicBool,
}

/// What the client of a TLS origin asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The name in its ClientHello.
    pub server_name: Option<String>,
    /// The protocol both agreed on.
    pub alpn: Option<String>,
    /// Whether it went on with an earlier session.
    pub resumed: bool,
}

impl Record {
    /// One that counts bytes and keeps none.
    pub(super) fn forgetful() -> Self {
        Self { forgetful: true, ..Self::default() }
    }

    /// The first 16 MiB of application bytes: inside TLS, after decryption.
    pub fn raw(&self) -> Vec<u8> {
        lock(&self.raw).clone()
    }

    /// How many application bytes came in all.
    pub fn received(&self) -> usize {
        self.received.load(Ordering::Relaxed)
    }

    /// The first 256 KiB as they came over TCP: the ClientHello and what follows.
    pub fn wire(&self) -> Vec<u8> {
        self.wire.get().map(|wire| lock(wire).clone()).unwrap_or_default()
    }

    /// The end of the TLS handshake, or the fault it ended with; `None` before, and without TLS.
    pub fn handshake(&self) -> Option<Result<Handshake, String>> {
        self.handshake.get().cloned()
    }

    /// Whether the origin is done with it.
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// The bytes that are HTTP.
    pub(super) fn http(&self) -> Vec<u8> {
        let mut bytes = self.raw();
        bytes.truncate(self.upgraded_at.get().copied().unwrap_or(usize::MAX));
        bytes
    }

    pub(super) fn add(&self, bytes: &[u8]) {
        self.received.fetch_add(bytes.len(), Ordering::Relaxed);
        if self.forgetful {
            return;
        }
        let mut raw = lock(&self.raw);
        let room = LONGEST.saturating_sub(raw.len());
        raw.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// What comes after the first `length` bytes is not HTTP.
    pub(super) fn upgrade_at(&self, length: usize) {
        // A second upgrade on one connection changes nothing.
        let _ = self.upgraded_at.set(length);
    }

    pub(super) fn watch_wire(&self, wire: Arc<Mutex<Vec<u8>>>) {
        let _ = self.wire.set(wire);
    }

    pub(super) fn shook_hands(&self, outcome: Result<Handshake, String>) {
        let _ = self.handshake.set(outcome);
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

fn lock(bytes: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    bytes.lock().expect("nobody panics while holding bytes")
}
