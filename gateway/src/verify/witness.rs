//! What is there outside that the sandbox must not reach, and was it reached?
//!
//! Everything is made for one verification, is known by one random word, the canary, and is gone
//! with the [`Witness`].

mod descriptors;
mod files;
mod ipc;
mod network;
mod process;
mod terminal;

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::Path;

use self::descriptors::Inheritable;
use self::files::Files;
use self::ipc::Ipc;
use self::network::Network;
use self::process::Bystander;
use self::terminal::Terminal;

pub(super) use self::ipc::Objects;
pub(super) use self::process::{ROLE, stand};

/// Everything that watches.
pub(super) struct Witness {
    pub(super) canary: String,
    network: Network,
    files: Files,
    process: Bystander,
    terminal: Terminal,
    ipc: Ipc,
    _descriptors: Inheritable,
}

/// Something that was reached.
#[derive(Debug)]
pub(super) struct Met {
    /// By which probe.
    pub(super) probe: &'static str,
    pub(super) what: String,
}

impl Witness {
    /// Puts everything in place.
    pub(super) fn call(state_dir: &Path, home: Option<&Path>) -> io::Result<Witness> {
        let canary = canary()?;
        Ok(Witness {
            network: Network::listen(&canary)?,
            files: Files::lay(&canary, state_dir, home)?,
            process: Bystander::start(&canary)?,
            terminal: Terminal::open()?,
            ipc: Ipc::make(&canary),
            _descriptors: Inheritable::open(&canary)?,
            canary,
        })
    }

    /// The end of the terminal that the prober has as its standard input.
    pub(super) fn terminal(&self) -> BorrowedFd<'_> {
        self.terminal.prober_end()
    }

    /// Addresses that are listened on over TCP, and over UDP.
    pub(super) fn addresses(&self) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        self.network.addresses()
    }

    /// Names of sockets without a path.
    pub(super) fn abstract_name(&self) -> &[u8] {
        self.network.abstract_name()
    }

    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    /// The number of a process outside.
    pub(super) fn process(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn objects(&self) -> Objects {
        self.ipc.objects()
    }

    /// What was reached, now that the prober has ended.
    pub(super) fn met(mut self) -> Vec<Met> {
        let mut met = self.network.met();
        met.extend(self.files.met());
        met.extend(self.process.met());
        met.extend(self.terminal.met());
        met
    }
}

fn canary() -> io::Result<String> {
    let mut random = [0; 16];
    aws_lc_rs::rand::fill(&mut random).map_err(|_| io::Error::other("no random numbers"))?;
    let mut text = String::new();
    for byte in random {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    Ok(text)
}
