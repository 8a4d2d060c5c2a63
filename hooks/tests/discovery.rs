//! Which hooks are in force, whatever is done to the files?

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::stat::{Mode, SFlag, mknod};
use nix::unistd::mkfifo;
use outgate_hooks::{
    Change, Discovery, Folder, GroupState, HookSet, Look, OnFailure, Places, Root, open_root,
};
use tempfile::TempDir;

/// A sandbox's root with a working directory, and an operator's file beside it.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().expect("a file of the scene");
        for path in ["root/.agents", "root/workspace/.agents"] {
            fs::create_dir_all(folder.path().join(path)).expect("a file of the scene");
        }
        Scene { folder }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn root_file(&self) -> PathBuf {
        self.path("root/.agents/hooks.json")
    }

    fn places(&self) -> Places {
        let root = open_root(&self.path("root")).expect("a file of the scene");
        let folders = Folder::of_sandbox(&root.into(), "/workspace");
        Places { folders, ..Places::default() }
    }

    fn discovery(&self) -> Discovery {
        Discovery::new(self.places())
    }

    fn pinned(&self, memory: Option<PathBuf>) -> Discovery {
        Discovery::new(Places { pin: true, memory, ..self.places() })
    }
}

/// A file whose groups have these names.
fn file(groups: &[&str]) -> String {
    let group = |name: &&str| {
        format!(
            r#""{name}": {{"pre_tool_execution": [{{"hooks": [{{"type": "command", "command": "true"}}]}}]}}"#
        )
    };
    format!("{{{}}}", groups.iter().map(group).collect::<Vec<_>>().join(","))
}

fn names(set: &HookSet) -> Vec<&str> {
    set.groups.iter().map(|group| group.name.as_str()).collect()
}

fn changes(look: &Look) -> Vec<Change> {
    look.notices.iter().map(|notice| notice.change).collect()
}

#[tokio::test]
async fn the_operators_file_comes_first_then_the_root_then_the_working_directory() {
    let scene = Scene::new();
    fs::write(scene.path("operator.json"), file(&["gate", "operator"])).unwrap();
    fs::write(scene.root_file(), file(&["root", "gate"])).unwrap();
    fs::write(scene.path("root/workspace/.agents/hooks.json"), file(&["directory", "root"]))
        .unwrap();
    let operator = Some(scene.path("operator.json"));
    let look = Discovery::new(Places { operator, ..scene.places() }).look().await;
    assert_eq!(names(&look.hooks), ["gate", "operator", "root", "directory"]);
    assert_eq!(look.notices[1].file, "/.agents/hooks.json");
    assert_eq!(look.notices[2].file, "/workspace/.agents/hooks.json");
}

#[tokio::test]
async fn no_file_is_no_hook_and_no_failure() {
    let look = Scene::new().discovery().look().await;
    assert!(
        look.hooks.groups.is_empty() && look.hooks.broken.is_empty() && look.notices.is_empty()
    );
    let look = Discovery::new(Places::default()).look().await;
    assert!(look.hooks.groups.is_empty());
}

#[tokio::test]
async fn a_working_directory_that_is_the_root_is_read_once() {
    let scene = Scene::new();
    fs::write(scene.root_file(), file(&["a"])).unwrap();
    let root = open_root(&scene.path("root")).unwrap();
    let folders = Folder::of_sandbox(&root.into(), "/");
    let look = Discovery::new(Places { folders, ..Places::default() }).look().await;
    assert_eq!(look.notices.len(), 1);
}

#[tokio::test]
async fn a_changed_file_counts_from_the_next_event() {
    let scene = Scene::new();
    let discovery = scene.discovery();
    assert!(discovery.look().await.hooks.groups.is_empty());
    for groups in [vec!["a"], vec!["b"], vec!["b", "c"], vec![]] {
        fs::write(scene.root_file(), file(&groups)).unwrap();
        let look = discovery.look().await;
        assert_eq!((names(&look.hooks), changes(&look)), (groups, vec![Change::Loaded]));
        assert!(changes(&discovery.look().await).is_empty());
    }
}

#[tokio::test]
async fn a_file_that_breaks_or_vanishes_leaves_the_last_good_one_in_force() {
    let scene = Scene::new();
    let discovery = scene.discovery();
    fs::write(scene.root_file(), file(&["gate"])).unwrap();
    discovery.look().await;
    for text in ["", "{", "[]", r#"{"a": {}, "a": {}}"#, "\u{0}"] {
        fs::write(scene.root_file(), text).unwrap();
        let look = discovery.look().await;
        assert_eq!((names(&look.hooks), changes(&look)), (vec!["gate"], vec![Change::KeptBroken]));
        assert!(look.hooks.broken.is_empty());
    }
    fs::remove_dir_all(scene.path("root/.agents")).unwrap();
    let look = discovery.look().await;
    assert_eq!((names(&look.hooks), changes(&look)), (vec!["gate"], vec![Change::KeptVanished]));
    fs::create_dir(scene.path("root/.agents")).unwrap();
    fs::write(scene.root_file(), file(&["new"])).unwrap();
    assert_eq!(names(&discovery.look().await.hooks), ["new"]);
}

#[tokio::test]
async fn a_file_that_was_never_good_fails_until_it_is_mended_even_when_it_is_gone() {
    let scene = Scene::new();
    let discovery = scene.discovery();
    fs::write(scene.root_file(), r#"{"g": {"on_failure": "deny"}, "g": {}}"#).unwrap();
    let look = discovery.look().await;
    assert_eq!(changes(&look), [Change::Broken]);
    assert_eq!(look.hooks.broken[0].on_failure, OnFailure::Deny);
    assert_eq!(look.hooks.broken[0].name, "/.agents/hooks.json");
    fs::write(scene.root_file(), "{").unwrap();
    assert_eq!(discovery.look().await.hooks.broken[0].on_failure, OnFailure::Deny);
    fs::remove_file(scene.root_file()).unwrap();
    assert_eq!(discovery.look().await.hooks.broken.len(), 1);
    fs::write(scene.root_file(), "{}").unwrap();
    assert!(discovery.look().await.hooks.broken.is_empty());
}

#[tokio::test]
async fn links_fifos_devices_folders_and_large_files_are_refused_without_waiting() {
    let scene = Scene::new();
    let (file_path, outside) = (scene.root_file(), scene.path("outside.json"));
    fs::write(&outside, file(&["outside"])).unwrap();
    let refused = async |what: &str| {
        let look = tokio::time::timeout(Duration::from_secs(20), scene.discovery().look()).await;
        let look = look.expect(what);
        assert_eq!((changes(&look), look.hooks.broken.len()), (vec![Change::Broken], 1), "{what}");
        assert!(!format!("{:?}", look.notices).contains("outside\""), "{what}");
    };
    for target in
        ["/etc/shadow", "/dev/zero", outside.to_str().unwrap(), "../workspace/x.json", "gone"]
    {
        symlink(target, &file_path).unwrap();
        refused(target).await;
        fs::remove_file(&file_path).unwrap();
    }
    mkfifo(&file_path, Mode::S_IRWXU).unwrap();
    refused("a FIFO").await;
    fs::remove_file(&file_path).unwrap();
    // Only root can make a device.
    if mknod(&file_path, SFlag::S_IFCHR, Mode::S_IRWXU, nix::sys::stat::makedev(1, 5)).is_ok() {
        refused("a device").await;
        fs::remove_file(&file_path).unwrap();
    }
    let socket = std::os::unix::net::UnixListener::bind(&file_path).unwrap();
    refused("a socket").await;
    drop(socket);
    fs::remove_file(&file_path).unwrap();
    fs::create_dir(&file_path).unwrap();
    refused("a folder").await;
    fs::remove_dir(&file_path).unwrap();
    fs::write(&file_path, format!("{{}}{}", " ".repeat(1 << 20))).unwrap();
    refused("a large file").await;
    fs::File::create(&file_path).unwrap().set_len(1 << 40).unwrap();
    refused("a sparse file of a TiB").await;
    fs::write(&file_path, b"{\"a\": \"\xff\"}").unwrap();
    refused("no UTF-8").await;
    fs::remove_dir_all(scene.path("root/.agents")).unwrap();
    fs::create_dir(scene.path("elsewhere")).unwrap();
    fs::write(scene.path("elsewhere/hooks.json"), file(&["outside"])).unwrap();
    symlink(scene.path("elsewhere"), scene.path("root/.agents")).unwrap();
    refused("a folder behind a link").await;
}

#[tokio::test]
async fn a_working_directory_cannot_lead_out_of_the_root() {
    let scene = Scene::new();
    fs::create_dir(scene.path(".agents")).unwrap();
    fs::write(scene.path(".agents/hooks.json"), file(&["outside"])).unwrap();
    for directory in ["..", "/..", "workspace/../..", "/workspace/../../root/.."] {
        let root = open_root(&scene.path("root")).unwrap();
        let folders = Folder::of_sandbox(&root.into(), directory);
        let look = Discovery::new(Places { folders, ..Places::default() }).look().await;
        assert!(look.hooks.groups.is_empty() && look.hooks.broken.len() == 1, "{directory}");
    }
}

#[tokio::test]
async fn the_content_of_a_file_that_is_no_hooks_file_is_not_quoted() {
    let scene = Scene::new();
    let secret = r#"{"private_key": "hunter2", "list": ["hunter2"], "g": {"enabled": "hunter2"}}"#;
    fs::write(scene.path("secret.json"), secret).unwrap();
    fs::hard_link(scene.path("secret.json"), scene.root_file()).unwrap();
    let look = scene.discovery().look().await;
    assert_eq!(look.notices[0].problems.len(), 3);
    assert!(!format!("{:?}", look.notices).contains("hunter2"));
}

#[tokio::test]
async fn with_pin_what_was_there_first_stays() {
    let scene = Scene::new();
    fs::write(scene.root_file(), file(&["gate"])).unwrap();
    let discovery = scene.pinned(None);
    assert_eq!(names(&discovery.look().await.hooks), ["gate"]);
    for text in [file(&["other"]), "{".to_owned(), "{}".to_owned()] {
        fs::write(scene.root_file(), text).unwrap();
        let look = discovery.look().await;
        assert_eq!((names(&look.hooks), changes(&look)), (vec!["gate"], vec![Change::Pinned]));
        assert!(changes(&discovery.look().await).is_empty());
    }
    fs::write(scene.path("root/workspace/.agents/hooks.json"), file(&["late"])).unwrap();
    let look = discovery.look().await;
    assert_eq!((names(&look.hooks), changes(&look)), (vec!["gate"], vec![Change::Pinned]));
}

#[tokio::test]
async fn what_was_good_or_pinned_outlives_the_process() {
    let scene = Scene::new();
    let memory = Some(scene.path("memory.json"));
    let later = || Discovery::new(Places { memory: memory.clone(), ..scene.places() });
    fs::write(scene.root_file(), file(&["gate"])).unwrap();
    later().look().await;
    fs::write(scene.root_file(), "{").unwrap();
    let look = later().look().await;
    assert_eq!((names(&look.hooks), changes(&look)), (vec!["gate"], vec![Change::KeptBroken]));
    fs::remove_file(scene.root_file()).unwrap();
    assert_eq!(names(&later().look().await.hooks), ["gate"]);

    let memory = Some(scene.path("pinned.json"));
    assert!(scene.pinned(memory.clone()).look().await.hooks.groups.is_empty());
    fs::write(scene.root_file(), file(&["late"])).unwrap();
    let look = scene.pinned(memory.clone()).look().await;
    assert_eq!((names(&look.hooks), changes(&look)), (vec![], vec![Change::Pinned]));

    let memory = Some(scene.path("broken.json"));
    fs::write(scene.root_file(), "{").unwrap();
    scene.pinned(memory.clone()).look().await;
    fs::write(scene.root_file(), file(&["late"])).unwrap();
    assert_eq!(scene.pinned(memory).look().await.hooks.broken.len(), 1);

    let memory = Some(scene.path("refused.json"));
    fs::remove_file(scene.root_file()).unwrap();
    symlink("/etc/hosts", scene.root_file()).unwrap();
    assert_eq!(scene.pinned(memory.clone()).look().await.hooks.broken.len(), 1);
    assert!(changes(&scene.pinned(memory.clone()).look().await).is_empty());
    fs::remove_file(scene.root_file()).unwrap();
    fs::write(scene.root_file(), file(&["late"])).unwrap();
    let look = scene.pinned(memory).look().await;
    assert_eq!((look.hooks.broken.len(), changes(&look)), (1, vec![Change::Pinned]));
}

#[tokio::test]
async fn a_disabled_group_is_in_force_as_a_failure() {
    let scene = Scene::new();
    let discovery = scene.discovery();
    fs::write(scene.root_file(), file(&["gate"])).unwrap();
    discovery.look().await;
    fs::write(scene.root_file(), r#"{"gate": {"pre_tool_excution": []}}"#).unwrap();
    let look = discovery.look().await;
    assert_eq!(changes(&look), [Change::Loaded]);
    assert_eq!(look.notices[0].problems[0].path, "gate.pre_tool_excution");
    assert!(matches!(look.hooks.groups[0].state, GroupState::Invalid { .. }));
}

/// Changes the file in every way an editor, a script or an attacker does, with the gate in every
/// whole version.
fn churn(path: &Path, stop: &AtomicBool) {
    let beside = path.with_extension("tmp");
    let versions: Vec<String> = (0..50)
        .map(|number| file(&["gate", &format!("group-{number}"), &"x".repeat(number * 100)]))
        .collect();
    for (turn, version) in versions.iter().cycle().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        match turn % 4 {
            // Truncated, then written piece by piece.
            0 => {
                use std::io::Write;
                let mut open = fs::File::create(path).expect("the file changes");
                for piece in version.as_bytes().chunks(64) {
                    open.write_all(piece).expect("the file changes");
                }
            }
            1 => {
                fs::write(&beside, version).expect("the file changes");
                fs::rename(&beside, path).expect("the file changes");
            }
            2 => fs::remove_file(path).expect("the file changes"),
            _ => fs::write(path, &version[..version.len() / 2]).expect("the file changes"),
        }
    }
}

#[tokio::test]
async fn a_file_under_constant_change_never_opens_a_window_without_hooks() {
    let scene = Scene::new();
    let discovery = scene.discovery();
    fs::write(scene.root_file(), file(&["gate"])).unwrap();
    discovery.look().await;
    let stop = Arc::new(AtomicBool::new(false));
    let churning = std::thread::spawn({
        let (path, stop) = (scene.root_file(), Arc::clone(&stop));
        move || churn(&path, &stop)
    });
    let mut versions = 0;
    for _ in 0..10_000 {
        let look = discovery.look().await;
        assert_eq!(names(&look.hooks).first(), Some(&"gate"));
        assert!(look.hooks.broken.is_empty());
        versions += changes(&look).iter().filter(|change| **change == Change::Loaded).count();
    }
    stop.store(true, Ordering::Relaxed);
    churning.join().unwrap();
    assert!(versions > 10, "{versions}");
}

#[tokio::test]
async fn a_root_that_comes_later_or_is_replaced_is_looked_into() {
    let scene = Scene::new();
    let root = Root::At(scene.path("later"));
    let folders = Folder::of_sandbox(&root, "/workspace");
    let discovery = Discovery::new(Places { folders, pin: true, ..Places::default() });
    // With `pin`, what is not there before the first event may still come.
    discovery.look_ahead();
    fs::write(scene.root_file(), file(&["gate"])).unwrap();
    fs::rename(scene.path("root"), scene.path("later")).unwrap();
    assert_eq!(names(&discovery.look().await.hooks), ["gate"]);
    fs::write(scene.path("later/workspace/.agents/hooks.json"), file(&["late"])).unwrap();
    assert_eq!(names(&discovery.look().await.hooks), ["gate"]);
}
