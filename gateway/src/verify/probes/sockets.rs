//! Can a Unix socket of the host be connected to?

use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

pub(super) fn management(brief: &Brief, finding: &mut Finding) {
    try_all(brief.management.iter().map(|path| path.as_path()), finding);
}

pub(super) fn named(brief: &Brief, finding: &mut Finding) {
    try_all(brief.named_sockets.iter().map(|path| path.as_path()), finding);
}

/// They belong to a network namespace.
pub(super) fn nameless(brief: &Brief, finding: &mut Finding) {
    for name in &brief.abstract_sockets {
        if SocketAddrUnix::new_abstract_name(name).is_ok_and(|address| is_there(&address)) {
            let name = String::from_utf8_lossy(name);
            finding.open(format_args!("@{} can be connected to", name.escape_debug()));
        }
    }
}

fn try_all<'a>(paths: impl Iterator<Item = &'a Path>, finding: &mut Finding) {
    for path in paths {
        if SocketAddrUnix::new(path).is_ok_and(|address| is_there(&address)) {
            finding.open(format_args!("{} can be connected to", path.display()));
        }
    }
}

/// Whether anybody listens, in whatever way it is spoken to.
fn is_there(address: &SocketAddrUnix) -> bool {
    [SocketType::STREAM, SocketType::SEQPACKET, SocketType::DGRAM].into_iter().any(|kind| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let Ok(socket) = socket_with(AddressFamily::UNIX, kind, flags, None) else { return false };
        match connect(&socket, address) {
            Ok(()) => true,
            // Its queue is full, but it has one.
            Err(error) => error == Errno::AGAIN,
        }
    })
}
