//! What if the kernel lacks what a sandbox is made of, or won't give it?

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::prctl::set_no_new_privs;
use outgate_tests::command::{Finished, Running};
use outgate_tests::prelude::*;

const DEADLINE: Duration = Duration::from_secs(20);

#[test]
fn nothing_runs_where_namespaces_are_forbidden() {
    isolated(|| {
        let run = world!().run();
        for kind in ["user", "net", "mnt", "pid", "ipc"] {
            let switch = format!("/proc/sys/user/max_{kind}_namespaces");
            let before = fs::read_to_string(&switch).unwrap();
            fs::write(&switch, "0").unwrap();
            let refused = run.sh("echo it ran");
            fs::write(&switch, before.trim()).unwrap();
            assert_eq!((refused.code(), refused.text().as_str()), (70, ""), "{refused:?}");
            let command = format!("`sysctl -w user.max_{kind}_namespaces=10000`");
            assert!(refused.stderr.contains(&command), "{}", refused.stderr);
            assert!(refused.stderr.contains("nothing was run"), "{}", refused.stderr);
        }
        assert_eq!(run.sh("echo it ran").text(), "it ran\n");
    });
}

#[test]
fn nothing_runs_where_a_security_module_forbids_namespaces() {
    isolated(|| {
        let mut command = world!().run().command(&["echo", "it ran"]);
        refuse(&mut command, libc::SYS_unshare, None, libc::EPERM);
        let refused = finish(command);
        assert_eq!((refused.code(), refused.text().as_str()), (70, ""), "{refused:?}");
        assert!(refused.stderr.contains("seccomp=unconfined"), "{}", refused.stderr);
    });
}

#[test]
fn without_nf_tables_the_ports_that_the_environment_names_lead_to_the_gateway() {
    isolated(|| {
        let world = world!();
        let _api = world.https("api.example.com").start();
        let evil = world.silent("11.22.33.66:22");
        let run = world.run().environment(&json!({"network": {"allowlist": [
            {"domain": "api.example.com"}, {"domain": "other.example.com:8443"},
        ]}}));
        let get = |url: &str| {
            let mut command = run.command(&[
                "curl",
                "-sS",
                "-m",
                "5",
                "-o",
                "/dev/null",
                "-w",
                "%{http_code}",
                url,
            ]);
            refuse(&mut command, libc::SYS_socket, Some((2, NETFILTER)), libc::EPROTONOSUPPORT);
            finish(command)
        };
        let allowed = get("https://api.example.com/");
        assert_eq!(allowed.text(), "200", "{allowed:?}");
        assert!(allowed.stderr.contains("nf_tables is missing"), "{}", allowed.stderr);
        assert!(allowed.stderr.contains("[80, 443, 8443]"), "{}", allowed.stderr);
        for refused in [
            "http://evil.example.test/",
            "https://evil.example.test:8443/",
            "https://[2606:4700::1111]/",
        ] {
            assert_eq!(get(refused).text(), "403", "{refused}");
        }
        // Nothing listens there at all, and nothing leaves.
        assert_eq!(get("http://11.22.33.66:22/").code(), 7);
        assert_eq!(evil.connections(), 0);
        // The gateway meets loopback here, and lets nobody in.
        assert_eq!(get("http://127.0.0.1/").text(), "000");
        assert!(run.audit().iter().filter(|line| line["verdict"] == "allow").count() == 1);
    });
}

/// `NETLINK_NETFILTER`.
const NETFILTER: u32 = 12;

fn finish(mut command: Command) -> Finished {
    Running::attend(command.stdin(std::process::Stdio::null())).finish(DEADLINE)
}

/// Lets the kernel that `command` sees refuse a system call, always or where an argument is this.
fn refuse(command: &mut Command, call: libc::c_long, only: Option<(u32, u32)>, code: i32) {
    let call = u32::try_from(call).expect("numbers of calls are small");
    let step = |code: u32, k: u32, jf: u8| libc::sock_filter {
        code: u16::try_from(code).expect("codes are 16 bits"),
        jt: 0,
        jf,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let end = libc::BPF_RET | libc::BPF_K;
    let mut filter = vec![step(load, 0, 0), step(equal, call, if only.is_some() { 3 } else { 1 })];
    if let Some((argument, value)) = only {
        filter.extend([step(load, 16 + 8 * argument, 0), step(equal, value, 1)]);
    }
    filter.push(step(end, libc::SECCOMP_RET_ERRNO | code.cast_unsigned(), 0));
    filter.push(step(end, libc::SECCOMP_RET_ALLOW, 0));
    #[expect(unsafe_code, reason = "only the forked child can put a filter on itself")]
    // SAFETY: the closure makes two system calls on memory that it owns.
    unsafe {
        command.pre_exec(move || {
            set_no_new_privs()?;
            let length = u16::try_from(filter.len()).unwrap_or_default();
            let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
            match libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
}
