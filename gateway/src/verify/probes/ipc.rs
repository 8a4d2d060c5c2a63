//! Are objects of the kernel shared with the host?

use std::ffi::{CStr, c_int, c_long};
use std::ptr;

use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

/// Shared memory, message queues and keys that the witness has made.
pub(super) fn any(brief: &Brief, finding: &mut Finding) {
    let objects = &brief.objects;
    if let Some((key, number)) = objects.memory
        && finds_memory(key, number)
    {
        finding.open("shared memory of the host can be reached");
    }
    if objects.queue.as_deref().is_some_and(finds_queue) {
        finding.open("a message queue of the host can be opened");
    }
    if objects.key.as_deref().is_some_and(finds_key) {
        finding.open("a key of the caller can be found");
    }
}

fn finds_memory(key: c_int, number: c_int) -> bool {
    #[expect(unsafe_code, reason = "no safe wrapper looks for shared memory of System V")]
    // SAFETY: numbers; what is mapped is read by nobody, and unmapped with the process.
    unsafe {
        let found = libc::shmget(key, 0, 0) >= 0;
        let mapped = libc::shmat(number, ptr::null(), libc::SHM_RDONLY).addr() != usize::MAX;
        found || mapped
    }
}

fn finds_queue(name: &CStr) -> bool {
    #[expect(unsafe_code, reason = "no safe wrapper opens a message queue")]
    // SAFETY: the name lives until the call returns.
    let queue = unsafe { libc::mq_open(name.as_ptr(), libc::O_RDONLY) };
    queue >= 0
}

fn finds_key(description: &CStr) -> bool {
    const NO_KEYRING: c_long = 0;
    #[expect(unsafe_code, reason = "no safe wrapper asks for a key")]
    // SAFETY: both strings live until the call returns; there is nothing to call out with.
    let key = unsafe {
        let (kind, description) = (c"user".as_ptr(), description.as_ptr());
        let nothing = ptr::null::<u8>();
        libc::syscall(libc::SYS_request_key, kind, description, nothing, NO_KEYRING)
    };
    key >= 0
}
