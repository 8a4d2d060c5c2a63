//! `outgate run`: a sandbox around one command, whose only way out is the gateway.
//!
//! ```text
//! read everything, launch the sandbox, serve its sockets, start the command;
//! follow it to its end, take on its exit code
//! ```

mod ask;
mod attend;
mod closed;
mod confine;
mod door;
mod fetch;
mod furnish;
mod held;
mod hooked;
mod inside;
mod signals;
mod streams;
mod told;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use outgate_credentials::Credentials;
use outgate_proxy::Resolver;
use tokio::runtime::Builder;

pub(crate) use self::ask::ask;
use self::closed::Closed;
pub(crate) use self::door::id;
use self::furnish::{Furniture, Root, furnish};
use self::held::Held;
use self::inside::Inside;
use self::signals::Signals;
use self::told::Told;
use crate::app::App;
use crate::cli::{RunArgs, ServeArgs};
use crate::config::{AuditFile, Settings};
use crate::failure::Failure;
use crate::process;
use crate::reload::Reread;
use crate::sandbox::leave_input_and_output;
use crate::surroundings::Surroundings;

/// Runs the command to its end.
pub(crate) fn run(args: &RunArgs, surroundings: &Surroundings) -> Result<ExitCode, Failure> {
    let mut prepared = Prepared::new(args, surroundings)?;
    prepared.told = Told::instead_of_a_terminal(&mut prepared.settings);
    let resolver = Resolver::system(&prepared.settings.limits);
    prepared.execute(resolver).map(ExitCode::from)
}

/// Everything is read; nothing is started.
pub(crate) struct Prepared<'a> {
    pub(crate) args: RunArgs,
    pub(crate) settings: Settings,
    /// The command's working directory.
    pub(crate) directory: PathBuf,
    /// Whether the environment's sources are fetched before the command runs.
    pub(crate) fetching: bool,
    surroundings: &'a Surroundings,
    environment: PathBuf,
    root: Root,
    told: Option<Told>,
    /// Where last good hooks are kept for the next sandbox.
    memory: Option<PathBuf>,
    /// Whether outgate itself has something to say on its standard output.
    answering: bool,
    /// The environment's file, where none was named.
    _closed: Option<Closed>,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(
        args: &RunArgs,
        surroundings: &'a Surroundings,
    ) -> Result<Prepared<'a>, Failure> {
        streams::refuse_folders()?;
        let closed = args.environment.is_none().then(Closed::write).transpose()?;
        let environment = closed.as_ref().map(Closed::path).or_else(|| args.environment.clone());
        let environment = environment.ok_or_else(|| Failure::start("no environment"))?;
        // A link to it could be replaced by the command.
        let environment = fs::canonicalize(&environment)
            .map_err(|error| Failure::input(format_args!("{}: {error}", environment.display())))?;
        let flags = flags(args, environment.clone());
        let mut settings = Settings::resolve(&flags, surroundings).map_err(Failure::input)?;
        settings.management = door::socket(&settings, &environment)?;
        settings.made_environments = false;
        let directory = env::current_dir()
            .map_err(|error| Failure::start(format_args!("the working directory: {error}")))?;
        Ok(Prepared {
            args: args.clone(),
            settings,
            directory,
            fetching: true,
            surroundings,
            environment,
            root: Root::of(args)?,
            told: None,
            memory: None,
            answering: false,
            _closed: closed,
        })
    }

    /// Where the environment is read from.
    pub(crate) fn environment(&self) -> &Path {
        &self.environment
    }

    /// Runs the command to its end; its exit code.
    pub(crate) fn execute(self, resolver: Resolver) -> Result<u8, Failure> {
        self.occupy(resolver, async |inside: Inside<'_>| inside.attend().await)
    }

    /// Makes the sandbox, and has `body` do what it is for.
    fn occupy<T>(
        self,
        resolver: Resolver,
        body: impl AsyncFnOnce(Inside<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::start)?;
        runtime.block_on(async {
            let (mut sandbox, mut fetches, believed) = (None, Vec::new(), Arc::default());
            let reread = self.reread(Arc::clone(&believed));
            let app = App::over(
                self.settings.clone(),
                reread,
                resolver,
                |_, environments, credentials| {
                    let mut furniture = self.furnish(credentials)?;
                    fetches = std::mem::take(&mut furniture.fetches);
                    believed.get_or_init(|| std::mem::take(&mut furniture.held));
                    // An answer comes from outgate, and not from a program that an agent wrote.
                    let silent = self.answering;
                    let (args, directory) = (&self.args, &self.directory);
                    let (launched, sockets, hooked) =
                        confine::launch(args, environments, directory, furniture, silent)?;
                    sandbox = Some((launched, hooked));
                    Ok(sockets)
                },
            )?;
            let (sandbox, hooked) =
                sandbox.ok_or_else(|| Failure::start("the gateway asked for no sandbox"))?;
            let wanted = hooked.guard(app.hooks(), self.root.path(), self.memory.clone())?;
            // What the command was to inherit, it has: from here on it is the gateway's.
            let signals = Signals::listen()?;
            process::raise_descriptor_limit();
            if !self.answering {
                leave_input_and_output().map_err(Failure::start)?;
            }
            let running = app.start()?;
            let ended = body(Inside { sandbox, fetches, running: &running, signals, wanted }).await;
            // Nobody is left whom a transfer could still matter to.
            running.cut();
            running.join()?;
            if let Some(told) = &self.told {
                told.sum_up();
            }
            ended
        })
    }

    fn reread(&self, believed: Arc<OnceLock<Held>>) -> Reread {
        let flags = flags(&self.args, self.environment.clone());
        reread(flags, self.surroundings.clone(), &self.settings, believed)
    }

    fn furnish(&self, credentials: &Credentials) -> Result<Furniture, Failure> {
        let Prepared { args, settings, surroundings, root, directory, .. } = self;
        let furniture = furnish(args, settings, (surroundings, credentials), root, directory)?;
        Ok(if self.fetching { furniture } else { furniture.without_fetching() })
    }
}

/// What `serve` would be told for the same.
fn flags(args: &RunArgs, environment: PathBuf) -> ServeArgs {
    ServeArgs {
        operator: args.operator.clone(),
        environments: vec![environment],
        origin_roots: args.origin_roots.clone(),
        ..ServeArgs::default()
    }
}

fn reread(
    flags: ServeArgs,
    surroundings: Surroundings,
    settings: &Settings,
    believed: Arc<OnceLock<Held>>,
) -> Reread {
    let (management, audit) = (settings.management.clone(), settings.audit.clone());
    let settings = Box::new(move || {
        let mut settings = Settings::resolve(&flags, &surroundings)?;
        settings.management = management.clone();
        settings.made_environments = false;
        if settings.audit == AuditFile::Unsaid {
            settings.audit = audit.clone();
        }
        Ok(settings)
    });
    // There is no command yet that could have written anything.
    let named = Arc::clone(&believed);
    let may_name = Arc::new(move |path: &Path| match named.get() {
        Some(held) => held.real(path).map(drop),
        None => Ok(()),
    });
    let believable = Box::new(move || believed.get().map_or(Ok(()), Held::check));
    // The command may write around in the folders of these files: only a person's word counts.
    Reread { settings, watch: false, believable, may_name }
}
