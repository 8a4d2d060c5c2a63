//! What can a command in a sandbox reach, and what of it leaves?

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};
use outgate_tests::prelude::*;
use socket2::{Domain, Protocol, Socket, Type};

const SOON: Duration = Duration::from_secs(5);
const PORTS: [u16; 9] = [1, 22, 53, 80, 443, 853, 6379, 8080, 65535];
/// Where an origin would be, if anything came to it.
const EVIL: &str = "11.22.33.66";
const EVIL_V6: &str = "2606:4700::1111";

fn allowing(domain: &str) -> serde_json::Value {
    json!({"network": {"allowlist": [{"domain": domain, "transform": {"X-Key": "s3cret"}}]}})
}

#[test]
fn a_client_that_knows_no_proxy_is_governed() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").start();
        let evil = world.https("evil.example.test").start();
        let run = world.run().environment(&allowing("api.example.com"));
        let got = run.finish(&["curl", "-sS", "--noproxy", "*", "https://api.example.com/"]);
        assert_eq!(got.code(), 0, "{got:?}");
        assert_eq!(api.requests()[0].header("x-key"), Some("s3cret"));
        for url in ["https://evil.example.test/", "http://evil.example.test/"] {
            let refused = run.finish(&["curl", "-sS", url]);
            let told: serde_json::Value = serde_json::from_slice(&refused.stdout).unwrap();
            assert_eq!(told["error"]["details"][0]["reason"], "domain_not_allowed", "{refused:?}");
        }
        assert_eq!(evil.connections(), 0);
        let verdicts: Vec<_> = run.audit().iter().map(|line| line["verdict"].clone()).collect();
        assert_eq!(verdicts, ["allow", "deny", "deny"]);
        assert_secret_absent("s3cret", &fs::read_to_string(run.audit_file()).unwrap());
    });
}

#[test]
fn without_an_environment_nothing_is_allowed() {
    isolated(|| {
        let world = world!();
        let api = world.https("api.example.com").start();
        let refused = world.run().finish(&["curl", "-sS", "https://api.example.com/"]);
        assert!(refused.stderr.contains("give --environment FILE"), "{refused:?}");
        assert!(refused.text().contains("domain_not_allowed"), "{refused:?}");
        assert_eq!(api.connections(), 0);
    });
}

#[test]
fn no_port_of_no_address_leads_past_the_gateway() {
    isolated(|| {
        let world = world!();
        let silent: Vec<_> = PORTS
            .iter()
            .flat_map(|port| [format!("{EVIL}:{port}"), format!("[{EVIL_V6}]:{port}")])
            .map(|address| world.silent(&address))
            .collect();
        let run = world.run().environment(&allowing("api.example.com"));
        let before = network::connection_attempts();
        run.inside("connects_everywhere");
        assert_eq!(network::connection_attempts(), before);
        assert!(silent.iter().all(|listener| listener.connections() == 0));
        let audit = run.audit();
        assert!(audit.iter().all(|line| line["verdict"] == "deny"), "{audit:#?}");
        let asked: BTreeSet<_> = audit.iter().filter_map(|line| line["port"].as_u64()).collect();
        assert_eq!(asked, PORTS.iter().map(|port| u64::from(*port)).collect());
    });
}

#[test]
#[ignore = "runs inside the sandbox of another test"]
fn connects_everywhere() {
    let addresses = [EVIL.to_owned(), format!("[{EVIL_V6}]"), format!("[::ffff:{EVIL}]")];
    for port in PORTS {
        for address in &addresses {
            let address: SocketAddr = format!("{address}:{port}").parse().unwrap();
            let mut stream = TcpStream::connect_timeout(&address, SOON).unwrap();
            stream.set_read_timeout(Some(SOON)).unwrap();
            // No TLS, no HTTP.
            stream.write_all(b"SSH-2.0-x\r\n").unwrap();
            let mut answer = Vec::new();
            // A reset is as good an end.
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{address}");
        }
    }
}

#[test]
fn datagrams_and_other_protocols_go_nowhere() {
    isolated(|| {
        let world = world!();
        let receivers: Vec<_> = ["11.22.33.66:443", "11.22.33.66:53", "[2606:4700::1111]:443"]
            .iter()
            .map(|address| receiver(address.parse().unwrap()))
            .collect();
        world.run().environment(&allowing("*")).inside("sends_whatever_is_no_tcp");
        for receiver in receivers {
            receiver.set_nonblocking(true).unwrap();
            assert_eq!(receiver.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
        }
    });
}

/// Linux binds no IPv6 address that is only routed here without being told to.
fn receiver(address: SocketAddr) -> UdpSocket {
    let bind = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        if address.is_ipv6() {
            socket.set_freebind_v6(true)?;
        }
        socket.bind(&address.into()).map(|()| socket.into())
    };
    bind().unwrap_or_else(|fault: io::Error| panic!("{address} can't be bound: {fault}"))
}

#[test]
#[ignore = "runs inside the sandbox of another test"]
fn sends_whatever_is_no_tcp() {
    let quic = [0xc3; 1200];
    for to in ["11.22.33.66:443", "11.22.33.66:53", "11.22.33.66:123", "[2606:4700::1111]:443"] {
        let any = if to.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
        let client = UdpSocket::bind(any).unwrap();
        client.connect(to).unwrap();
        client.set_read_timeout(Some(SOON)).unwrap();
        let started = Instant::now();
        client.send(&quic).unwrap();
        // So that a client of QUIC falls back at once.
        let error = client.recv(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{to}");
        assert!(started.elapsed() < Duration::from_secs(1), "{to}");
    }
    let none = SockFlag::empty();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        assert!(socket(family, SockType::Raw, none, None).is_err());
    }
    assert!(socket(AddressFamily::Packet, SockType::Raw, none, None).is_err());
    // ICMP without a right, where the host allows it: not in here.
    let icmp = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4));
    assert_eq!(icmp.unwrap_err().kind(), ErrorKind::PermissionDenied);
    // What a network namespace doesn't confine.
    for family in [AddressFamily::Vsock, AddressFamily::Alg, AddressFamily::Tipc] {
        let refused = socket(family, SockType::Datagram, none, None);
        assert_eq!(refused.unwrap_err(), Errno::EAFNOSUPPORT, "{family:?}");
    }
}

#[test]
fn what_is_local_to_the_host_is_not_local_inside() {
    isolated(|| {
        let world = world!();
        let host = TcpListener::bind("127.0.0.1:8123").unwrap();
        let name = UnixAddr::from_abstract_name("outgate-test").unwrap();
        let _abstract = UnixListener::bind_addr(&name).unwrap();
        let run = world.run().environment(&allowing("*"));
        run.inside("looks_for_the_host");
        host.set_nonblocking(true).unwrap();
        assert_eq!(host.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(run.audit(), [] as [serde_json::Value; 0], "loopback is the sandbox's own");
    });
}

#[test]
#[ignore = "runs inside the sandbox of another test"]
fn looks_for_the_host() {
    for address in ["127.0.0.1:8123", "127.7.7.7:443", "[::1]:80", "0.0.0.0:8123"] {
        let refused = TcpStream::connect_timeout(&address.parse().unwrap(), SOON).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{address}");
    }
    let own = TcpListener::bind("127.0.0.1:8123").unwrap();
    let client = TcpStream::connect_timeout(&own.local_addr().unwrap(), SOON).unwrap();
    assert_eq!(own.accept().unwrap().1, client.local_addr().unwrap());
    let name = UnixAddr::from_abstract_name("outgate-test").unwrap();
    assert!(UnixStream::connect_addr(&name).is_err());
    // The listeners of the gateway are not to be taken over.
    for port in [1, 53] {
        assert!(TcpListener::bind((Ipv4Addr::new(198, 18, 0, 1), port)).is_err());
        assert!(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).is_err());
    }
}

#[test]
fn root_inside_can_undo_nothing() {
    isolated(|| {
        // The user of this test is root in its namespace, so the command is too.
        let world = world!();
        let evil = world.silent("11.22.33.66:8080");
        let run = world.run().environment(&allowing("api.example.com"));
        assert_eq!(run.sh("id -u").text(), "0\n");
        run.inside("undoes_the_rules");
        assert_eq!(evil.connections(), 0);
    });
}

#[test]
#[ignore = "runs inside the sandbox of another test"]
fn undoes_the_rules() {
    let netlink = |protocol| {
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::empty(), Some(protocol)).unwrap()
    };
    // RTM_DELROUTE, RTM_NEWROUTE, RTM_SETLINK.
    for kind in [25, 24, 19] {
        let socket = netlink(SockProtocol::NetlinkRoute);
        assert_eq!(verdict(&socket, &message(kind)), Some(-libc::EPERM), "{kind}");
    }
    // nft flush ruleset: the batch is refused with its first message.
    let filter = netlink(SockProtocol::NetlinkNetFilter);
    assert_eq!(verdict(&filter, &message(0x10)), Some(-libc::EPERM));
    for switch in ["ipv4/ip_forward", "ipv4/ip_unprivileged_port_start", "ipv4/ping_group_range"] {
        assert!(fs::write(format!("/proc/sys/net/{switch}"), "1").is_err(), "{switch}");
    }
    assert!(unshare(CloneFlags::CLONE_NEWNET).is_err());
    // A namespace of its own has nothing in it, least of all a way out.
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "tail -n +2 /proc/net/route | wc -l; grep -c : /proc/net/dev"]);
    #[expect(unsafe_code, reason = "only a child without threads can enter a user namespace")]
    // SAFETY: the closure makes one system call.
    unsafe {
        shell.pre_exec(|| Ok(unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?));
    }
    assert_eq!(String::from_utf8_lossy(&shell.output().unwrap().stdout), "0\n1\n");
}

/// struct nlmsghdr, and zeros enough for any request's own struct.
fn message(kind: u16) -> Vec<u8> {
    let mut message = 48_u32.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(5_u16.to_ne_bytes());
    message.resize(48, 0);
    message
}

/// The code in the kernel's answer.
fn verdict(socket: &impl AsRawFd, message: &[u8]) -> Option<i32> {
    send(socket.as_raw_fd(), message, MsgFlags::empty()).expect("the kernel listens");
    let mut answer = [0; 256];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT).ok()?;
    answer[..length].get(16..20)?.try_into().ok().map(i32::from_ne_bytes)
}

#[test]
fn two_commands_of_one_environment_run_side_by_side() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let run = world.run().environment(&allowing("api.example.com"));
        let script = "curl -sS -o /dev/null -w '%{http_code}' https://api.example.com/; read line";
        let mut command = run.command(&["/bin/sh", "-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut first = command.spawn().unwrap();
        let mut code = [0; 3];
        first.stdout.as_mut().unwrap().read_exact(&mut code).unwrap();
        assert_eq!(&code, b"200");
        assert_eq!(run.sh(&script.replace("; read line", "")).text(), "200");
        drop(first.stdin.take());
        first.wait().unwrap();
    });
}
