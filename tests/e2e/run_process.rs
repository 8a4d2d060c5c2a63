//! Is a command in a sandbox the process that it would be without, less every right?

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, Stdio};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outgate_tests::prelude::*;
use outgate_tests::run::processes_with;
use outgate_tests::wait::{SOON, wait_for};

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// Starts a script whose outputs are read here.
fn start(run: &Run, script: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = run.command(&["/bin/sh", "-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("outgate can be started");
    let output = BufReader::new(child.stdout.take().expect("it was asked for"));
    (child, output)
}

fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("a pipe can be read");
    line.trim_end().to_owned()
}

/// A number of seconds that no other run of this test sleeps.
fn unique(seconds: u32) -> String {
    format!("{seconds}.{}", std::process::id())
}

fn code(mut child: Child) -> i32 {
    let status = wait_for(SOON * 2, || child.try_wait().expect("it is ours"));
    status.expect("outgate ends").code().expect("outgate itself is not killed")
}

#[test]
fn the_command_has_no_capability_and_no_way_to_one() {
    isolated(|| {
        let status = world!().run().sh("cat /proc/self/status").text();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name} in {status}")).trim().to_owned()
        };
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            assert_eq!(field(set), "0000000000000000", "{set}");
        }
        assert_eq!((field("NoNewPrivs:").as_str(), field("Seccomp:").as_str()), ("1", "2"));
    });
}

#[test]
fn the_exit_code_is_the_commands() {
    isolated(|| {
        let run = world!().run();
        assert_eq!(run.finish(&["true"]).code(), 0);
        assert_eq!(run.sh("exit 7").code(), 7);
        assert_eq!(run.sh("exit 255").code(), 255);
        assert_eq!(run.sh("kill -TERM $$").code(), 128 + 15);
        assert_eq!(run.sh("kill -KILL $$").code(), 128 + 9);
        // A real-time signal.
        assert_eq!(run.sh("kill -40 $$").code(), 128 + 40);
    });
}

#[test]
fn what_cannot_be_run_is_told_as_env_does() {
    isolated(|| {
        let world = world!();
        let run = world.run();
        for (program, code) in [("no-such-program", 127), ("/no/such/path", 127), ("/etc", 126)] {
            let finished = run.finish(&[program]);
            assert_eq!(finished.code(), code, "{finished:?}");
            assert!(finished.stderr.contains(program), "{}", finished.stderr);
        }
        assert_eq!(world.outgate(&["run"]).code(), 64);
    });
}

#[test]
fn standard_streams_are_the_commands() {
    isolated(|| {
        let run = world!().run();
        let (mut child, mut output) = start(&run, "tr a-z A-Z; echo done >&2");
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"hello\n").unwrap();
        drop(input);
        assert_eq!(line(&mut output), "HELLO");
        assert_eq!(code(child), 0);
        let finished = run.sh("echo out; echo err >&2");
        assert_eq!(finished.text(), "out\n");
        assert!(finished.stderr.ends_with("err\n"), "{}", finished.stderr);
    });
}

#[test]
fn a_stream_that_the_command_closes_is_closed() {
    isolated(|| {
        let (child, mut output) = start(&world!().run(), "exec >&-; read line");
        let mut rest = String::new();
        // Ends while the command still runs, or the test hangs.
        output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        kill(pid(&child), Signal::SIGTERM).unwrap();
        assert_eq!(code(child), 128 + 15);
    });
}

#[test]
fn signals_are_passed_on() {
    isolated(|| {
        let run = world!().run();
        for (name, signal) in [
            ("TERM", Signal::SIGTERM),
            ("INT", Signal::SIGINT),
            ("QUIT", Signal::SIGQUIT),
            ("USR1", Signal::SIGUSR1),
            ("USR2", Signal::SIGUSR2),
            ("WINCH", Signal::SIGWINCH),
        ] {
            let script =
                format!("trap 'echo got; exit 9' {name}; echo up; while :; do read l; done");
            let (mut child, mut output) = start(&run, &script);
            let _input = child.stdin.take();
            assert_eq!(line(&mut output), "up");
            kill(pid(&child), signal).unwrap();
            assert_eq!(line(&mut output), "got", "{name}");
            assert_eq!(code(child), 9, "{name}");
        }
        let (child, mut output) = start(&run, "echo up; exec sleep 60");
        assert_eq!(line(&mut output), "up");
        kill(pid(&child), Signal::SIGTERM).unwrap();
        assert_eq!(code(child), 128 + 15);
    });
}

#[test]
fn a_hangup_is_for_the_gateway() {
    isolated(|| {
        let (child, mut output) = start(&world!().run(), "echo up; read line; exit 5");
        assert_eq!(line(&mut output), "up");
        kill(pid(&child), Signal::SIGHUP).unwrap();
        let mut child = child;
        child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
        assert_eq!(code(child), 5);
    });
}

#[test]
fn what_was_ignored_stays_ignored() {
    isolated(|| {
        let run = world!().run();
        let words = run.words(&["/bin/sh", "-c", "grep SigIgn /proc/self/status"]);
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let script = format!("trap '' INT USR1; exec '{}'", words.join("' '"));
        let mut shell = std::process::Command::new("/bin/sh");
        let finished = outgate_tests::command::run(
            shell.args(["-c", &script]).current_dir("/"),
            b"",
            SOON * 2,
        );
        let text = finished.text();
        let ignored = text.trim().rsplit('\t').next().unwrap();
        // Bits 1 and 9: SIGINT is 2, SIGUSR1 is 10. What is above 31 is the C library's business.
        assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 0x7fff_ffff, 0x202, "{text}");
    });
}

#[test]
fn orphans_are_reaped_and_end_with_the_command() {
    isolated(|| {
        let run = world!().run();
        // The orphan's end leaves no zombie behind.
        let reaped = "(sleep 0.05 & echo $! ) > /dev/shm/pid; p=$(cat /dev/shm/pid); \
                      while kill -0 $p 2>/dev/null; do :; done; echo gone";
        assert_eq!(run.sh(reaped).text(), "gone\n");
        let marker = unique(31);
        let started = Instant::now();
        let finished = run.sh(&format!("setsid sleep {marker} >/dev/null 2>&1 & exit 4"));
        assert_eq!(finished.code(), 4);
        assert!(started.elapsed() < SOON * 3);
        assert_eq!(processes_with(&marker), 0);
    });
}

#[test]
fn all_inside_dies_with_outgate() {
    isolated(|| {
        let marker = unique(27);
        let script = format!("(setsid sleep {marker} &) ; echo up; exec sleep {marker}");
        let (mut child, mut output) = start(&world!().run(), &script);
        assert_eq!(line(&mut output), "up");
        assert!(wait_until(SOON, || processes_with(&marker) >= 2));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(wait_until(SOON, || processes_with(&marker) == 0));
    });
}

#[test]
fn nobody_outside_can_be_signalled() {
    isolated(|| {
        let run = world!().run();
        // The process group of outgate is that of this test.
        assert_eq!(run.sh("kill -KILL 0").code(), 128 + 9);
        let outside = std::process::id();
        assert_eq!(run.sh(&format!("kill -0 {outside}")).code(), 1);
        // PID 1 is not to be ended from inside, nor looked into.
        let finished = run.sh("kill -KILL 1; kill -TERM 1; kill -STOP 1; echo here");
        assert_eq!((finished.text().as_str(), finished.code()), ("here\n", 0), "{finished:?}");
        for file in ["environ", "maps", "mem", "fd/0", "root/etc/passwd", "cwd/."] {
            assert_ne!(run.sh(&format!("cat /proc/1/{file}")).code(), 0, "{file}");
        }
    });
}

#[test]
fn inherited_descriptors_are_closed() {
    isolated(|| {
        let secret = network::folder().join("secret");
        fs::write(&secret, "open sesame").unwrap();
        let file = fs::File::open(&secret).unwrap();
        let number = file.as_raw_fd();
        let_be_inherited(number);
        let run = world!().run();
        let finished = run.sh(&format!("ls /proc/self/fd; cat <&{number}"));
        // `ls` itself opens the one after the standard three.
        assert_eq!(finished.text(), "0\n1\n2\n3\n", "{finished:?}");
        assert_ne!(finished.code(), 0);
    });
}

/// As a shell's `exec 9<FILE` leaves it.
fn let_be_inherited(number: i32) {
    #[expect(unsafe_code, reason = "fcntl by number")]
    // SAFETY: it changes one flag of a descriptor that the caller has open.
    let done = unsafe { libc::fcntl(number, libc::F_SETFD, 0) };
    assert_eq!(done, 0);
}
