//! What is wrong with what the operator wrote?

use std::path::PathBuf;

use ipnet::IpNet;
use outgate_files::ReadError;
use outgate_policy::PatternError;

use super::BindAddress;

/// One problem of the operator's file or flags.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{}: {error}", file.display())]
    Read { file: PathBuf, error: ReadError },
    #[error("{}:{line}: {message}", file.display())]
    Line { file: PathBuf, line: usize, message: String },
    #[error("no place for the state folder: give --state-dir, or set OUTGATE_STATE_DIR or HOME")]
    NoStateDir,
    #[error("`{0}` is no address to listen on: write 127.0.0.1:8080, [::1]:8080 or unix:PATH")]
    Bind(String),
    #[error("`{0}` is no block of addresses: write 10.1.2.0/24 or 10.1.2.3")]
    Block(String),
    #[error("`{given}` has bits beyond its length: write {meant}")]
    BlockBits { given: IpNet, meant: IpNet },
    #[error("`{0}` is no IPv6 prefix: write one such as 64:ff9b:1::/96")]
    Nat64(String),
    #[error(
        "{0}: write http://HOST:PORT or https://HOST:PORT, with USER:PASSWORD@ before the host if it asks"
    )]
    ProxyUrl(String),
    #[error("`{given}` in no_proxy: {error}")]
    NoProxy { given: String, error: PatternError },
    #[error("[upstream]: without `proxy` the rest has no effect: name one, or remove it")]
    UpstreamWithoutProxy,
    #[error("{way} listener `{bind}`: it can't be a Unix socket, write an address with a port")]
    NotOverUnix { way: &'static str, bind: BindAddress },
    #[error("[[listener]]: there is one management listener at most")]
    ManyManagement,
    #[error("[[listener]]: a management listener belongs to no environment: remove `environment`")]
    ManagementWithEnvironment,
    #[error("management address `{0}`: write unix:PATH or a loopback address such as 127.0.0.1:0")]
    ManagementNotLocal(BindAddress),
    #[error("[[environment]]: write either `file` or `directory`")]
    FileOrDirectory,
    #[error(
        "[[environment]] with `directory`: source_addresses, interface and token_file are of one \
         environment: name it with `file`"
    )]
    DirectoryWithClients,
    #[error("`{0}` is no name of a network interface: write one such as veth-one")]
    Interface(String),
    #[error("{pair} is of {} and of {}: give it to one", first.display(), second.display())]
    SharedClients { pair: String, first: PathBuf, second: PathBuf },
}
