//! How is the command itself started? With its own session and nothing of its supervisor.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::unistd::{Pid, chdir, getpid, getppid, setsid};

use super::control::Job;
use super::limits;

/// Starts `/bin/sh -c`. Its stdout and stderr are the supervisor's.
#[expect(unsafe_code, reason = "what the child gives up, it gives up between fork and exec")]
pub(super) fn start(job: &Job, stdin: OwnedFd) -> io::Result<Pid> {
    let supervisor = getpid();
    let limits = limits::read()?;
    // A NUL names no folder, and neither does the empty text.
    let directory = CString::new(job.directory.as_str()).unwrap_or_default();
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(&job.command)
        .env_clear()
        .envs(job.env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::from(stdin));
    // SAFETY: the closure runs in the forked child of a process with one thread, so that no lock
    // can be held by a thread that is not there; it makes system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            // Blocked in the supervisor, and `Command` leaves the mask as it is.
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
            setsid()?;
            limits.apply()?;
            give_up_capabilities()?;
            prctl::set_no_new_privs()?;
            close_others()?;
            // As the command may: it may be gone, or closed to the command's user.
            chdir(directory.as_c_str()).or_else(|_| chdir(c"/"))?;
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            // The supervisor may have died before the line above; then nobody would watch.
            if getppid() == supervisor { Ok(()) } else { Err(Errno::ESRCH.into()) }
        });
    }
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).map_err(|_| Errno::ERANGE)?;
    // Not waited for through `Child`: the supervisor reaps whatever ends.
    Ok(Pid::from_raw(pid))
}

/// Everything above stderr is closed on exec, whoever opened it.
#[expect(unsafe_code, reason = "there is no safe close_range")]
fn close_others() -> io::Result<()> {
    // SAFETY: it takes numbers, and marks descriptors without closing them.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    Errno::result(done).map(drop).map_err(io::Error::from)
}

/// Empties the bounding, ambient, permitted, effective and inheritable sets (capabilities(7)).
#[expect(unsafe_code, reason = "there is no safe capset")]
fn give_up_capabilities() -> io::Result<()> {
    let drop = |capability: libc::c_ulong| {
        // SAFETY: it takes numbers.
        Errno::result(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) })
    };
    for capability in 0.. {
        match drop(capability) {
            Ok(_) => {}
            // Past the last one this kernel knows.
            Err(Errno::EINVAL) => break,
            // Without CAP_SETPCAP the bounding set stays; `no_new_privs` makes it of no use.
            Err(Errno::EPERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    // SAFETY: it takes numbers.
    let cleared =
        unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    Errno::result(cleared)?;
    let header = CapabilityHeader { version: LINUX_CAPABILITY_VERSION_3, pid: 0 };
    let none = [CapabilityData::default(); 2];
    // SAFETY: both structures are those of capset(2) for this version, and live past the call.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    Errno::result(set).map(std::mem::drop).map_err(io::Error::from)
}

const LINUX_CAPABILITY_VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Copy, Clone, Default)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}
