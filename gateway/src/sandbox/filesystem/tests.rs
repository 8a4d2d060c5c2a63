//! What does a command see, and what can it do about it? Tried as PID 1 of real namespaces.

mod stage;
mod values;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use self::stage::{Stage, attack, building, inside, shell};
use super::*;

#[test]
fn shows_the_host_as_it_is_but_for_what_is_new() {
    inside(Stage::new, |stage| {
        fs::write(stage.home().join("made"), "by the command").unwrap();
        assert_eq!(shell("cd /usr/bin && test -e env && echo there"), "there");
        assert_eq!(fs::read_to_string(stage.home().join("file")).unwrap(), "of the host");
        for folder in ["/tmp", "/dev/shm"] {
            assert_eq!(
                shell(&format!("ls -A {folder}; echo x > {folder}/x && cat {folder}/x")),
                "x"
            );
        }
        // Beside ours, only the host's links.
        for folder in ["/run", "/var/run/"] {
            let found = shell(&format!("find {folder} -mindepth 1 -maxdepth 1 ! -type l | sort"));
            let names: Vec<_> = found.lines().map(|path| path.rsplit('/').next()).collect();
            assert_eq!(names, [Some("lock"), Some("outgate")], "{folder}");
        }
        assert_eq!(
            shell("test -e /.outgate-host || grep -c outgate-host /proc/self/mountinfo"),
            "0"
        );
        assert_ne!(shell("touch /x 2>&1"), "");
    });
}

#[test]
fn has_processes_and_devices_of_its_own() {
    inside(Stage::new, |_| {
        assert!(shell("echo /proc/[0-9]*").split(' ').count() < 6);
        assert_eq!(shell("head -c 3 /dev/zero | wc -c; echo gone > /dev/null"), "3");
        let devices = shell("ls /dev");
        for name in ["full", "null", "ptmx", "pts", "random", "shm", "tty", "urandom", "zero"] {
            assert!(devices.lines().any(|device| device == name), "{name} in {devices}");
        }
        // Whatever disks and terminals the host has, none has a name here.
        assert_eq!(shell("find /dev -type b; ls -A /dev/pts"), "ptmx");
        for file in ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent"] {
            assert_eq!(shell(&format!("test -w {file} && echo writable; true")), "", "{file}");
        }
    });
}

#[test]
fn asks_the_gateway_for_names() {
    inside(Stage::new, |_| {
        let expected = "nameserver 198.18.0.1\nnameserver fd6f:7574:6761:7465::1";
        assert_eq!(shell("cat /etc/resolv.conf"), expected);
        assert_eq!(shell("(echo x > /etc/resolv.conf) 2>/dev/null || echo refused"), "refused");
    });
}

#[test]
fn trusts_the_ca_where_clients_look() {
    inside(Stage::new, |stage| {
        let trust = &stage.trust();
        assert_eq!(shell("cat /run/outgate/ca.pem"), trust.ca.trim());
        let system =
            trust::BUNDLES.iter().filter(|path| fs::metadata(path).is_ok_and(|m| m.is_file()));
        for path in system {
            assert_eq!(fs::read_to_string(path).unwrap(), trust.bundle, "{path}");
        }
        let (name, ca) = &trust.folder[0];
        if fs::metadata("/etc/ssl/certs").is_ok() {
            assert_eq!(&fs::read_to_string(format!("/etc/ssl/certs/{name}")).unwrap(), ca);
        }
        assert_eq!(fs::read(trust_paths().java).unwrap(), trust.java);
        for path in browsers::policies() {
            assert_eq!(fs::read_to_string(&path).unwrap(), trust.policy, "{}", path.display());
        }
        assert_eq!(shell("grep -r 'PRIVATE KEY' /run/outgate; true"), "");
    });
}

#[test]
fn shows_the_sandbox_s_own_folder_at_the_root() {
    let stage = || {
        let stage = Stage::new();
        fs::create_dir_all(stage.root().join(".agents")).unwrap();
        fs::write(stage.root().join(".agents/hooks.json"), "{}").unwrap();
        fs::write(stage.root().join("notes.txt"), "notes").unwrap();
        // An earlier command could have left it.
        symlink(stage.state_dir(), stage.root().join("workspace")).unwrap();
        stage
    };
    inside(stage, |stage| {
        assert_eq!(shell("cat /.agents/hooks.json /notes.txt"), "{}notes");
        assert_eq!(shell("ls -A /workspace/"), "");
        fs::write("/.agents/made", "inside").unwrap();
        assert!(stage.is_hidden(&stage.state_dir().join("ca.key")));
    });
}

#[test]
fn a_link_put_in_the_place_of_the_sandbox_s_own_folder_leads_nowhere() {
    let replace = |stage: &Stage| {
        let other = stage.root().with_file_name("other");
        fs::rename(stage.root(), &other).unwrap();
        symlink(other, stage.root()).unwrap();
    };
    building(Stage::new, replace, |built, stage| {
        let refused = built.unwrap_err().to_string();
        assert!(refused.contains(&format!("find {}", stage.root().display())), "{refused}");
    });
}

#[test]
fn a_link_put_on_the_way_to_the_working_directory_leads_nowhere() {
    let replace = |stage: &Stage| {
        let working = stage.working();
        let on_the_way = working.parent().unwrap();
        let (moved, other) = (on_the_way.with_file_name("moved"), on_the_way.with_file_name("c"));
        fs::rename(on_the_way, moved).unwrap();
        fs::create_dir_all(other.join("b")).unwrap();
        symlink(root::on_host(&other), on_the_way).unwrap();
    };
    building(
        || Stage::new().working_in_shared_memory(),
        replace,
        |built, _| {
            let refused = built.unwrap_err().to_string();
            assert!(refused.contains("bring in /dev/shm/"), "{refused}");
        },
    );
}

#[test]
fn a_link_put_on_the_way_to_a_secret_does_not_uncover_it() {
    let replace = |stage: &Stage| {
        fs::rename(stage.home().join("own"), stage.home().join("moved")).unwrap();
        symlink(stage.home().join("moved"), stage.home().join("own")).unwrap();
    };
    building(Stage::with_secrets, replace, |built, _| {
        let refused = built.unwrap_err().to_string();
        assert!(refused.contains("find") && refused.contains("home/own"), "{refused}");
    });
}

#[test]
fn hides_files_folders_and_sockets_for_good() {
    inside(Stage::with_secrets, |stage| {
        for path in stage.secrets() {
            assert!(stage.is_hidden(&path), "{}", path.display());
            let name = path.display();
            for attempt in [
                format!("umount {name}"),
                format!("umount -l {name}"),
                format!("rm -f {name}"),
                format!("mv {name} {name}.moved"),
                format!("echo x > {name}"),
                format!("cat /proc/1/root{name} | grep SECRET"),
                format!("ln {name} {name}.linked"),
            ] {
                let said = shell(&format!("({attempt}) >/dev/null 2>&1 && echo done; true"));
                assert_eq!(said, "", "{attempt}");
            }
            assert!(stage.is_hidden(&path));
        }
        let socket = stage.home().join("socket");
        assert!(std::os::unix::net::UnixStream::connect(socket).is_err());
    });
}

#[test]
fn hides_a_file_wherever_else_it_is_visible() {
    let stage = || {
        let stage = Stage::with_secrets();
        // The sandbox's own folder shows a part of the home a second time.
        let stage = stage.rooted_in_home();
        fs::create_dir(stage.root().join("workspace")).unwrap();
        fs::write(stage.root().join("workspace/token"), "SECRET").unwrap();
        fs::write(stage.root().join("workspace/beside"), "").unwrap();
        stage.hide("root/workspace/token")
    };
    inside(stage, |stage| {
        assert_eq!(shell("cat /workspace/token"), "");
        assert_eq!(fs::read_to_string(stage.root().join("workspace/token")).unwrap(), "");
        // A folder around a secret can't be moved to where there is no mask.
        for folder in [".local", ".local/state"] {
            let from = stage.home().join(folder);
            let to = stage.root().join("workspace/moved");
            assert!(fs::rename(&from, &to).is_err(), "{folder}");
        }
    });
}

#[test]
fn hides_parts_and_views_that_the_host_shows_elsewhere() {
    let stage = || {
        let stage = Stage::with_secrets();
        fs::create_dir(stage.state_dir().join("inner")).unwrap();
        fs::write(stage.state_dir().join("inner/token"), "SECRET").unwrap();
        // As a backup or a chroot would have it on the host.
        stage
            .showing("home/.local/state/outgate/inner", "home/backup")
            .showing("home/.local/state/outgate/ca.key", "home/key")
            .showing("/proc", "home/chroot/proc")
    };
    inside(stage, |stage| {
        for name in ["backup", "key", "chroot/proc"] {
            assert!(stage.is_hidden(&stage.home().join(name)), "{name}");
        }
    });
}

#[test]
fn no_namespace_of_its_own_undoes_a_mask() {
    inside(Stage::with_secrets, |stage| {
        let said = attack(stage.home());
        assert_eq!(said, "unshare: ENOSPC", "a mount namespace was made inside");
        assert!(stage.is_hidden(&stage.state_dir().join("ca.key")));
    });
}

#[test]
fn a_secret_in_a_folder_of_its_own_stays_hidden_when_it_is_replaced() {
    let stage = || {
        let stage = Stage::with_secrets();
        let (old, new) = (stage.home().join("own/env.json"), stage.home().join("new.json"));
        let (ready, done) = (stage.home().join("ready"), stage.home().join("done"));
        thread::spawn(move || {
            while !ready.exists() {
                thread::sleep(Duration::from_millis(5));
            }
            fs::write(&new, "NEW SECRET").unwrap();
            fs::rename(&new, &old).unwrap();
            fs::write(done, "").unwrap();
        });
        stage
    };
    inside(stage, |stage| {
        fs::write(stage.home().join("ready"), "").unwrap();
        while !stage.home().join("done").exists() {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(shell(&format!("ls -A {}", stage.home().join("own").display())), "");
    });
}

#[test]
fn makes_what_a_source_brought_read_only() {
    let stage = || {
        let stage = Stage::new().rooted_in_home();
        fs::create_dir_all(stage.root().join("workspace/repo")).unwrap();
        fs::write(stage.root().join("workspace/repo/file"), "kept").unwrap();
        symlink("/etc", stage.root().join("workspace/link")).unwrap();
        stage
    };
    inside(stage, |stage| {
        make_read_only(Path::new("/workspace/repo")).unwrap();
        let by_host = stage.root().join("workspace/repo");
        for folder in [Path::new("/workspace/repo"), &by_host] {
            assert!(fs::write(folder.join("file"), "changed").is_err());
            assert!(fs::remove_file(folder.join("file")).is_err());
        }
        assert!(fs::rename("/workspace/repo", "/workspace/other").is_err());
        fs::write("/workspace/beside", "").unwrap();
        let refused = make_read_only(Path::new("/workspace/link/hosts")).unwrap_err().to_string();
        assert!(refused.contains("/workspace/link/hosts"), "{refused}");
    });
}

#[test]
fn refuses_a_root_with_a_name_that_the_machine_has() {
    for name in ["etc", "tmp", "run", "proc"] {
        let stage = Stage::new();
        fs::create_dir(stage.root().join(name)).unwrap();
        let refused = stage.plan().unwrap_err().to_string();
        assert!(refused.contains(&format!("the machine has a /{name} already")), "{refused}");
    }
}

#[test]
fn refuses_a_secret_that_has_another_name() {
    let stage = Stage::with_secrets();
    fs::hard_link(stage.home().join("env.json"), stage.home().join("copy")).unwrap();
    let refused = stage.plan().unwrap_err().to_string();
    assert!(refused.contains("env.json has 2 names (hard links)"), "{refused}");
    let stage = Stage::with_secrets();
    fs::hard_link(stage.state_dir().join("ca.key"), stage.home().join("copy")).unwrap();
    let refused = stage.plan().unwrap_err().to_string();
    assert!(refused.contains("ca.key has 2 names (hard links)"), "{refused}");
}

#[test]
fn lets_the_files_of_sandboxes_have_many_names() {
    let stage = Stage::with_secrets();
    let root = stage.state_dir().join("environments/one/root");
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("file"), "").unwrap();
    fs::hard_link(root.join("file"), root.join("copy")).unwrap();
    stage.plan().unwrap();
}

#[test]
fn refuses_to_hide_what_the_command_works_in() {
    let stage = Stage::new().working_in(".local/state/outgate");
    let refused = stage.plan().unwrap_err().to_string();
    assert!(refused.contains("holds the working directory"), "{refused}");
}

#[test]
fn a_path_of_any_bytes_survives_the_way_into_the_sandbox() {
    use std::os::unix::ffi::OsStringExt;
    let odd = PathBuf::from(std::ffi::OsString::from_vec(b"/a\xff/b".to_vec()));
    let hidden = Hidden { path: odd, kind: hidden::Kind::Socket };
    let text = serde_json::to_string(&hidden).unwrap();
    assert_eq!(serde_json::from_str::<Hidden>(&text).unwrap(), hidden);
}
