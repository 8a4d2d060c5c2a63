//! Which objects of the kernel would two processes of a host share?
//!
//! Where this kernel has none of a kind, there is nothing of that kind to reach.

use std::ffi::{CString, c_int, c_long};
use std::ptr;

use serde::{Deserialize, Serialize};

/// The session's keyring, which children inherit (keyrings(7)).
const SESSION_KEYRING: c_long = -3;
const KEYCTL_UNLINK: c_long = 9;
/// One page is the least.
const SIZE: usize = 4096;

/// How the objects are found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::verify) struct Objects {
    /// A System V shared memory segment: its key and its number.
    pub(in crate::verify) memory: Option<(c_int, c_int)>,
    /// The name of a POSIX message queue.
    pub(in crate::verify) queue: Option<CString>,
    /// The description of a key of type `user`.
    pub(in crate::verify) key: Option<CString>,
}

/// The objects, removed with this.
pub(super) struct Ipc {
    objects: Objects,
    key: Option<c_long>,
}

impl Ipc {
    pub(super) fn make(canary: &str) -> Ipc {
        let name = format!("outgate-verify-{}", &canary[..8]);
        let (description, queue) = (c_string(&name), c_string(&format!("/{name}")));
        let key = add_key(&description, canary);
        let objects = Objects {
            memory: segment(canary),
            queue: make_queue(&queue).then_some(queue),
            key: key.map(|_| description),
        };
        Ipc { objects, key }
    }

    pub(super) fn objects(&self) -> Objects {
        self.objects.clone()
    }
}

impl Drop for Ipc {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "no safe wrapper removes these objects")]
        // SAFETY: numbers and a string that lives; what isn't there any more is an error that
        // nobody needs.
        unsafe {
            if let Some((_, number)) = self.objects.memory {
                libc::shmctl(number, libc::IPC_RMID, ptr::null_mut());
            }
            if let Some(name) = &self.objects.queue {
                libc::mq_unlink(name.as_ptr());
            }
            if let Some(key) = self.key {
                libc::syscall(libc::SYS_keyctl, KEYCTL_UNLINK, key, SESSION_KEYRING);
            }
        }
    }
}

fn c_string(text: &str) -> CString {
    CString::new(text).expect("hexadecimal digits and letters")
}

fn segment(canary: &str) -> Option<(c_int, c_int)> {
    let key = c_int::from_str_radix(&canary[..7], 16).ok()?;
    #[expect(unsafe_code, reason = "no safe wrapper makes shared memory of System V")]
    // SAFETY: the segment is new, so nobody else writes to it; the copy is shorter than it is.
    unsafe {
        let number = libc::shmget(key, SIZE, libc::IPC_CREAT | libc::IPC_EXCL | 0o600);
        if number < 0 {
            return None;
        }
        let place = libc::shmat(number, ptr::null(), 0);
        if place.addr() != usize::MAX {
            ptr::copy_nonoverlapping(canary.as_ptr(), place.cast(), canary.len());
            libc::shmdt(place);
        }
        Some((key, number))
    }
}

fn make_queue(name: &CString) -> bool {
    #[expect(unsafe_code, reason = "no safe wrapper makes a message queue")]
    // SAFETY: the name lives until the call returns; no attributes are the usual ones.
    let queue = unsafe {
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
        libc::mq_open(name.as_ptr(), flags, 0o600, ptr::null_mut::<libc::mq_attr>())
    };
    if queue < 0 {
        return false;
    }
    #[expect(unsafe_code, reason = "a descriptor that comes as a number")]
    // SAFETY: it was just opened, and nobody else has it.
    unsafe {
        libc::mq_close(queue);
    }
    true
}

fn add_key(description: &CString, canary: &str) -> Option<c_long> {
    #[expect(unsafe_code, reason = "no safe wrapper adds a key")]
    // SAFETY: the strings live until the call returns, and the length is the last one's.
    let key = unsafe {
        let (kind, text) = (c"user".as_ptr(), canary.as_ptr());
        let call = libc::SYS_add_key;
        libc::syscall(call, kind, description.as_ptr(), text, canary.len(), SESSION_KEYRING)
    };
    (key > 0).then_some(key)
}
