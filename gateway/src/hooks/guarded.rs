//! How are the hooks of one environment asked, and who is told?

use std::sync::Arc;

use outgate_hooks::{
    Answer, Busy, Discovery, Ending, Engine, Event, HandlerKind, Outcome, Phase, Run,
};
use outgate_proxy::{Egress, Environment, Gateway, HookOutcome, Purpose};

use super::Commands;
use super::transport::Transport;

/// One environment with its hooks.
pub(crate) struct Guarded {
    pub(super) discovery: Discovery,
    pub(super) engine: Engine,
    pub(super) commands: Commands,
}

impl Guarded {
    pub(super) async fn ask(
        &self,
        gateway: &Arc<Gateway>,
        environment: &Arc<Environment>,
        phase: Phase,
        event: &Event,
        id: String,
    ) -> Result<Answer, Busy> {
        let look = self.discovery.look().await;
        let egress = Egress::new(Arc::clone(gateway), Purpose::Hook);
        let transport = Transport::new(egress, Arc::clone(environment));
        let observe = |outcome: &Outcome| {
            gateway.audit().hook(environment.id(), line(outcome, &id, phase));
        };
        let run = Run {
            id: id.clone(),
            environment: environment.id(),
            phase,
            event,
            spawner: &self.commands,
            transport: &transport,
            observe: &observe,
        };
        let mut answer = self.engine.run(&look.hooks, run).await?;
        answer.reason = answer.reason.map(|reason| transport.scrubbed(&reason));
        Ok(answer)
    }
}

fn line(outcome: &Outcome, run: &str, phase: Phase) -> HookOutcome {
    HookOutcome {
        run: run.to_owned(),
        event: phase.as_str(),
        group: outcome.group.clone(),
        handler: outcome.handler.clone(),
        kind: outcome.kind.map(|kind| match kind {
            HandlerKind::Command => "command",
            HandlerKind::Http => "http",
        }),
        outcome: match outcome.outcome {
            Ending::Allow => "allow",
            Ending::Deny => "deny",
            Ending::Failed => "failed",
            Ending::Skipped => "skipped",
        },
        cause: outcome.cause.map(outgate_hooks::Cause::code),
        denied: outcome.denied,
        took: std::time::Duration::from_millis(outcome.milliseconds),
    }
}
