//! May this tool call run? Its handlers are asked one after the other until one denies.
//!
//! A handler that gives no answer allows, unless its author wrote `"on_failure": "deny"`; either
//! way it is in the answer's outcomes and in the log.

use std::time::Duration;

use outgate_policy::EnvironmentId;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::command::{self, Spawner};
use crate::decision::{self, Decision};
use crate::event::Event;
use crate::hook_set::{Action, Group, GroupState, Handler, HookSet, OnFailure, Phase};
use crate::http::{self, HookTransport};
use crate::outcome::{Answer, Cause, Ending, Failure, Outcome, Verdict};
use crate::reason::Reason;

/// Runs hooks of one environment, so many handlers at a time.
#[derive(Debug)]
pub struct Engine {
    running: Semaphore,
    /// Room for waiting events, in pieces of [`PIECE`].
    room: Semaphore,
}

/// The least that an event counts for, whatever its size: its run holds more than its text.
const PIECE: usize = 64 << 10;

/// One run: which event of which environment, and the ways out of the library.
pub struct Run<'r, S, T> {
    /// Names the run.
    pub id: String,
    /// Whose event it is.
    pub environment: &'r EnvironmentId,
    /// Before or after the call.
    pub phase: Phase,
    /// The call.
    pub event: &'r Event,
    /// Where commands run.
    pub spawner: &'r S,
    /// How URLs are called.
    pub transport: &'r T,
    /// Told of each outcome once, as soon as it is there; also of a run that is dropped.
    pub observe: &'r (dyn Fn(&Outcome) + Sync),
}

/// As many events wait as may: the call is not approved, and the runtime may ask again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many tool calls wait for their hooks; ask again")]
pub struct Busy;

impl Engine {
    /// Handlers of one environment at a time: each is a few processes.
    pub const HANDLERS: usize = 8;

    /// What the events of one environment hold together: a thousand small ones, or eight of the
    /// largest.
    pub const ROOM: usize = 64 << 20;

    /// An engine with these bounds, of handlers and of bytes.
    pub fn new(handlers: usize, room: usize) -> Engine {
        Engine { running: Semaphore::new(handlers), room: Semaphore::new(room / PIECE) }
    }

    /// Asks every handler that is concerned.
    pub async fn run<S: Spawner, T: HookTransport>(
        &self,
        hooks: &HookSet,
        run: Run<'_, S, T>,
    ) -> Result<Answer, Busy> {
        let payload = run.event.payload(run.phase, run.environment);
        let pieces = u32::try_from(payload.len() / PIECE + 1).map_err(|_| Busy)?;
        let _room = self.room.try_acquire_many(pieces).map_err(|_| Busy)?;
        let mut progress = Progress::new(&run);
        for file in &hooks.broken {
            let failure = Failure::new(Cause::InvalidFile, "the hooks file can't be read");
            progress.invalid(&file.name, failure, file.on_failure);
        }
        for group in &hooks.groups {
            self.ask_group(group, &payload, &mut progress).await;
        }
        Ok(progress.finish())
    }

    async fn ask_group<'r, S: Spawner, T: HookTransport>(
        &self,
        group: &'r Group,
        payload: &[u8],
        progress: &mut Progress<'r, S, T>,
    ) {
        let Run { phase, event, .. } = *progress.run;
        match &group.state {
            GroupState::Invalid { on_failure, kinds } if kinds.contains(&event.kind()) => {
                let failure = Failure::new(Cause::InvalidGroup, "the group can't be read");
                progress.invalid(&group.name, failure, *on_failure);
            }
            GroupState::Active(rules) if rules.kinds.contains(&event.kind()) => {
                let concerned =
                    rules.of(phase).iter().filter(|rule| rule.matcher.matches(event.name()));
                for handler in concerned.flat_map(|rule| &rule.handlers) {
                    self.ask(&group.name, handler, payload, progress).await;
                }
            }
            GroupState::Off | GroupState::Invalid { .. } | GroupState::Active(_) => {}
        }
    }

    async fn ask<'r, S: Spawner, T: HookTransport>(
        &self,
        group: &'r str,
        handler: &'r Handler,
        payload: &[u8],
        progress: &mut Progress<'r, S, T>,
    ) {
        if progress.is_denied() {
            progress.outcome(group, Some(handler), (Ending::Skipped, false), None, Duration::ZERO);
            return;
        }
        progress.begin(group, handler);
        // Waiting here is not the handler's time; those who wait come in their order.
        let turn = self.running.acquire().await;
        let started = progress.start();
        let Run { phase, spawner, transport, .. } = *progress.run;
        let time = handler.timeout;
        let answered = match &handler.action {
            Action::Command(command) => command::run(spawner, command, payload, time).await,
            Action::Http { url, headers } => {
                http::call(transport, url.as_ref(), headers, payload, time).await
            }
        };
        drop(turn);
        let decided = answered.and_then(|answer| match phase {
            Phase::PreToolExecution => decision::parse(&answer)
                .map_err(|cause| Failure::new(cause, "not the JSON of a decision")),
            Phase::PostToolExecution => Ok(Decision::Allow),
        });
        progress.decided(group, handler, decided, started.elapsed());
    }
}

impl Default for Engine {
    fn default() -> Engine {
        Engine::new(Engine::HANDLERS, Engine::ROOM)
    }
}

/// What a run has come to so far.
struct Progress<'r, S, T> {
    run: &'r Run<'r, S, T>,
    denied: Option<Option<Reason>>,
    outcomes: Vec<Outcome>,
    /// The handler that runs or waits for its turn.
    current: Option<Current<'r>>,
}

struct Current<'r> {
    group: &'r str,
    handler: &'r Handler,
    started: Instant,
}

impl<'r, S, T> Progress<'r, S, T> {
    fn new(run: &'r Run<'r, S, T>) -> Progress<'r, S, T> {
        Progress { run, denied: None, outcomes: Vec::new(), current: None }
    }

    fn begin(&mut self, group: &'r str, handler: &'r Handler) {
        self.current = Some(Current { group, handler, started: Instant::now() });
    }

    /// Its turn has come.
    fn start(&mut self) -> Instant {
        let now = Instant::now();
        if let Some(current) = &mut self.current {
            current.started = now;
        }
        now
    }

    fn is_denied(&self) -> bool {
        self.denied.is_some()
    }

    /// Nobody takes back a call that was made.
    fn deny(&mut self, reason: Option<Reason>) {
        if self.run.phase == Phase::PreToolExecution && self.denied.is_none() {
            self.denied = Some(reason);
        }
    }

    fn decided(
        &mut self,
        group: &str,
        handler: &Handler,
        decided: Result<Decision, Failure>,
        took: Duration,
    ) {
        self.current = None;
        let (ending, cause) = match decided {
            Ok(Decision::Allow) => ((Ending::Allow, false), None),
            Ok(Decision::Deny(reason)) => {
                self.deny(reason);
                ((Ending::Deny, true), None)
            }
            Err(failure) => {
                let denies = self.failed(group, Some(handler), &failure, handler.on_failure);
                ((Ending::Failed, denies), Some(failure.cause))
            }
        };
        self.outcome(group, Some(handler), ending, cause, took);
    }

    /// A group or file that can't be read fails on every event, also after a deny: it is not one
    /// of the handlers that are skipped.
    fn invalid(&mut self, group: &str, failure: Failure, on_failure: OnFailure) {
        let denies = self.failed(group, None, &failure, on_failure);
        self.outcome(group, None, (Ending::Failed, denies), Some(failure.cause), Duration::ZERO);
    }

    /// Whether it denies the call.
    fn failed(
        &mut self,
        group: &str,
        handler: Option<&Handler>,
        failure: &Failure,
        on_failure: OnFailure,
    ) -> bool {
        let denies = on_failure == OnFailure::Deny && self.run.phase == Phase::PreToolExecution;
        tracing::warn!(
            id = self.run.id,
            environment = %self.run.environment,
            event = self.run.phase.as_str(),
            group = %group.escape_debug(),
            handler = handler.map(|handler| handler.place.as_str()),
            cause = failure.cause.code(),
            "a hook failed, so the call is {}: {}",
            if denies { "denied" } else { "allowed" },
            failure.detail
        );
        if denies {
            let code = failure.cause.code();
            self.deny(Some(Reason::new(&format!("the hook {group} failed ({code})"))));
        }
        denies
    }

    fn outcome(
        &mut self,
        group: &str,
        handler: Option<&Handler>,
        (outcome, denied): (Ending, bool),
        cause: Option<Cause>,
        took: Duration,
    ) {
        let outcome = Outcome {
            group: group.to_owned(),
            handler: handler.map(|handler| handler.place.clone()),
            kind: handler.map(|handler| handler.action.kind()),
            outcome,
            cause,
            milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            denied,
        };
        (self.run.observe)(&outcome);
        self.outcomes.push(outcome);
    }

    fn finish(mut self) -> Answer {
        let decision = if self.is_denied() { Verdict::Deny } else { Verdict::Allow };
        Answer {
            id: self.run.id.clone(),
            decision,
            reason: self.denied.take().flatten(),
            outcomes: std::mem::take(&mut self.outcomes),
        }
    }
}

/// A run that nobody waits for any longer leaves a handler without an end.
impl<S, T> Drop for Progress<'_, S, T> {
    fn drop(&mut self) {
        if let Some(Current { group, handler, started }) = self.current.take() {
            let failure = Failure::new(Cause::Cancelled, "nobody waits for the answer any longer");
            let denies = self.failed(group, Some(handler), &failure, OnFailure::Deny);
            let cause = Some(failure.cause);
            self.outcome(group, Some(handler), (Ending::Failed, denies), cause, started.elapsed());
        }
    }
}
