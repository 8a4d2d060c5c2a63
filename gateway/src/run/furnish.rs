//! What does the command find in its sandbox: which files, which variables?

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use outgate_credentials::Credentials;
use outgate_policy::{EnvValue, Environment, compile_under};
use tempfile::TempDir;

use super::held::Held;
use crate::ca;
use crate::cli::RunArgs;
use crate::config::{EnvironmentSource, Settings};
use crate::environments::{address_rules, default_id, origin_files, read_text};
use crate::failure::Failure;
use crate::sandbox::{
    FilesystemPlan, FilesystemRequest, FoundSockets, OWN_V4, OWN_V6, Preparation, SocketSearch,
    proxies_in, trust_paths, variables,
};
use crate::sources::{self, Fetch};
use crate::state_dir;
use crate::store::warn_of_unreadable;
use crate::surroundings::Surroundings;
use crate::trust_files::TrustFiles;

/// The folder whose entries appear at the sandbox's `/`.
pub(super) enum Root {
    Given(PathBuf),
    /// Made for this command, and gone with it.
    Fresh(TempDir),
}

/// All of it.
pub(super) struct Furniture {
    pub(super) filesystem: FilesystemPlan,
    pub(super) preparations: Vec<Preparation>,
    pub(super) fetches: Vec<Fetch>,
    pub(super) read_only: Vec<OsString>,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) held: Held,
}

impl Furniture {
    /// Without what has to be fetched by way of the network, and what was to become read-only then.
    pub(super) fn without_fetching(self) -> Furniture {
        Furniture { preparations: Vec::new(), fetches: Vec::new(), read_only: Vec::new(), ..self }
    }
}

impl Root {
    pub(super) fn of(args: &RunArgs) -> Result<Root, Failure> {
        match &args.sandbox_root {
            Some(folder) => Ok(Root::Given(folder.clone())),
            None => {
                tempfile::Builder::new().prefix("outgate-root-").tempdir().map(Root::Fresh).map_err(
                    |error| Failure::start(format_args!("a folder for the sandbox: {error}")),
                )
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Root::Given(folder) => folder,
            Root::Fresh(folder) => folder.path(),
        }
    }
}

/// Puts the sources into `root` and settles the rest. `directory` is the working directory.
pub(super) fn furnish(
    args: &RunArgs,
    settings: &Settings,
    (surroundings, credentials): (&Surroundings, &Credentials),
    root: &Root,
    directory: &Path,
) -> Result<Furniture, Failure> {
    let home = surroundings.home.as_deref();
    let search = SocketSearch::start(home.into_iter().chain([Path::new("/var")]));
    let environment = environment(settings, credentials)?;
    for proxy in proxies_in(&environment.env) {
        tracing::warn!("env.{proxy}: no proxy leads out of a sandbox; the variable is left out");
    }
    let caller = &surroundings.variables;
    let variables = variables(caller, &args.keep_env, &environment.env, &trust_paths());
    let variables = variables.map_err(Failure::usage)?;
    let to_do = sources::place(root.path(), &environment.sources, &variables);
    let to_do = to_do.map_err(Failure::input)?;
    let trust = TrustFiles::new(&ca::authority(settings)?, &ca::origin_roots(settings)?);
    let values = credentials.files();
    let mut hidden = settings.kept_from_sandboxes(args.operator.config.as_deref());
    let named = origins_of(settings, &environment);
    hidden.extend(named.iter().cloned());
    let request = FilesystemRequest {
        sandbox_root: root.path(),
        state_dirs: &state_dirs(settings, surroundings),
        files: &hidden,
        values: &values,
        working_directory: directory,
        home,
        sockets: &finished(search),
    };
    let filesystem = FilesystemPlan::new(&request, vec![OWN_V4.into(), OWN_V6.into()], trust);
    let filesystem = filesystem.map_err(Failure::input)?;
    read_values(credentials, &values, &filesystem).map_err(Failure::start)?;
    Ok(Furniture {
        held: held(args, settings, &named, &filesystem).map_err(Failure::start)?,
        filesystem,
        preparations: to_do.preparations,
        fetches: to_do.fetches,
        read_only: to_do.read_only,
        variables,
    })
}

fn state_dirs(settings: &Settings, surroundings: &Surroundings) -> Vec<PathBuf> {
    let own = [settings.state_dir.clone()].into_iter();
    own.chain(state_dir::known(surroundings)).collect()
}

fn finished(search: SocketSearch) -> FoundSockets {
    let sockets = search.finish();
    if !sockets.complete {
        tracing::info!(
            "there are more files in the home folder and in /var than can be looked through: a \
             socket deep inside may be reachable from the sandbox"
        );
    }
    sockets
}

/// The one that the command runs in, for its variables and sources. Where a variable is a stored
/// credential's, the command gets the placeholder.
fn environment(settings: &Settings, credentials: &Credentials) -> Result<Environment, Failure> {
    let [EnvironmentSource::File { path, .. }] = settings.environments.as_slice() else {
        return Err(Failure::input("one environment is needed: give --environment FILE"));
    };
    let rules = address_rules(&settings.addresses, &settings.environments, &[])?;
    let compiled = compile_under(&read_text(path)?, &default_id(path), &rules);
    let mut environment = compiled.map_err(|problems| {
        let problems = problems.to_string().replace('\n', "; ");
        Failure::input(format_args!("{}: {problems}", path.display()))
    })?;
    for (name, value) in &mut environment.env {
        if let EnvValue::Credential(id) = value {
            let placeholder = credentials.placeholder(&environment.id, id);
            *value = EnvValue::Plain(placeholder.map_err(|error| {
                Failure::input(format_args!("env.{}: {error}", name.escape_debug()))
            })?);
        }
    }
    Ok(environment)
}

/// What its entries name for their origins.
fn origins_of(settings: &Settings, environment: &Environment) -> Vec<PathBuf> {
    match settings.environments.as_slice() {
        [EnvironmentSource::File { path, .. }] => origin_files(&environment.policy, path),
        _ => Vec::new(),
    }
}

/// Those of them that SIGHUP reads again.
fn held(
    args: &RunArgs,
    settings: &Settings,
    named: &[PathBuf],
    plan: &FilesystemPlan,
) -> io::Result<Held> {
    let files = settings.environments.iter().flat_map(EnvironmentSource::paths);
    let files = files.chain(&args.operator.config).chain(named);
    Held::hold(files.filter_map(|file| Some((file.as_path(), plan.mask_of(file)?))))
}

/// Has values read from files that are hidden from the command, and from no others; says which can't
/// be read now.
fn read_values(
    credentials: &Credentials,
    files: &[PathBuf],
    plan: &FilesystemPlan,
) -> io::Result<()> {
    let hidden = |file: &Path| plan.mask_of(file).is_some();
    warn_of_unreadable(credentials, |file| match hidden(file) {
        true => "until it is there",
        false => "in this sandbox, also if it comes back: start anew then",
    });
    let held = files.iter().filter_map(|file| Some((file.as_path(), plan.mask_of(file)?)));
    let held = Held::hold(held)?;
    credentials.read_files_by(move |given| held.real(given));
    Ok(())
}
