//! Who is attacked, and who must not notice?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use outgate_tests::prelude::*;

pub(crate) const NAME: &str = "api.example.com";
pub(crate) const OTHER: &str = "a.ok.example.test";

/// A sound request without a body.
pub(crate) const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", NAME), (":path", "/")];

/// Memory that an attack may take for a while: far less than it sends.
pub(crate) const ROOM_KIB: u64 = 32 << 10;

/// Processor time that it may take: the program of tests is not optimised.
const MOST_TIME: Duration = Duration::from_secs(8);

/// A gateway with two environments: one is attacked, the other's requests go on.
pub(crate) struct Scene {
    pub(crate) gateway: Gateway,
    other: Origin,
    memory: u64,
    time: Duration,
}

impl Scene {
    pub(crate) fn start(world: &World) -> Self {
        Self::limited(world, "")
    }

    /// With these limits.
    pub(crate) fn limited(world: &World, limits: &str) -> Self {
        let other = world.https(OTHER).start();
        let environment = |id: &str, name: &str| json!({"environment_id": id, "network": {"allowlist": [{"domain": name}]}});
        let gateway = world
            .gateway_builder()
            .environment(&environment("attacked", NAME))
            .environment(&environment("bystander", OTHER))
            .configuration(&format!(
                "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:7001\"\n\
                 environment = \"attacked\"\n[[listener]]\nkind = \"explicit\"\n\
                 bind = \"127.0.0.1:7002\"\nenvironment = \"bystander\"\n[limits]\n{limits}"
            ))
            .listeners_from_configuration()
            .start();
        let (memory, time) = (gateway.resident_kib(), gateway.processor_time());
        Self { gateway, other, memory, time }
    }

    /// A client of raw frames that is about to attack.
    pub(crate) fn attacker(&self) -> FrameClient {
        self.gateway.frames(NAME)
    }

    /// A bystander that asks again and again until it is told to stop.
    pub(crate) fn bystander(&self) -> Bystander {
        let proxy = "127.0.0.1:7002".parse().expect("an address");
        let mut client = RawClient::connect(proxy, self.gateway.ca())
            .connect_tunnel(&format!("{OTHER}:443"))
            .tls(&Hello::to(OTHER));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut slowest = Duration::ZERO;
            while !stopped.load(Ordering::Relaxed) {
                let started = Instant::now();
                let answer = client.exchange(format!("GET / HTTP/1.1\r\nHost: {OTHER}\r\n\r\n"));
                assert_eq!(answer.status, 200);
                slowest = slowest.max(started.elapsed());
                thread::sleep(Duration::from_millis(20));
            }
            slowest
        });
        Bystander { stop, thread }
    }

    /// What the attack cost so far stays within bounds.
    pub(crate) fn assert_bounded(&self, what: &str) {
        let memory = self.gateway.resident_kib().saturating_sub(self.memory);
        let time = self.gateway.processor_time().saturating_sub(self.time);
        assert!(memory < ROOM_KIB, "{what}: {memory} KiB");
        assert!(time < MOST_TIME, "{what}: {time:?} of processor time");
    }

    /// The lines that are not the bystander's.
    pub(crate) fn audit(mut self) -> Vec<serde_json::Value> {
        assert!(self.other.connections() <= 1);
        let mut audit = self.gateway.final_audit();
        audit.retain(|line| line["environment_id"] == "attacked");
        audit
    }
}

pub(crate) struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Bystander {
    /// All its requests were answered, each soon.
    pub(crate) fn assert_undisturbed(self) {
        self.stop.store(true, Ordering::Relaxed);
        let slowest = self.thread.join().expect("every request is answered");
        assert!(slowest < Duration::from_secs(2), "one request took {slowest:?}");
    }
}
