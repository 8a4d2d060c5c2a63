//! Is the file of a value hidden that is gone at the start, or comes back?

use std::os::unix::fs::symlink;
use std::thread;
use std::time::Duration;

use super::super::*;
use super::stage::{Stage, inside};

#[test]
fn a_value_that_comes_into_a_folder_of_its_own_is_hidden_when_it_comes() {
    let stage = || {
        let stage = Stage::new().hide_value("own/token").hide_value("token");
        fs::create_dir(stage.home().join("own")).unwrap();
        let plan = stage.plan().unwrap();
        assert_eq!(plan.mask_of(&stage.home().join("token")), None, "it is among others");
        let (new, ready) = (stage.home().join("own/token"), stage.home().join("ready"));
        thread::spawn(move || {
            while !ready.exists() {
                thread::sleep(Duration::from_millis(5));
            }
            fs::write(&new, "SECRET").unwrap();
            fs::write(ready.with_file_name("done"), "").unwrap();
        });
        stage
    };
    inside(stage, |stage| {
        fs::write(stage.home().join("ready"), "").unwrap();
        while !stage.home().join("done").exists() {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(stage.is_hidden(&stage.home().join("own")));
        assert!(fs::write(stage.home().join("own/token"), "the command's").is_err());
    });
}

#[test]
fn a_value_s_file_that_is_none_or_gone_with_its_folder_or_behind_a_link_refuses_no_plan() {
    let stage = Stage::new()
        .hide_value(".")
        .hide_value("nowhere/token")
        .hide_value("link")
        .hide_value("own/there");
    symlink("nowhere/token", stage.home().join("link")).unwrap();
    fs::create_dir(stage.home().join("own")).unwrap();
    fs::write(stage.home().join("own/there"), "SECRET").unwrap();
    let plan = stage.plan().unwrap();
    let mask = |name: &str| plan.mask_of(&stage.home().join(name)).map(Path::to_owned);
    assert_eq!((mask("nowhere/token"), mask("link"), mask(".")), (None, None, None));
    assert_eq!(mask("own/there"), Some(stage.home().join("own")));
}
