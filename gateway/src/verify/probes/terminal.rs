//! Can the sandbox type into the terminal that it was started from?

use std::ffi::c_ulong;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

use nix::unistd::setsid;

use super::attempt::in_child;
use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

/// Whoever looks at 64 bits of a request is fooled by one of the upper ones, which the kernel cuts
/// off (CVE-2019-10063).
#[cfg(target_pointer_width = "64")]
const DISGUISE: c_ulong = 1 << 40;

/// TIOCSTI, into the terminal that is the standard input, made the controlling one first.
pub(super) fn input(_: &Brief, finding: &mut Finding) {
    for (what, disguise) in [("", 0), (", in disguise", DISGUISE)] {
        in_child(finding, &format!("the terminal can be typed into{what}"), || {
            // Where it is the controlling terminal already, all the better.
            let _ = setsid();
            let _ = request(libc::TIOCSCTTY, ptr::null_mut::<u8>());
            let typed = |mut byte: u8| request(libc::TIOCSTI | disguise, &raw mut byte).is_ok();
            typed(b'v') && typed(b'\n')
        });
    }
}

/// TIOCLINUX pastes what is selected on a console. There is none here, but who gets as far as the
/// kernel's "not such a terminal" would on one.
pub(super) fn console(_: &Brief, finding: &mut Finding) {
    for disguise in [0, DISGUISE] {
        let mut paste = 3u8;
        let refused = request(libc::TIOCLINUX | disguise, &raw mut paste).err();
        if refused.and_then(|error| error.raw_os_error()) != Some(libc::EPERM) {
            finding.open("TIOCLINUX is let through");
        }
    }
}

fn request<T>(request: c_ulong, argument: *mut T) -> io::Result<()> {
    #[expect(unsafe_code, reason = "these requests have no safe wrapper")]
    // SAFETY: each of them reads one byte at the argument, or takes it for a number.
    let done = unsafe { libc::ioctl(io::stdin().as_raw_fd(), request, argument) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
