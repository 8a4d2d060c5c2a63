//! What does Prometheus get to see?
//!
//! Requests are counted by the thread that writes audit lines, once each is written, so that
//! nothing is counted on the data path and both tell the same. Labels have few values, whatever
//! clients send: requests and tunnels are not told apart by environment, and what is told by
//! environment is made up for each answer from those that there are.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use metrics::{
    Counter, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram, with_local_recorder,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use outgate_policy::Reason;
use outgate_proxy::{Gateway, Tally};
use tokio::runtime::Handle;

const REQUESTS: &str = "outgate_requests_total";
const TUNNELS: &str = "outgate_tunnels_total";
const REFLECTED: &str = "outgate_reflected_total";
const BYTES: &str = "outgate_bytes_total";
const DURATION: &str = "outgate_request_duration_seconds";
const HOOKS: &str = "outgate_hooks_total";
const RELOADS: &str = "outgate_reloads_total";
const PROBLEMS: &str = "outgate_problems";
const ENVIRONMENTS: &str = "outgate_environments";
const CONNECTIONS: &str = "outgate_connections";
const TASKS: &str = "outgate_tasks";
const DNS: &str = "outgate_dns_queries_total";
const PLACES_TAKEN: &str = "outgate_audit_places_taken";
const PLACES: &str = "outgate_audit_places";

/// From an answer out of memory to the longest thought of a model.
const DURATIONS: [f64; 12] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 600.0];

/// Durations are kept one by one until they are sorted into the histogram.
const UNSORTED: u32 = 4096;

/// The counters of this process; cheap to clone.
#[derive(Clone)]
pub(crate) struct Metrics {
    recorder: Arc<PrometheusRecorder>,
    workers: Arc<OnceLock<Vec<Handle>>>,
}

/// Counts written lines.
pub(crate) struct Counting {
    recorder: Arc<PrometheusRecorder>,
    lines: HashMap<(bool, bool, Option<Reason>), Counter>,
    reflected: Counter,
    up: Counter,
    down: Counter,
    duration: Histogram,
    handle: PrometheusHandle,
    unsorted: u32,
}

impl Metrics {
    /// Nothing counted yet.
    pub(crate) fn new() -> Metrics {
        let builder = PrometheusBuilder::new().set_buckets(&DURATIONS);
        let recorder = builder.expect("there are buckets").build_recorder();
        with_local_recorder(&recorder, || {
            describe_counter!(REQUESTS, "Requests, by verdict and reason.");
            describe_counter!(TUNNELS, "Tunnels refused, spliced or ended without a request.");
            describe_counter!(REFLECTED, "Answers that injected values came back in.");
            describe_counter!(BYTES, "Bytes of bodies and spliced tunnels.");
            describe_histogram!(DURATION, "From a request's head to the end of its answer.");
            describe_counter!(HOOKS, "Handlers of hooks, by event, outcome and cause.");
            describe_counter!(RELOADS, "Readings of changed files, by outcome.");
            counter!(RELOADS, "outcome" => "success").absolute(0);
            counter!(RELOADS, "outcome" => "failure").absolute(0);
        });
        Metrics { recorder: Arc::new(recorder), workers: Arc::default() }
    }

    /// Whose tasks are counted, once they are there.
    pub(crate) fn of_workers(&self, workers: Vec<Handle>) {
        // A gateway starts once.
        let _ = self.workers.set(workers);
    }

    /// What counts written lines.
    pub(crate) fn counting(&self) -> Counting {
        let (reflected, up, down, duration) = with_local_recorder(&*self.recorder, || {
            let bytes = |direction| counter!(BYTES, "direction" => direction);
            (counter!(REFLECTED), bytes("up"), bytes("down"), histogram!(DURATION))
        });
        Counting {
            recorder: Arc::clone(&self.recorder),
            lines: HashMap::new(),
            reflected,
            up,
            down,
            duration,
            handle: self.recorder.handle(),
            unsorted: 0,
        }
    }

    /// Files were read again.
    pub(crate) fn reloaded(&self, problems: bool) {
        let outcome = if problems { "failure" } else { "success" };
        with_local_recorder(&*self.recorder, || {
            counter!(RELOADS, "outcome" => outcome).increment(1)
        });
    }

    /// The text for Prometheus.
    pub(crate) fn render(&self, gateway: &Gateway, problems: usize) -> String {
        let workers = self.workers.get().into_iter().flatten();
        let tasks = workers.map(|worker| worker.metrics().num_alive_tasks()).sum();
        self.recorder.handle().render() + &render_now(gateway, problems, tasks)
    }
}

impl Counting {
    /// Counts one line.
    pub(crate) fn count(&mut self, tally: &Tally) {
        let Tally { request, hook, denied, reason, reflected, bytes_up, bytes_down, lasted } =
            *tally;
        let recorder = &self.recorder;
        if let Some([event, outcome, cause]) = hook {
            with_local_recorder(&**recorder, || {
                counter!(HOOKS, "event" => event, "outcome" => outcome, "cause" => cause)
                    .increment(1);
            });
            return;
        }
        let line = self.lines.entry((request, denied, reason));
        line.or_insert_with(|| {
            let name = if request { REQUESTS } else { TUNNELS };
            let verdict = if denied { "deny" } else { "allow" };
            let reason = reason.map_or("none", Reason::code);
            with_local_recorder(
                &**recorder,
                || counter!(name, "verdict" => verdict, "reason" => reason),
            )
        })
        .increment(1);
        if reflected {
            self.reflected.increment(1);
        }
        self.up.increment(bytes_up);
        self.down.increment(bytes_down);
        if request {
            self.duration.record(lasted);
            self.unsorted += 1;
        }
        if self.unsorted == UNSORTED {
            self.handle.run_upkeep();
            self.unsorted = 0;
        }
    }
}

/// What is so now; nothing of it outlives the answer, so that an environment that is gone leaves
/// nothing behind.
fn render_now(gateway: &Gateway, problems: usize, tasks: usize) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    let environments = gateway.environments();
    let audit = gateway.audit();
    with_local_recorder(&recorder, || {
        describe_gauge!(PROBLEMS, "Files that can't be used as they are, see /readyz.");
        gauge!(PROBLEMS).set(number(problems));
        describe_gauge!(ENVIRONMENTS, "Environments.");
        gauge!(ENVIRONMENTS).set(number(environments.iter().len()));
        describe_gauge!(CONNECTIONS, "Open connections of clients, by environment.");
        for environment in environments.iter() {
            let id = environment.id().to_string();
            gauge!(CONNECTIONS, "environment" => id).set(number(environment.open_connections()));
        }
        describe_gauge!(TASKS, "Tasks that serve connections, on either side.");
        gauge!(TASKS).set(number(tasks));
        describe_counter!(DNS, "Questions of sandboxes for names, by the kind of the answer.");
        for (answer, count) in gateway.dns_answers_given() {
            counter!(DNS, "answer" => answer).absolute(count);
        }
        describe_gauge!(PLACES_TAKEN, "Open requests and tunnels, and unwritten audit lines.");
        gauge!(PLACES_TAKEN).set(number(audit.places_taken()));
        describe_gauge!(PLACES, "How many of them there may be.");
        gauge!(PLACES).set(number(audit.places()));
    });
    recorder.handle().render()
}

#[expect(clippy::cast_precision_loss, reason = "none of these numbers comes near 2^52")]
fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn tally(reason: Option<Reason>) -> Tally {
        let lasted = Duration::from_millis(20);
        let denied = reason.is_some();
        Tally {
            request: true,
            hook: None,
            denied,
            reason,
            reflected: reason.is_none(),
            bytes_up: 1,
            bytes_down: 10,
            lasted,
        }
    }

    #[test]
    fn counts_by_verdict_and_reason() {
        let metrics = Metrics::new();
        let mut counting = metrics.counting();
        for _ in 0..3 {
            counting.count(&tally(None));
        }
        counting.count(&tally(Some(Reason::DomainNotAllowed)));
        counting.count(&Tally { request: false, ..tally(Some(Reason::OriginDns)) });
        let text = metrics.recorder.handle().render();
        for line in [
            "outgate_requests_total{verdict=\"allow\",reason=\"none\"} 3",
            "outgate_requests_total{verdict=\"deny\",reason=\"domain_not_allowed\"} 1",
            "outgate_tunnels_total{verdict=\"deny\",reason=\"origin_dns\"} 1",
            "outgate_bytes_total{direction=\"up\"} 5",
            "outgate_bytes_total{direction=\"down\"} 50",
            "outgate_request_duration_seconds_bucket{le=\"0.01\"} 0",
            "outgate_request_duration_seconds_bucket{le=\"0.025\"} 4",
            "outgate_request_duration_seconds_count 4",
            "outgate_reloads_total{outcome=\"failure\"} 0",
        ] {
            assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn the_page_on_operating_tells_of_every_series() {
        let page = include_str!("../../docs/operating.md");
        for name in [
            REQUESTS,
            TUNNELS,
            BYTES,
            DURATION,
            HOOKS,
            RELOADS,
            PROBLEMS,
            ENVIRONMENTS,
            CONNECTIONS,
            TASKS,
            DNS,
            PLACES_TAKEN,
            PLACES,
        ] {
            assert!(page.contains(&format!("\n| `{name}` |")), "{name}");
        }
    }

    #[test]
    fn two_gateways_of_one_process_count_apart() {
        let (one, two) = (Metrics::new(), Metrics::new());
        one.reloaded(false);
        let success = |metrics: &Metrics, count: u32| {
            let line = format!("outgate_reloads_total{{outcome=\"success\"}} {count}");
            metrics.recorder.handle().render().contains(&line)
        };
        assert!(success(&one, 1) && success(&two, 0));
    }
}
