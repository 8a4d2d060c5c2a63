//! What is the sandbox of this command like, and whose traffic comes out of it?

use std::path::Path;

use outgate_proxy::Environments;

use super::furnish::Furniture;
use super::hooked::Hooked;
use crate::app::Sockets;
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::sandbox::{Capture, Launched, Plan, Task, blocked_signals};

/// Launches it, with the gateway's listeners in it. `silent`, its command has no streams.
pub(super) fn launch(
    args: &RunArgs,
    environments: &Environments,
    directory: &Path,
    furniture: Furniture,
    silent: bool,
) -> Result<(Launched, Sockets, Hooked), Failure> {
    let mut environments = environments.iter();
    let (Some(environment), None) = (environments.next(), environments.next()) else {
        return Err(Failure::input("one environment is needed: give --environment FILE"));
    };
    let ports = environment.snapshot().policy.ports().into_iter().collect();
    let plan = Plan { silent, ..plan(args, ports, directory, furniture)? };
    let mut launched = Launched::launch(&plan).map_err(Failure::start)?;
    let (sockets, capture) = launched.take_sockets();
    if let Capture::Ports { ports, missing } = capture {
        tracing::warn!(
            "nf_tables is missing ({missing}): of TCP, ports {ports:?} lead to the gateway, every \
             other one is refused; `modprobe nf_tables` lets all of them"
        );
    }
    let hooked = Hooked {
        id: environment.id().clone(),
        directory: directory.to_owned(),
        variables: plan.command.map(|command| command.variables).unwrap_or_default(),
    };
    let sockets = Sockets::of_sandbox(sockets, environment.id()).map_err(Failure::start)?;
    Ok((launched, sockets, hooked))
}

fn plan(
    args: &RunArgs,
    ports: Vec<u16>,
    directory: &Path,
    furniture: Furniture,
) -> Result<Plan, Failure> {
    let mut words = args.command.iter().cloned();
    let program = words.next().ok_or_else(|| Failure::usage("no command to run"))?;
    Ok(Plan {
        ports,
        filesystem: furniture.filesystem,
        preparations: furniture.preparations,
        read_only: furniture.read_only,
        command: Some(Task {
            program,
            arguments: words.collect(),
            variables: furniture.variables,
            directory: directory.into(),
        }),
        silent: false,
        blocked_signals: blocked_signals(),
    })
}
