//! Which system calls would lead out of the sandbox?
//!
//! A filter of seccomp(2) refuses them, in every numbering that a process may call the kernel with:
//!
//! | call | why |
//! |---|---|
//! | `ioctl` with `TIOCSTI`, `TIOCLINUX` | types into the terminal that outgate was started from |
//! | `socket` of a family other than Unix, IP, netlink, packet | a network namespace does not confine it: `AF_VSOCK` reaches the host of a virtual machine |
//! | `io_uring_setup` | makes sockets of any family where no filter sees it |
//! | `add_key`, `request_key`, `keyctl` | the caller's keyring, and host programs that the kernel starts for a key, one of which asks the host's DNS |
//!
//! The rest is the kernel's to refuse: there are no capabilities.

use std::io;

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W,
    SECCOMP_MODE_FILTER, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS,
    sock_filter, sock_fprog,
};

/// Offsets in struct seccomp_data.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The low half of an argument, on a little-endian machine. The kernel takes no more than that of
/// an `ioctl`'s request and of a family; a filter that looked at all 64 bits could be passed by
/// with others set (CVE-2019-10063).
const FIRST: u32 = 16;
const SECOND: u32 = 24;

const FAMILIES: [i32; 5] =
    [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET];
const REQUESTS: [u32; 2] = [0x5412, 0x541c];
/// The same in every numbering.
const IO_URING_SETUP: u32 = 425;
/// `SYS_SOCKET` of socketcall(2), whose arguments a filter can't read.
const SOCKETCALL_SOCKET: u32 = 1;

/// The numbers of one architecture.
struct Numbering {
    architecture: u32,
    /// Bits of a number that mean something: x32 is x86-64 with one bit more.
    mask: u32,
    ioctl: &'static [u32],
    sockets: [u32; 2],
    socketcall: Option<u32>,
    keys: [u32; 3],
}

#[cfg(target_arch = "x86_64")]
const NUMBERINGS: [Numbering; 2] = [
    Numbering {
        architecture: 0xc000_003e,
        mask: !0x4000_0000,
        ioctl: &[16, 514],
        sockets: [41, 53],
        socketcall: None,
        keys: [248, 249, 250],
    },
    Numbering {
        architecture: 0x4000_0003,
        mask: !0,
        ioctl: &[54],
        sockets: [359, 360],
        socketcall: Some(102),
        keys: [286, 287, 288],
    },
];

#[cfg(target_arch = "aarch64")]
const NUMBERINGS: [Numbering; 2] = [
    Numbering {
        architecture: 0xc000_00b7,
        mask: !0,
        ioctl: &[29],
        sockets: [198, 199],
        socketcall: None,
        keys: [217, 218, 219],
    },
    Numbering {
        architecture: 0x4000_0028,
        mask: !0,
        ioctl: &[54],
        sockets: [281, 288],
        socketcall: Some(102),
        keys: [309, 310, 311],
    },
];

/// Puts the filter on this process and all that come after it; `no_new_privs` must be set.
pub(super) fn install() -> io::Result<()> {
    let mut filter = program();
    let length = u16::try_from(filter.len()).expect("the filter is short");
    let program = sock_fprog { len: length, filter: filter.as_mut_ptr() };
    #[expect(unsafe_code, reason = "no safe wrapper installs a seccomp filter")]
    // SAFETY: `program` and the filter that it points to live until the call returns; the kernel
    // copies them.
    let result =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &raw const program) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn program() -> Vec<sock_filter> {
    let mut program = vec![load(ARCHITECTURE)];
    for numbering in NUMBERINGS {
        program.extend(only_if(numbering.architecture, calls(&numbering)));
    }
    // A numbering that nothing is known of.
    program.push(end(SECCOMP_RET_KILL_PROCESS));
    program
}

/// Ends in every case.
fn calls(numbering: &Numbering) -> Vec<sock_filter> {
    let mut calls = vec![load(NUMBER), statement(BPF_ALU | BPF_AND | BPF_K, numbering.mask)];
    for ioctl in numbering.ioctl {
        calls.extend(only_if(*ioctl, refuse(SECOND, &REQUESTS, libc::EPERM)));
    }
    for socket in numbering.sockets {
        calls.extend(only_if(socket, allow(FIRST, &FAMILIES, libc::EAFNOSUPPORT)));
    }
    if let Some(socketcall) = numbering.socketcall {
        let refused = refuse(FIRST, &[SOCKETCALL_SOCKET], libc::EAFNOSUPPORT);
        calls.extend(only_if(socketcall, refused));
    }
    for call in numbering.keys.into_iter().chain([IO_URING_SETUP]) {
        calls.extend(only_if(call, vec![error(libc::ENOSYS)]));
    }
    calls.push(end(SECCOMP_RET_ALLOW));
    calls
}

/// Refuses these values of an argument, allows every other.
fn refuse(argument: u32, values: &[u32], code: i32) -> Vec<sock_filter> {
    let mut block = vec![load(argument)];
    for value in values {
        block.extend(only_if(*value, vec![error(code)]));
    }
    block.push(end(SECCOMP_RET_ALLOW));
    block
}

/// Allows these values of an argument, refuses every other.
fn allow(argument: u32, values: &[i32], code: i32) -> Vec<sock_filter> {
    let mut block = vec![load(argument)];
    for value in values {
        block.extend(only_if(value.cast_unsigned(), vec![end(SECCOMP_RET_ALLOW)]));
    }
    block.push(error(code));
    block
}

/// Runs `block`, which ends in every case, only if what was loaded is `value`.
fn only_if(value: u32, block: Vec<sock_filter>) -> Vec<sock_filter> {
    let over = u8::try_from(block.len()).expect("a block is short enough to jump over");
    let mut guarded = vec![sock_filter { jf: over, ..statement(BPF_JMP | BPF_JEQ | BPF_K, value) }];
    guarded.extend(block);
    guarded
}

fn load(offset: u32) -> sock_filter {
    statement(BPF_LD | BPF_W | BPF_ABS, offset)
}

fn error(code: i32) -> sock_filter {
    end(SECCOMP_RET_ERRNO | code.cast_unsigned())
}

fn end(result: u32) -> sock_filter {
    statement(BPF_RET | BPF_K, result)
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: u16::try_from(code).expect("a code is 16 bits"), jt: 0, jf: 0, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter makes of a call: a machine of the instructions that it uses.
    fn judge(architecture: u32, number: u32, arguments: [u64; 2]) -> u32 {
        let mut data = Vec::new();
        data.extend(number.to_ne_bytes());
        data.extend(architecture.to_ne_bytes());
        data.extend(0u64.to_ne_bytes());
        data.extend(arguments.iter().flat_map(|argument| argument.to_ne_bytes()));
        let program = program();
        let (mut next, mut loaded) = (0, 0);
        loop {
            let instruction = program[next];
            next += 1;
            match u32::from(instruction.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    let offset = usize::try_from(instruction.k).unwrap();
                    loaded = u32::from_ne_bytes(data[offset..offset + 4].try_into().unwrap());
                }
                code if code == BPF_ALU | BPF_AND | BPF_K => loaded &= instruction.k,
                code if code == BPF_JMP | BPF_JEQ | BPF_K => {
                    let over =
                        if loaded == instruction.k { instruction.jt } else { instruction.jf };
                    next += usize::from(over);
                }
                code if code == BPF_RET | BPF_K => return instruction.k,
                code => panic!("the filter has no instruction {code:#x}"),
            }
        }
    }

    fn refused(code: i32) -> u32 {
        SECCOMP_RET_ERRNO | code.cast_unsigned()
    }

    #[test]
    fn refuses_typing_into_the_terminal_whatever_the_high_bits() {
        for numbering in &NUMBERINGS {
            for number in numbering.ioctl {
                for high in [0, 1 << 32, 0xffff_ffff_0000_0000] {
                    for request in [0x5412, 0x541c] {
                        let verdict = judge(numbering.architecture, *number, [0, request | high]);
                        assert_eq!(verdict, refused(libc::EPERM));
                    }
                    let other = judge(numbering.architecture, *number, [0x5412, 0x5413 | high]);
                    assert_eq!(other, SECCOMP_RET_ALLOW);
                }
            }
        }
    }

    #[test]
    fn refuses_sockets_that_a_network_namespace_does_not_confine() {
        let vsock = libc::AF_VSOCK;
        for numbering in &NUMBERINGS {
            for number in numbering.sockets {
                let family = |family: i32| {
                    judge(numbering.architecture, number, [family.try_into().unwrap(), 1])
                };
                for confined in FAMILIES {
                    assert_eq!(family(confined), SECCOMP_RET_ALLOW);
                }
                for other in [vsock, libc::AF_BLUETOOTH, libc::AF_ALG, 42, 0, 255] {
                    assert_eq!(family(other), refused(libc::EAFNOSUPPORT));
                }
            }
            if let Some(number) = numbering.socketcall {
                let call = |call| judge(numbering.architecture, number, [call, 0]);
                assert_eq!(call(1), refused(libc::EAFNOSUPPORT));
                assert_eq!(call(3), SECCOMP_RET_ALLOW);
            }
        }
    }

    #[test]
    fn refuses_rings_and_keys_and_nothing_else() {
        for numbering in &NUMBERINGS {
            let special = [numbering.ioctl, &numbering.sockets, numbering.socketcall.as_slice()];
            for number in 0..600 {
                let verdict = judge(numbering.architecture, number, [1, 0]);
                if number == 425 || numbering.keys.contains(&number) {
                    assert_eq!(verdict, refused(libc::ENOSYS), "{number}");
                } else if !special.concat().contains(&number) {
                    assert_eq!(verdict, SECCOMP_RET_ALLOW, "{number}");
                }
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn x32_is_no_way_around() {
        let x32 = |number: u32, arguments| judge(0xc000_003e, 0x4000_0000 | number, arguments);
        assert_eq!(x32(514, [0, 0x5412]), refused(libc::EPERM));
        assert_eq!(x32(41, [40, 1]), refused(libc::EAFNOSUPPORT));
        assert_eq!(x32(425, [0, 0]), refused(libc::ENOSYS));
        assert_eq!(x32(0, [0, 0]), SECCOMP_RET_ALLOW);
    }

    #[test]
    fn an_unknown_architecture_ends_the_process() {
        assert_eq!(judge(0xdead_beef, 0, [0, 0]), SECCOMP_RET_KILL_PROCESS);
    }

    #[test]
    fn the_numbers_are_those_of_this_machine() {
        let native = &NUMBERINGS[0];
        let number = |number: libc::c_long| u32::try_from(number).unwrap();
        assert!(native.ioctl.contains(&number(libc::SYS_ioctl)));
        assert_eq!(native.sockets, [libc::SYS_socket, libc::SYS_socketpair].map(number));
        let keys = [libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl];
        assert_eq!(native.keys, keys.map(number));
        assert_eq!(IO_URING_SETUP, number(libc::SYS_io_uring_setup));
        assert_eq!(u64::from(REQUESTS[0]), libc::TIOCSTI);
        assert_eq!(u64::from(REQUESTS[1]), libc::TIOCLINUX);
    }
}
