//! Who asks for what, how often, and how long did it take?

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;

use super::client::Client;
use super::*;

/// Enough to keep the rate while some of them wait for slow answers.
const CLIENTS: usize = 16;
/// No request may take longer.
const LONGEST: Duration = Duration::from_secs(5);

/// What a request is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Refused, at the door or inside a tunnel.
    Denied,
    /// The client leaves in the middle of a body.
    Aborted,
    WebSocket,
    Upload,
    Download,
    Slow,
    /// By a connection of its own.
    Fresh,
    /// In clear text, with an absolute target.
    Absolute,
    Socks,
    Http2,
    KeepAlive,
}

/// Of a hundred requests. They take turns in an order that mixes them.
const SHARES: [(Kind, u64); 11] = [
    (Kind::Denied, 10),
    (Kind::Aborted, 10),
    (Kind::WebSocket, 5),
    (Kind::Upload, 2),
    (Kind::Download, 2),
    (Kind::Slow, 1),
    (Kind::Fresh, 7),
    (Kind::Absolute, 8),
    (Kind::Socks, 8),
    (Kind::Http2, 20),
    (Kind::KeepAlive, 27),
];

/// What is done besides, and leaves lines without a number.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Rotation,
    ToolCall,
    /// Somebody asked whose environment is gone.
    Stranger,
}

/// The requests that are made, each with a number of its own.
pub(super) struct Load {
    rate: u64,
    lasts: Duration,
    began: Instant,
    /// Set at the end, and when somebody has met a fault.
    over: AtomicBool,
    next: AtomicU64,
    slots: AtomicU64,
    changes: [AtomicU64; 3],
    met: Mutex<Vec<Met>>,
}

/// What the requests of one kind met.
struct Met {
    kind: Kind,
    count: u64,
    total: Duration,
    longest: Duration,
}

impl Kind {
    fn of(slot: u64) -> Kind {
        // 37 and 100 have no divisor in common: every hundred slots have every place once.
        let mut place = slot * 37 % 100;
        for (kind, share) in SHARES {
            if place < share {
                return kind;
            }
            place -= share;
        }
        unreachable!("the shares are a hundred together")
    }
}

impl Load {
    pub(super) fn new(rate: u64, lasts: Duration) -> Load {
        let met =
            |(kind, _)| Met { kind, count: 0, total: Duration::ZERO, longest: Duration::ZERO };
        Load {
            rate,
            lasts,
            began: Instant::now(),
            over: AtomicBool::new(false),
            next: AtomicU64::new(0),
            slots: AtomicU64::new(0),
            changes: Default::default(),
            met: Mutex::new(SHARES.map(met).into()),
        }
    }

    /// Every client asks until the load is over.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        scene: &'scope Scene,
    ) {
        for _ in 0..CLIENTS {
            scope.spawn(move || {
                let _guard = self.ends_with_a_panic();
                let mut client = Client::new(scene, self);
                while let Some(kind) = self.slot() {
                    self.timed(kind, || client.ask(kind, self.number()));
                }
            });
        }
    }

    /// Waits for the next slot.
    fn slot(&self) -> Option<Kind> {
        let slot = self.slots.fetch_add(1, Ordering::Relaxed);
        let due = self.began + Duration::from_micros(slot * 1_000_000 / self.rate);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        (!self.is_over()).then(|| Kind::of(slot))
    }

    fn timed(&self, kind: Kind, ask: impl FnOnce()) {
        let asked = Instant::now();
        ask();
        let took = asked.elapsed();
        let mut met = self.met.lock().expect("nobody panics inside");
        let met = met.iter_mut().find(|met| met.kind == kind).expect("every kind is there");
        met.count += 1;
        met.total += took;
        met.longest = met.longest.max(took);
    }

    /// For one more request or refusal: no other has it.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// How many requests there were.
    pub(super) fn numbers(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Something other than a request was done.
    pub(super) fn did(&self, change: Change) {
        self.changes[change as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often it was.
    pub(super) fn times(&self, change: Change) -> u64 {
        self.changes[change as usize].load(Ordering::Relaxed)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.elapsed() >= self.lasts
    }

    /// Dropped by a panic, it ends the load for all: the test has failed.
    pub(super) fn ends_with_a_panic(&self) -> impl Drop + '_ {
        struct Guard<'a>(&'a AtomicBool);
        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                if thread::panicking() {
                    self.0.store(true, Ordering::Relaxed);
                }
            }
        }
        Guard(&self.over)
    }

    pub(super) fn check(&self) {
        for met in self.met.lock().expect("nobody panics inside").iter() {
            assert!(met.count > 0, "{:?}: nobody asked", met.kind);
            assert!(met.longest < LONGEST, "{:?}: {:?}", met.kind, met.longest);
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:<10} {:>9} {:>8} {:>8}", "kind", "requests", "mean ms", "most ms")?;
        for Met { kind, count, total, longest } in
            self.met.lock().expect("nobody panics inside").iter()
        {
            let mean = total.as_millis() / u128::from(*count).max(1);
            let (kind, longest) = (format!("{kind:?}"), longest.as_millis());
            write!(formatter, "\n{kind:<10} {count:>9} {mean:>8} {longest:>8}")?;
        }
        Ok(())
    }
}
