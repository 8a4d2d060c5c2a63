//! Does anybody notice that the policy is changed a hundred times a second?

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use outgate_tests::network::isolated_for;

use super::*;

/// How long it goes on.
const STORM: Duration = Duration::from_secs(10);
/// Between two changes.
const PAUSE: Duration = Duration::from_millis(10);
/// No request may take longer.
const LONGEST: Duration = Duration::from_secs(5);

/// What one client met.
#[derive(Default)]
struct Met {
    answered: usize,
    longest: Duration,
}

impl Met {
    fn ask(&mut self, ask: impl FnOnce() -> u16) {
        let asked = Instant::now();
        assert_eq!(ask(), 200);
        self.answered += 1;
        self.longest = self.longest.max(asked.elapsed());
    }
}

/// Asks on one connection until `over`.
fn keep_asking(gateway: &Gateway, number: usize, over: &AtomicBool) -> Met {
    let get = GET.replace(OK, API);
    let mut met = Met::default();
    let http2 = gateway.http2(API).connect();
    let mut tunnel = tunnel(gateway, API);
    while !over.load(Ordering::Relaxed) {
        match number % 3 {
            0 => met.ask(|| http2.get("/").status),
            1 => met.ask(|| tunnel.exchange(&get).status),
            _ => met.ask(|| {
                let mut fresh = self::tunnel(gateway, API);
                fresh.exchange(&get).status
            }),
        }
    }
    met
}

#[test]
fn a_hundred_reloads_a_second_fail_no_request_and_delay_none() {
    isolated_for(Duration::from_secs(120), || {
        let world = world!();
        let _api = world.https(API).start();
        let gateway = world.gateway(allowing(&[API]));
        let over = AtomicBool::new(false);
        let met = thread::scope(|scope| {
            let clients: Vec<_> = (0..6)
                .map(|number| {
                    let (gateway, over) = (&gateway, &over);
                    scope.spawn(move || keep_asking(gateway, number, over))
                })
                .collect();
            let began = Instant::now();
            let mut round = 0_usize;
            while began.elapsed() < STORM {
                // Good ones, and now and then a bad one.
                match round % 10 {
                    9 => gateway.set_environment_text("{\"network\": {"),
                    odd if odd % 2 == 1 => gateway.set_environment(&allowing(&[API, OK])),
                    _ => gateway.set_environment(&allowing(&[API])),
                }
                gateway.reload();
                round += 1;
                thread::sleep(PAUSE);
            }
            over.store(true, Ordering::Relaxed);
            let join =
                |client: thread::ScopedJoinHandle<'_, Met>| client.join().expect("200 always");
            clients.into_iter().map(join).collect::<Vec<_>>()
        });
        for met in met {
            assert!(met.answered > 0 && met.longest < LONGEST, "{:?}", met.longest);
        }
        let reloads = ["success", "failure"].map(|outcome| {
            gateway.metric(&format!("outgate_reloads_total{{outcome=\"{outcome}\"}}"))
        });
        assert!(reloads[0] > 100.0 && reloads[1] > 1.0, "{reloads:?}");

        gateway.set_environment(&allowing(&[OK]));
        wait_admission(&gateway, API, false);
        assert!(wait_until(SOON, || gateway.problems().is_empty()));
    });
}
