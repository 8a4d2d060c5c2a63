//! What may a person type?
//!
//! The shapes of the commands, nothing else: what they mean is in one file per command.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::BindAddress;
use crate::failure::Failure;

/// The network gateway of a sandbox: it decides which domains may be reached, and puts secrets on
/// the wire so that the sandbox never holds them.
#[derive(Debug, Parser)]
#[command(name = "outgate", version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Reads the command line. `--help` and `--version` print and end the program here.
    pub(crate) fn parse_from_args(
        args: impl IntoIterator<Item = OsString>,
    ) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(args)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a sandbox whose only way out is the gateway.
    Run(RunArgs),
    /// Try to get out of the sandbox that `run` would make: one line each, `held` or `open`.
    Verify(VerifyArgs),
    /// Run the gateway until SIGTERM.
    Serve(ServeArgs),
    /// Show a deny and an injection on real traffic: one process, no network, no root.
    Demo(DemoArgs),
    /// Validate environment files: every problem of every file.
    Check(CheckArgs),
    /// Ask the hooks about a tool call: the event on stdin, the answer on stdout.
    Hook(HookArgs),
    /// Say what would happen to a request, and why.
    Explain(ExplainArgs),
    /// Show, export or replace the CA that clients trust.
    #[command(subcommand)]
    Ca(CaCommand),
    /// Store secrets that are put on the wire, and change, list or delete them.
    #[command(subcommand)]
    Credentials(CredentialsCommand),
}

/// Where the operator keeps things.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OperatorArgs {
    /// The operator's file (TOML). Flags win over it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where the CA, the credentials and the management key live.
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// The key of the stored credentials: 32 bytes in base64 or hex.
    #[arg(long, value_name = "FILE")]
    pub(crate) store_key_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    /// An environment file; may be given many times.
    #[arg(long = "environment", value_name = "FILE")]
    pub(crate) environments: Vec<PathBuf>,
    /// Where the explicit proxy listens: host:port, [v6]:port or unix:PATH.
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<BindAddress>,
    /// Where the SOCKS5 proxy listens.
    #[arg(long, value_name = "ADDR")]
    pub(crate) socks: Option<BindAddress>,
    /// Where connections come in that the network leads here (nft redirect, TPROXY).
    #[arg(long, value_name = "ADDR")]
    pub(crate) transparent: Option<BindAddress>,
    /// Where the names of sandboxes are answered, over UDP and TCP.
    #[arg(long, value_name = "ADDR")]
    pub(crate) dns: Option<BindAddress>,
    /// Where the management API listens: a loopback address or unix:PATH.
    #[arg(long, value_name = "ADDR|unix:PATH")]
    pub(crate) management: Option<BindAddress>,
    /// Certificates that origins may also be verified with, besides the system's.
    #[arg(long, value_name = "PEM")]
    pub(crate) origin_roots: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
#[command(override_usage = "outgate run [OPTIONS] -- COMMAND [ARG]...")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    /// The environment file. Without one nothing is allowed.
    #[arg(long, value_name = "FILE")]
    pub(crate) environment: Option<PathBuf>,
    /// A folder whose entries appear at the sandbox's root: DIR/workspace as /workspace.
    #[arg(long, value_name = "DIR")]
    pub(crate) sandbox_root: Option<PathBuf>,
    /// A variable that the command gets as it is here; may be given many times.
    #[arg(long, value_name = "NAME")]
    pub(crate) keep_env: Vec<String>,
    /// Certificates that origins may also be verified with, besides the system's.
    #[arg(long, value_name = "PEM")]
    pub(crate) origin_roots: Option<PathBuf>,
    /// What to run, and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct HookArgs {
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    /// Before the tool call, or after it.
    pub(crate) moment: Moment,
    /// The environment file.
    #[arg(long, value_name = "FILE")]
    pub(crate) environment: PathBuf,
    /// A folder whose entries appear at the sandbox's root: DIR/.agents as /.agents.
    #[arg(long, value_name = "DIR")]
    pub(crate) sandbox_root: Option<PathBuf>,
    /// Certificates that origins may also be verified with, besides the system's.
    #[arg(long, value_name = "PEM")]
    pub(crate) origin_roots: Option<PathBuf>,
}

/// When a tool call is asked about.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub(crate) enum Moment {
    /// Before it: a deny exits with 2.
    Pre,
    /// After it.
    Post,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    /// The environment file. Without one nothing is allowed.
    #[arg(long, value_name = "FILE")]
    pub(crate) environment: Option<PathBuf>,
    /// Certificates that origins may also be verified with, besides the system's.
    #[arg(long, value_name = "PEM")]
    pub(crate) origin_roots: Option<PathBuf>,
    /// Try without a sandbox, to see that the probes notice.
    #[arg(long)]
    pub(crate) without_sandbox: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DemoArgs {
    /// Leave the demo's gateway running until Ctrl-C, to try the commands by hand.
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CheckArgs {
    /// Files to validate.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Clone, Debug, Args)]
#[command(override_usage = "outgate explain --environment FILE [METHOD] URL")]
pub(crate) struct ExplainArgs {
    /// The environment file that decides.
    #[arg(long, value_name = "FILE")]
    pub(crate) environment: PathBuf,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    /// The request: a URL, with a method before it (GET when there is none).
    #[arg(required = true, num_args = 1..=2, value_name = "[METHOD] URL")]
    request: Vec<String>,
    /// Answer in JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl ExplainArgs {
    /// The method and the URL.
    pub(crate) fn request(&self) -> (&str, &str) {
        match self.request.as_slice() {
            [method, url] => (method, url),
            [url] => ("GET", url),
            _ => unreachable!("clap takes one or two values"),
        }
    }
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CaCommand {
    /// Print the CA's fingerprint, validity and path.
    Show(OperatorArgs),
    /// Print the CA's certificate (PEM).
    Export(OperatorArgs),
    /// Replace the CA by a new one.
    New(OperatorArgs),
    /// Print the export lines that make clients trust the CA.
    Env(OperatorArgs),
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CredentialsCommand {
    /// Store a new one. Its value comes from stdin, a file or a prompt, never from here.
    Create {
        /// What entries and variables will call it.
        id: String,
        /// bearer_token, oauth2, environment_variable, basic, api_key_query, aws_sigv4 or
        /// gcp_service_account.
        #[arg(long = "type", value_name = "TYPE")]
        kind: String,
        #[command(flatten)]
        fields: FieldArgs,
    },
    /// Change fields of one. Without --set, a new value is asked for.
    Update {
        /// Which one.
        id: String,
        #[command(flatten)]
        fields: FieldArgs,
    },
    /// Show what may be shown of one: never its value.
    Get {
        /// Which one.
        id: String,
        #[command(flatten)]
        operator: OperatorArgs,
    },
    /// Show all, one a line.
    List {
        #[command(flatten)]
        operator: OperatorArgs,
    },
    /// Delete one. Requests that need it are refused from then on.
    Delete {
        /// Which one.
        id: String,
        #[command(flatten)]
        operator: OperatorArgs,
    },
}

/// What a credential says.
#[derive(Clone, Debug, Args)]
pub(crate) struct FieldArgs {
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    /// A field that is no secret, as `--set header_name=X-Api-Key`; lists and objects in JSON.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    pub(crate) fields: Vec<String>,
    /// Read the value from this file instead of stdin; of oauth2, client_secret and refresh_token
    /// on a line each, of aws_sigv4, secret_access_key and, if there is one, session_token.
    #[arg(long, value_name = "FILE")]
    pub(crate) value_file: Option<PathBuf>,
}

/// Ends a reading that clap refused: help and version go to stdout, anything else is a usage error.
pub(crate) fn refuse(error: &clap::Error) -> Result<(), Failure> {
    // Nothing is left to tell a person whose terminal is gone.
    let _ = error.print();
    if error.use_stderr() { Err(Failure::usage_shown()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::parse_from_args(line.split(' ').map(OsString::from))
    }

    fn explain(line: &str) -> (String, String) {
        let Command::Explain(args) = parse(line).unwrap().command else { panic!("not explain") };
        let (method, url) = args.request();
        (method.to_owned(), url.to_owned())
    }

    #[test]
    fn the_shapes_are_sound() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn explain_takes_a_url_with_or_without_a_method() {
        let get = explain("outgate explain --environment e.json https://a.example/");
        assert_eq!(get, ("GET".to_owned(), "https://a.example/".to_owned()));
        let put = explain("outgate explain --environment e.json PUT https://a.example/");
        assert_eq!(put, ("PUT".to_owned(), "https://a.example/".to_owned()));
        assert!(parse("outgate explain --environment e.json").is_err());
        assert!(parse("outgate explain --environment e.json PUT https://a.example/ more").is_err());
        assert!(parse("outgate explain https://a.example/").is_err());
    }

    #[test]
    fn serve_takes_many_environments_and_one_listener_of_a_kind() {
        let line = "outgate serve --environment a.json --environment b.json --listen [::1]:0 \
                    --socks [::1]:1080 --transparent 127.0.0.1:1 --dns 127.0.0.1:53 \
                    --management unix:/tmp/m.sock --origin-roots r.pem --state-dir s --config o.toml";
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let Command::Serve(args) = parse(&line).unwrap().command else { panic!("not serve") };
        assert_eq!(args.environments.len(), 2);
        assert_eq!(args.listen, Some("[::1]:0".parse().unwrap()));
        assert_eq!(args.socks, Some("[::1]:1080".parse().unwrap()));
        assert_eq!(args.transparent, Some("127.0.0.1:1".parse().unwrap()));
        assert_eq!(args.dns, Some("127.0.0.1:53".parse().unwrap()));
        assert_eq!(args.management, Some(BindAddress::Unix("/tmp/m.sock".into())));
        assert!(parse("outgate serve --listen 127.0.0.1:0 --listen 127.0.0.1:1").is_err());
    }

    #[test]
    fn a_command_that_there_is_not_is_a_usage_error() {
        for line in ["outgate help", "outgate credential list"] {
            assert!(parse(line).unwrap_err().use_stderr(), "{line}");
        }
    }

    #[test]
    fn an_address_that_is_none_is_a_usage_error() {
        for address in ["8080", "localhost:8080", "127.0.0.1", "[::1]", "unix:", "127.0.0.1:99999"]
        {
            assert!(parse(&format!("outgate serve --listen {address}")).is_err(), "{address}");
        }
    }
}
