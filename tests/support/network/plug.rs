//! Who carries the frames of a virtual machine between its card and the tap device of its host?

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::Host;

/// How long a dropped plug may go on waiting, in milliseconds.
const BETWEEN_LOOKS: u16 = 20;

/// Longer than any frame of a device that was not told to leave segmentation to its hardware.
const LONGEST: usize = 1 << 16;

/// A hypervisor as far as the network sees one. Dropped, it stops.
pub struct Plug {
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Plug {
    /// Carries frames between `tap`, which exists on `host`, and a new card of `guest`.
    ///
    /// # Panics
    /// When /dev/net/tun can't be used.
    pub fn new((host, tap): (&Host, &str), (guest, card): (&Host, &str)) -> Self {
        let ends = [host.inside(|| attach(tap)), guest.inside(|| attach(card))];
        let stopped = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let stopped = Arc::clone(&stopped);
            move || carry(&ends, &stopped)
        });
        Self { stopped, thread: Some(thread) }
    }
}

impl Drop for Plug {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its devices are gone when the machines are, which is as good.
            let _ = thread.join();
        }
    }
}

fn carry([one, other]: &[File; 2], stopped: &AtomicBool) {
    while !stopped.load(Ordering::Relaxed) {
        let mut waiting = [one, other].map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN));
        // An interrupted wait is a look too early, no more.
        let _ = poll(&mut waiting, PollTimeout::from(BETWEEN_LOOKS));
        pass_on(one, other);
        pass_on(other, one);
    }
}

/// A frame that finds no place is lost, as on a wire.
fn pass_on(mut from: &File, mut to: &File) {
    let mut frame = [0; LONGEST];
    loop {
        match from.read(&mut frame) {
            Ok(length) => {
                let _ = to.write(&frame[..length]);
            }
            Err(fault) if fault.kind() == ErrorKind::Interrupted => {}
            // Nothing waits, or the device is down.
            Err(_) => return,
        }
    }
}

/// The other side of a tap device of the caller's namespace, which is made if there is none.
fn attach(name: &str) -> File {
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")
        .unwrap_or_else(|fault| {
            panic!("this test needs /dev/net/tun, for reading and writing: {fault}")
        });
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_flags: libc::c_short::try_from(libc::IFF_TAP | libc::IFF_NO_PI).expect("flags"),
        },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    #[expect(unsafe_code, reason = "no safe wrapper attaches to a tap device")]
    // SAFETY: the kernel reads and writes a live request of the size it expects.
    let outcome = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    assert_eq!(outcome, 0, "tap device {name}: {}", std::io::Error::last_os_error());
    device
}
