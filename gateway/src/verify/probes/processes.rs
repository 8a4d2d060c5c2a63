//! Are processes of the host seen, or touched?

use std::fs;
use std::io;
use std::path::Path;

use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, getpid, getppid};

use super::attempt::in_child;
use super::inheritance::contains;
use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

const INIT: Pid = Pid::from_raw(1);

/// There is the sandbox's own PID 1, into which nobody may look, and the prober.
pub(super) fn visible(brief: &Brief, finding: &mut Finding) {
    let Ok(entries) = fs::read_dir("/proc") else { return finding.open("/proc can't be listed") };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let others: Vec<Pid> =
        numbers.map(Pid::from_raw).filter(|it| ![INIT, getpid()].contains(it)).collect();
    if !others.is_empty() {
        finding.open(format_args!("{} other processes can be seen", others.len()));
    }
    for process in others.iter().filter(|process| has_canary(**process, brief)) {
        finding.open(format_args!("the memory of process {process} was read"));
    }
    for name in ["root", "cwd", "exe", "fd/0"] {
        if fs::read_link(Path::new("/proc/1").join(name)).is_ok() {
            finding.open(format_args!("/proc/1/{name} can be followed"));
        }
    }
    for name in ["environ", "mem", "maps"] {
        let text = fs::File::open(Path::new("/proc/1").join(name));
        if text.is_ok_and(|mut text| io::Read::read(&mut text, &mut [0]).is_ok_and(|it| it > 0)) {
            finding.open(format_args!("/proc/1/{name} can be read"));
        }
    }
}

fn has_canary(process: Pid, brief: &Brief) -> bool {
    let environ = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    contains(&environ, brief.canary.as_bytes())
}

/// The bystander by its number outside, and PID 1 where that is the sandbox's.
pub(super) fn tracing(brief: &Brief, finding: &mut Finding) {
    let own = (getppid() == INIT).then_some(INIT);
    for process in [bystander(brief), own].into_iter().flatten() {
        in_child(finding, &format!("process {process} can be traced"), || {
            // It goes on when its tracer ends.
            ptrace::seize(process, ptrace::Options::empty()).is_ok()
        });
    }
}

/// To the bystander, and to the process group, in which it is too; `SIGURG` harms nobody.
pub(super) fn signals(brief: &Brief, finding: &mut Finding) {
    if getpgrp().as_raw() == 0 {
        finding.open("the process group is one of the host");
    }
    // The witness tells whether one came.
    let _ = kill(Pid::from_raw(0), Signal::SIGURG);
    if let Some(process) = bystander(brief)
        && kill(process, Signal::SIGURG).is_ok()
    {
        finding.open("a process outside can be signalled");
    }
}

/// Unless the number is one of the sandbox's own.
fn bystander(brief: &Brief) -> Option<Pid> {
    let process = Pid::from_raw(brief.bystander.cast_signed());
    (process != getpid() && process != INIT).then_some(process)
}
