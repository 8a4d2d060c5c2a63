//! `outgate serve`: bind all, say where, serve, drain.

use outgate_proxy::Resolver;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::app::{App, Running};
use crate::cli::ServeArgs;
use crate::config::Settings;
use crate::console::say;
use crate::failure::Failure;
use crate::process;
use crate::reload::{Reread, any_may_be_named};
use crate::supply::Keeping;
use crate::surroundings::Surroundings;

/// Serves until SIGTERM or SIGINT, then drains; a second one stops at once.
pub(crate) fn run(args: &ServeArgs, surroundings: &Surroundings) -> Result<(), Failure> {
    process::raise_descriptor_limit();
    let settings = Settings::resolve(args, surroundings).map_err(Failure::input)?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::start)?;
    runtime.block_on(async {
        // Before anybody can know of us: a signal right after the ready line must be seen.
        let signals = Signals::listen()?;
        let resolver = Resolver::system(&settings.limits);
        let keeping = Keeping::new(&settings, args.operator.config.as_deref(), surroundings);
        let (args, surroundings) = (args.clone(), surroundings.clone());
        let reread = move || Settings::resolve(&args, &surroundings);
        let reread = Reread {
            settings: Box::new(reread),
            watch: true,
            believable: Box::new(|| Ok(())),
            may_name: any_may_be_named(),
        };
        let app = App::bind(settings, reread, resolver)?;
        let ready = serde_json::to_string(&app.ready()).map_err(Failure::start)?;
        let mut running = app.start()?;
        running.supply(keeping)?;
        say(ready)?;
        until_stopped(running, signals).await
    })
}

/// Drains at the first signal, stops at the second, and waits for the end of everything.
pub(crate) async fn until_stopped(
    mut running: Running,
    mut signals: Signals,
) -> Result<(), Failure> {
    let reloading = running.reloading();
    tokio::select! {
        () = signals.stop(&reloading) => tracing::info!("draining; a second signal stops at once"),
        () = running.ended() => {
            running.join()?;
            return Err(Failure::start("no listener could be served; the log says why"));
        }
    }
    running.drain();
    tokio::select! {
        () = running.ended() => {}
        () = signals.stop(&reloading) => {
            tracing::warn!("stopping at once");
            running.cut();
        }
    }
    running.join()
}

/// The signals that a gateway minds.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Catches them from now on; needs a runtime.
    pub(crate) fn listen() -> Result<Signals, Failure> {
        let caught = |kind| signal(kind).map_err(Failure::start);
        Ok(Signals {
            terminate: caught(SignalKind::terminate())?,
            interrupt: caught(SignalKind::interrupt())?,
            hangup: caught(SignalKind::hangup())?,
        })
    }

    /// The next SIGTERM or SIGINT; meanwhile SIGHUP asks `reloading` to.
    async fn stop(&mut self, reloading: &Notify) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                // Many at once are one.
                _ = self.hangup.recv() => reloading.notify_one(),
            }
        }
    }
}
