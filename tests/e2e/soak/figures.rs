//! How much of the machine does the gateway hold, over time?

use std::fs::{self, OpenOptions};
use std::io::Write;

use super::load::Load;
use super::*;

/// A file that the table is written to as well, row by row.
const TABLE_VARIABLE: &str = "OUTGATE_SOAK_TABLE";
/// Rows that the table has at most, about.
const ROWS: u32 = 40;
/// Until pools, caches and the allocator have what they need.
const WARM_UP: Duration = Duration::from_secs(120);
/// From this on the growth after the warm-up can be told from noise.
const LONG: Duration = Duration::from_secs(600);
/// What a long run may grow, in MiB an hour, beyond what may be chance.
const GROWTH: f64 = 1.0;
/// What a short run may hold in the end beyond what it began with, in MiB. Most of it is code that
/// runs for the first time, and the buffers of one burst.
const BOUND: f64 = 48.0;
/// Memory is compared by the medians of as long.
const BLOCK: usize = 60;

/// The resolver keeps a task for each protocol that it has spoken.
const OF_THE_RESOLVER: f64 = 2.0;

/// What was seen, once a second.
pub(super) struct Figures {
    lasts: Duration,
    descriptors: usize,
    tasks: f64,
    resident: Vec<f64>,
    rows: u32,
}

impl Figures {
    /// Of a gateway that nobody has asked for anything yet.
    pub(super) fn new(gateway: &Gateway, lasts: Duration) -> Figures {
        let figures = Figures {
            lasts,
            descriptors: gateway.descriptors(),
            tasks: gateway.metric("outgate_tasks"),
            resident: vec![mebibytes(gateway.resident_kib())],
            rows: 0,
        };
        figures.say(&format!(
            "{:>8} {:>10} {:>8} {:>8} {:>12} {:>8} {:>8} {:>12}",
            "seconds",
            "requests",
            "RSS MiB",
            "of own",
            "descriptors",
            "threads",
            "tasks",
            "connections"
        ));
        figures.row(gateway, 0, 0);
        figures
    }

    pub(super) fn look(&mut self, gateway: &Gateway, load: &Load) {
        self.resident.push(mebibytes(gateway.resident_kib()));
        let elapsed = load.elapsed();
        if elapsed < self.lasts * self.rows / ROWS && elapsed < self.lasts {
            return;
        }
        self.rows += 1;
        self.row(gateway, elapsed.as_secs(), load.numbers());
    }

    fn row(&self, gateway: &Gateway, seconds: u64, requests: u64) {
        self.say(&format!(
            "{seconds:>8} {requests:>10} {:>8.1} {:>8.1} {:>12} {:>8} {:>8} {:>12}",
            mebibytes(gateway.resident_kib()),
            mebibytes(gateway.anonymous_kib()),
            gateway.descriptors(),
            threads(gateway),
            gateway.metric("outgate_tasks"),
            gateway.metric("outgate_connections{environment=\"soak\"}"),
        ));
    }

    pub(super) fn is_as_at_the_start(&self, gateway: &Gateway) -> bool {
        let tasks = gateway.metric("outgate_tasks");
        gateway.descriptors() <= self.descriptors && tasks <= self.tasks + OF_THE_RESOLVER
    }

    #[expect(clippy::print_stdout, reason = "the figures are what a long run is for")]
    pub(super) fn say(&self, text: &str) {
        println!("{text}");
        if let Some(path) = env::var_os(TABLE_VARIABLE) {
            let table = OpenOptions::new().append(true).create(true).open(path);
            writeln!(table.expect("the table can be written"), "{text}").expect("it takes all");
        }
    }

    pub(super) fn check_memory(&self) {
        let (first, last) = (self.resident[0], self.resident[self.resident.len() - 1]);
        if self.lasts < LONG {
            self.say(&format!("RSS: {first:.1} MiB at first, {last:.1} MiB in the end"));
            return assert!(last - first < BOUND, "{:.1} MiB more than at first", last - first);
        }
        let warm = usize::try_from(WARM_UP.as_secs()).expect("minutes");
        let medians: Vec<f64> = self.resident[warm..].chunks_exact(BLOCK).map(median).collect();
        let (slope, error) = slope(&medians);
        self.say(&format!(
            "RSS: {first:.1} MiB at first, {:.1} MiB after the warm-up, {last:.1} MiB in the end; \
             since the warm-up {slope:+.2} MiB/h, standard error {error:.2}",
            self.resident[warm],
        ));
        // Twice the error is chance in one run of twenty.
        assert!(slope - 2.0 * error < GROWTH, "it grows by {slope:.2} MiB an hour");
    }
}

/// The slope of a line through values that are a minute apart, an hour, and its standard error.
fn slope(values: &[f64]) -> (f64, f64) {
    let times: Vec<f64> =
        (0_u32..).zip(values).map(|(minute, _)| f64::from(minute) / 60.0).collect();
    let count = f64::from(u32::try_from(values.len()).expect("few"));
    let mean = |of: &[f64]| of.iter().sum::<f64>() / count;
    let (middle, level) = (mean(&times), mean(values));
    let pairs = || times.iter().zip(values).map(|(time, value)| (time - middle, value - level));
    let spread: f64 = pairs().map(|(time, _)| time * time).sum();
    let slope = pairs().map(|(time, value)| time * value).sum::<f64>() / spread;
    let rest: f64 = pairs().map(|(time, value)| (value - slope * time).powi(2)).sum();
    (slope, (rest / (count - 2.0) / spread).sqrt())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// In MiB.
fn mebibytes(kibibytes: u64) -> f64 {
    f64::from(u32::try_from(kibibytes).expect("it is no giant")) / 1024.0
}

fn threads(gateway: &Gateway) -> usize {
    fs::read_dir(format!("/proc/{}/task", gateway.pid())).expect("it runs, and is ours").count()
}
