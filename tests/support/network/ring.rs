//! How does no packet get lost between the kernel and a test?
//!
//! A packet socket (packet(7)) with a ring that both share (`PACKET_RX_RING`, version 2): the queue
//! of an ordinary socket holds a few hundred packets, and only the machine's root may make it
//! longer.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, LinkAddr, SockFlag, SockType, SockaddrLike, bind, socket};

/// Of one packet: the kernel's notes, and its headers.
const FRAME: usize = 512;
/// More packets than any test sends between two looks.
const FRAMES: usize = 1 << 16;
const BLOCK: usize = 1 << 16;

/// A packet socket whose packets lie in memory until they are taken.
pub(super) struct Ring {
    socket: OwnedFd,
    memory: NonNull<u8>,
    at: usize,
}

// SAFETY: the memory belongs to this value alone and lives until it is dropped.
#[expect(unsafe_code, reason = "a pointer does not say whose its memory is")]
unsafe impl Send for Ring {}

/// One packet.
pub(super) struct Framed {
    /// Whether this end sent it.
    pub(super) outgoing: bool,
    /// From the link-layer header on, cut off behind its headers.
    pub(super) bytes: Vec<u8>,
}

impl Ring {
    /// Every packet of this interface from now on.
    pub(super) fn new(interface: &str) -> io::Result<Self> {
        let protocol = u16::try_from(libc::ETH_P_ALL).expect("a small number");
        let socket = packet_socket(interface, 0)?;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set(&socket, libc::PACKET_VERSION, &version)?;
        let number = |count: usize| libc::c_uint::try_from(count).expect("a small number");
        let request = libc::tpacket_req {
            tp_block_size: number(BLOCK),
            tp_block_nr: number(FRAMES * FRAME / BLOCK),
            tp_frame_size: number(FRAME),
            tp_frame_nr: number(FRAMES),
        };
        set(&socket, libc::PACKET_RX_RING, &request)?;
        let memory = map(&socket)?;
        bind_to(&socket, interface, protocol)?;
        Ok(Self { socket, memory, at: 0 })
    }

    /// The next packet, if one waits.
    pub(super) fn next(&mut self) -> Option<Framed> {
        let link = size_of::<libc::tpacket2_hdr>().next_multiple_of(16);
        #[expect(unsafe_code, reason = "the ring is plain memory")]
        // SAFETY: the frame lies inside the mapping, aligned as the kernel aligns it; while its
        // status says so it is ours alone, and afterwards it is not looked at.
        unsafe {
            let frame = self.memory.add(self.at * FRAME);
            let status = AtomicU32::from_ptr(frame.cast().as_ptr());
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return None;
            }
            let header = frame.cast::<libc::tpacket2_hdr>().read();
            let address = frame.add(link).cast::<libc::sockaddr_ll>().read();
            let length = usize::try_from(header.tp_snaplen).expect("it is in memory");
            let start = frame.add(usize::from(header.tp_mac));
            let bytes = std::slice::from_raw_parts(start.as_ptr(), length).to_vec();
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.at = (self.at + 1) % FRAMES;
            Some(Framed { outgoing: address.sll_pkttype == libc::PACKET_OUTGOING, bytes })
        }
    }

    /// How many packets found no place since the last look.
    pub(super) fn lost(&self) -> io::Result<u32> {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut size = size_in_bytes::<libc::tpacket_stats>();
        #[expect(unsafe_code, reason = "no safe wrapper reads this option")]
        // SAFETY: the kernel writes no more than `size` bytes into a live value of that size.
        let outcome = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut size,
            )
        };
        done(outcome)?;
        Ok(statistics.tp_drops)
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the mapping was made by hand")]
        // SAFETY: it was mapped with this length, and nothing points into it any more.
        let outcome = unsafe { libc::munmap(self.memory.as_ptr().cast(), FRAME * FRAMES) };
        debug_assert_eq!(outcome, 0, "what was mapped can be unmapped");
    }
}

/// A packet socket of one interface that receives this protocol, or nothing with 0.
pub(super) fn packet_socket(interface: &str, protocol: u16) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
    bind_to(&socket, interface, protocol)?;
    Ok(socket)
}

fn bind_to(socket: &OwnedFd, interface: &str, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).expect("a small number"),
        sll_protocol: protocol.to_be(),
        sll_ifindex: i32::try_from(if_nametoindex(interface)?).expect("an index is an i32"),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    #[expect(unsafe_code, reason = "a link-layer address has no safe constructor")]
    // SAFETY: the pointer is to a live address of the family that it says.
    let address = unsafe { LinkAddr::from_raw((&raw const address).cast(), None) };
    Ok(bind(socket.as_raw_fd(), &address.expect("it says its family"))?)
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    #[expect(unsafe_code, reason = "no safe wrapper sets these options")]
    // SAFETY: the kernel reads no more than the size of a live value.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            (&raw const *value).cast(),
            size_in_bytes::<T>(),
        )
    };
    done(outcome)
}

fn map(socket: &OwnedFd) -> io::Result<NonNull<u8>> {
    #[expect(unsafe_code, reason = "the kernel's side of the ring is made by mmap(2)")]
    // SAFETY: a new mapping, at a place of the kernel's choice, of the ring's own length.
    let memory = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (length, descriptor) = (FRAME * FRAMES, socket.as_raw_fd());
        libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED, descriptor, 0)
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(memory.cast()).expect("a mapping is not at 0"))
}

fn done(outcome: libc::c_int) -> io::Result<()> {
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn size_in_bytes<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("a small structure")
}
