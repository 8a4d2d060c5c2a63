//! Does the gateway stay small, whole and quick while everything happens at once?
//!
//! For seconds as a test like the others; for longer, and with figures, by `tests/soak 20m`.

#[path = "soak/account.rs"]
mod account;
#[path = "soak/churn.rs"]
mod churn;
#[path = "soak/client.rs"]
mod client;
#[path = "soak/figures.rs"]
mod figures;
#[path = "soak/load.rs"]
mod load;
#[path = "soak/scene.rs"]
mod scene;

use std::env;
use std::thread;
use std::time::Instant;

use outgate_tests::network::isolated_for;
use outgate_tests::prelude::*;

use account::Account;
use figures::Figures;
use load::Load;
use scene::Scene;

/// How long it lasts, in seconds, and how many requests a second there are.
const SECONDS_VARIABLE: &str = "OUTGATE_SOAK_SECONDS";
const RATE_VARIABLE: &str = "OUTGATE_SOAK_RATE";
/// Unless the variables say otherwise: every kind of request comes some ten times.
const SECONDS: u64 = 12;
const RATE: u64 = 100;

/// The storm, and how many requests a second there are in it, if the machine can.
const STORM: Duration = Duration::from_secs(8);
const STORM_RATE: u64 = 500;

/// What starts, settles and is counted before and after.
const AROUND: Duration = Duration::from_secs(120);
/// Between two looks at the process.
const LOOK: Duration = Duration::from_secs(1);
/// Everything of the load is gone within this after its end.
const SETTLED: Duration = Duration::from_secs(10);

fn number(variable: &str, default: u64) -> u64 {
    let parse = |text: String| {
        text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not `{text}`"))
    };
    env::var(variable).map_or(default, parse)
}

#[test]
fn a_mixed_load_leaves_nothing_behind_and_every_request_has_its_one_line() {
    let lasts = Duration::from_secs(number(SECONDS_VARIABLE, SECONDS));
    isolated_for(lasts + AROUND, || {
        let mut scene = Scene::start(&world!());
        let mut figures = Figures::new(&scene.gateway, lasts);
        let load = Load::new(number(RATE_VARIABLE, RATE), lasts);
        thread::scope(|scope| {
            load.start(scope, &scene);
            churn::start(scope, &scene, &load, churn::OFTEN);
            scope.spawn(|| client::be_silent(&scene, &load));
            while !load.is_over() {
                thread::sleep(LOOK);
                figures.look(&scene.gateway, &load);
            }
        });
        let ended = Instant::now();
        let settled = wait_until(SETTLED, || figures.is_as_at_the_start(&scene.gateway));
        figures.look(&scene.gateway, &load);
        figures.say(&format!("settled after {:.1} s: {settled}", ended.elapsed().as_secs_f64()));
        let account = Account::of(&mut scene, &load);
        figures.say(&account.to_string());
        figures.say(&load.to_string());
        assert!(settled, "descriptors or tasks of the load are left");
        account.check();
        load.check();
        figures.check_memory();
    });
}

#[test]
fn changes_a_hundred_times_a_second_hold_no_request_up() {
    isolated_for(STORM + AROUND, || {
        let mut scene = Scene::start(&world!());
        let load = Load::new(STORM_RATE, STORM);
        thread::scope(|scope| {
            load.start(scope, &scene);
            churn::start(scope, &scene, &load, churn::STORM);
        });
        Account::of(&mut scene, &load).check();
        load.check();
    });
}
