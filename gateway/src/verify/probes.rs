//! What is tried from inside?
//!
//! Every probe is one function that tries all it can and notes what it got. It knows what is
//! outside from the [`Brief`], and has no right that the sandbox's command has not.

mod attempt;
mod counters;
mod datagrams;
mod files;
mod inheritance;
mod ipc;
mod local;
mod mask;
mod names;
mod packets;
mod privileges;
mod processes;
mod sockets;
mod streams;
mod terminal;
mod tls;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::alarm;

use super::brief::Brief;
use super::finding::Finding;

/// The argument that makes this program the prober.
pub(super) const ROLE: &str = "outgate-prober";

/// All probes together take two or three seconds where everything is refused at once.
const DEADLINE_SECONDS: u32 = 60;

/// One that needs no prober: the audit lines say it.
pub(super) const NOTHING_DIALLED: &str = "nothing-dialled";

/// One thing that a sandbox must withstand.
pub(super) struct Probe {
    /// Stable, and a line of `docs/verify.md`.
    pub(super) name: &'static str,
    attempt: fn(&Brief, &mut Finding),
}

/// All of them, in the order of the output. Those that fork come after those that have threads.
pub(super) const PROBES: [Probe; 35] = [
    probe("proxy-variables", inheritance::proxy_variables),
    probe("inherited-descriptors", inheritance::descriptors),
    probe("interfaces", packets::interfaces),
    probe("raw-ipv4", streams::raw_ipv4),
    probe("raw-ipv6", streams::raw_ipv6),
    probe("host-loopback", local::loopback),
    probe("host-interfaces", local::interfaces),
    probe("metadata", streams::metadata),
    probe("unknown-synthetic", streams::unknown_synthetic),
    probe("udp", datagrams::udp),
    probe("quic", datagrams::quic),
    probe("dns-any-server", datagrams::dns),
    probe("doh", names::doh),
    probe("dot", names::dot),
    probe("domain-fronting", names::fronting),
    probe("foreign-address", names::foreign_address),
    probe("icmp", packets::icmp),
    probe("other-protocols", packets::other_protocols),
    probe("packet-sockets", packets::link_layer),
    probe("other-families", packets::other_families),
    probe("management", sockets::management),
    probe("named-sockets", sockets::named),
    probe("abstract-sockets", sockets::nameless),
    probe("state-folder", files::state_folder),
    probe("state-folder-mask", mask::state_folder),
    probe("operator-files", files::operator_files),
    probe("host-temporary-files", files::shared),
    probe("kernel-settings", files::kernel_settings),
    probe("host-processes", processes::visible),
    probe("tracing", processes::tracing),
    probe("signals", processes::signals),
    probe("terminal-input", terminal::input),
    probe("terminal-console", terminal::console),
    probe("privileges", privileges::any),
    probe("shared-objects", ipc::any),
];

const fn probe(name: &'static str, attempt: fn(&Brief, &mut Finding)) -> Probe {
    Probe { name, attempt }
}

/// Is the prober: tries everything, and reports on standard output.
pub(super) fn run(brief: Option<OsString>) -> ExitCode {
    let brief = brief.and_then(|text| serde_json::from_str(text.to_str()?).ok());
    let Some(brief) = brief else { return ExitCode::from(64) };
    // Whatever hangs ends here, and what was not reported is open. The caller may have blocked it.
    let _ = SigSet::from(Signal::SIGALRM).thread_unblock();
    alarm::set(DEADLINE_SECONDS);
    for probe in PROBES {
        let mut finding = Finding::of(probe.name);
        (probe.attempt)(&brief, &mut finding);
        if report(&finding).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn report(finding: &Finding) -> io::Result<()> {
    let mut line = serde_json::to_vec(finding)?;
    line.push(b'\n');
    io::stdout().lock().write_all(&line)?;
    io::stdout().flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_on_verifying_tells_of_every_probe() {
        let page = include_str!("../../../docs/verify.md");
        let names: Vec<_> =
            PROBES.iter().map(|probe| probe.name).chain([NOTHING_DIALLED]).collect();
        for name in &names {
            assert!(page.contains(&format!("\n| `{name}` |")), "{name}");
        }
        assert_eq!(page.matches("\n| `").count(), names.len());
    }
}
