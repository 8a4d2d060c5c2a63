//! Does what is in force follow the files, and only good ones?

use std::fs;
use std::path::PathBuf;

use outgate_credentials::{Collection, Expected};
use outgate_policy::{Destination, Host};
use tempfile::TempDir;

use super::*;
use crate::cli::{OperatorArgs, ServeArgs};
use crate::config::KnownBy;
use crate::reload::any_may_be_named;
use crate::surroundings::Surroundings;

/// A folder with environment files, and what is in force because of them.
struct Scene {
    folder: TempDir,
    in_force: InForce,
    sources: Vec<EnvironmentSource>,
    rules: AddressRules,
    last: Generation,
}

const OPEN: &str = "{}";
const SHUT: &str = r#"{"network": {"allowlist": []}}"#;
const BROKEN: &str = r#"{"network": {"alowlist": []}}"#;

pub(super) fn roots() -> OriginRoots {
    let folder = tempfile::tempdir().unwrap();
    outgate_certs::Authority::open_or_create(folder.path()).unwrap();
    let mut roots = OriginRoots::none();
    roots.add_pem(&folder.path().join("ca.pem")).unwrap();
    roots
}

pub(super) fn no_credentials() -> Credentials {
    Credentials::open(Arc::new(outgate_credentials::LocalStore::in_memory().unwrap())).unwrap()
}

fn settings(environments: Vec<EnvironmentSource>) -> Settings {
    let state_dir = Some("/nowhere".into());
    let args = ServeArgs {
        operator: OperatorArgs { state_dir, ..OperatorArgs::default() },
        ..ServeArgs::default()
    };
    Settings { environments, ..Settings::resolve(&args, &Surroundings::default()).unwrap() }
}

impl Scene {
    fn try_new(
        files: &[(&str, &str)],
        sources: impl FnOnce(&TempDir) -> Vec<EnvironmentSource>,
    ) -> Result<Scene, Failure> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let sources = sources(&folder);
        let rules = address_rules(&AddressConfig::default(), &sources, &[])?;
        let (in_force, last) = InForce::load(
            &settings(sources.clone()),
            &rules,
            roots(),
            no_credentials(),
            any_may_be_named(),
        )?;
        Ok(Scene { folder, in_force, sources, rules, last })
    }

    /// Every file by its name.
    fn of_files(files: &[(&str, &str)]) -> Result<Scene, Failure> {
        Scene::try_new(files, |folder| files.iter().map(|(name, _)| file(folder, name)).collect())
    }

    /// The folder as a whole.
    fn of_folder(files: &[(&str, &str)]) -> Result<Scene, Failure> {
        Scene::try_new(files, |folder| vec![EnvironmentSource::Directory(folder.path().into())])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// Reads again, as after a change.
    fn read(&mut self) {
        self.last = self.in_force.read(&self.sources, &self.rules, false);
        for gone in &self.last.gone {
            gone.retire(self.rules.clone());
        }
    }

    fn get(&self, id: &str) -> Arc<Environment> {
        let id = EnvironmentId::parse(id).unwrap();
        Arc::clone(self.last.environments.get(&id).unwrap())
    }

    /// Every environment, and whether it is allowed anything.
    fn state(&self) -> Vec<(&str, bool)> {
        let one = |environment: &Arc<Environment>| allows(environment);
        let ids = self.last.environments.iter().map(|one| one.id().as_str());
        ids.zip(self.last.environments.iter().map(one)).collect()
    }

    fn problems(&self) -> Vec<(String, &'static str)> {
        let name = |problem: &Problem| problem.place.file_name().unwrap().to_string_lossy().into();
        self.last.problems.iter().map(|problem| (name(problem), problem.instead)).collect()
    }
}

fn file(folder: &TempDir, name: &str) -> EnvironmentSource {
    EnvironmentSource::File { path: folder.path().join(name), known_by: KnownBy::default() }
}

fn allows(environment: &Environment) -> bool {
    let host = Host::from_wire(b"a.example.com").unwrap();
    environment.snapshot().policy.judge_tunnel(&Destination { host, port: 443 }).is_ok()
}

fn message(refused: Result<Scene, Failure>) -> String {
    refused.err().unwrap().message().unwrap().to_owned()
}

#[test]
fn an_id_is_the_file_s_own_or_its_name() {
    let other = r#"{"environment_id": "other"}"#;
    let scene = Scene::of_files(&[("one.json", OPEN), ("two.json", other)]).unwrap();
    assert_eq!(scene.state(), [("one", true), ("other", true)]);
}

#[test]
fn a_broken_file_denies_its_environment_everything() {
    let broken = r#"{"environment_id": "b", "network": {"alowlist": []}}"#;
    let files = [("broken.json", broken), ("good.json", OPEN), ("torn.json", "{")];
    let scene = Scene::of_folder(&files).unwrap();
    assert_eq!(scene.state(), [("b", false), ("good", true), ("torn", false)]);
    let denied = problem::NOTHING;
    assert_eq!(scene.problems(), [("broken.json".into(), denied), ("torn.json".into(), denied)]);
}

#[test]
fn a_folder_gives_its_json_files_only() {
    let files = [("b.json", OPEN), ("a.json", OPEN), ("a.json.old", "x"), ("r.md", "")];
    assert_eq!(Scene::of_folder(&files).unwrap().state(), [("a", true), ("b", true)]);
}

#[test]
fn what_is_not_there_is_an_error_at_the_start() {
    let missing = Scene::try_new(&[], |folder| vec![file(folder, "absent.json")]);
    assert!(message(missing).contains("absent.json"));
    let nowhere = Scene::try_new(&[], |folder| {
        vec![EnvironmentSource::Directory(folder.path().join("absent"))]
    });
    assert_eq!(nowhere.err().unwrap().code(), 1);
    assert!(message(Scene::of_files(&[("not an id.json", "{")])).contains("not an id.json"));
}

#[test]
fn two_files_of_one_id_are_an_error_at_the_start() {
    let twice = [("a.json", OPEN), ("b.json", r#"{"environment_id": "a"}"#)];
    assert!(message(Scene::of_files(&twice)).contains("environment a is in"));
}

#[test]
fn an_empty_token_is_an_error_at_the_start() {
    let with = |name: &'static str| {
        Scene::try_new(&[("a.json", OPEN), ("empty", " \n"), ("token", "s3cret\n")], |folder| {
            let token_file = Some(folder.path().join(name));
            let known_by = KnownBy { token_file, ..KnownBy::default() };
            vec![EnvironmentSource::File { path: folder.path().join("a.json"), known_by }]
        })
    };
    assert!(message(with("empty")).contains("empty: write"));
    assert!(with("token").is_ok());
}

#[test]
fn a_change_is_in_force_in_the_same_environment() {
    let mut scene = Scene::of_files(&[("one.json", OPEN)]).unwrap();
    let (one, policy) = (scene.get("one"), scene.get("one").snapshot());
    scene.read();
    assert!(Arc::ptr_eq(&policy, &one.snapshot()), "nothing has changed");
    scene.write("one.json", SHUT);
    scene.read();
    assert!(!allows(&one));
    assert!(Arc::ptr_eq(&one, &scene.get("one")), "its pools and sessions stay");
    scene.write("one.json", OPEN);
    scene.read();
    assert!(allows(&one));
}

#[test]
fn a_bad_file_changes_nothing_and_is_a_problem_until_it_is_good() {
    let mut scene = Scene::of_files(&[("one.json", OPEN), ("two.json", OPEN)]).unwrap();
    let last = [("one.json".to_owned(), problem::LAST)];
    for bad in [BROKEN, "", "{", "[]"] {
        scene.write("one.json", bad);
        for _ in 0..2 {
            scene.read();
            assert_eq!(
                (scene.state(), scene.problems()),
                (vec![("one", true), ("two", true)], last.to_vec())
            );
        }
    }
    scene.remove("one.json");
    scene.read();
    assert_eq!((scene.state().len(), scene.problems()), (2, last.to_vec()));
    scene.write("one.json", SHUT);
    scene.read();
    assert_eq!((scene.state(), scene.problems()), (vec![("one", false), ("two", true)], vec![]));
}

#[test]
fn one_that_never_was_good_is_denied_everything_until_it_is() {
    let mut scene = Scene::of_folder(&[("one.json", BROKEN)]).unwrap();
    scene.write("two.json", BROKEN);
    scene.read();
    assert_eq!(scene.state(), [("one", false), ("two", false)]);
    let denied = scene.get("two");
    scene.write("two.json", OPEN);
    scene.read();
    assert_eq!(scene.state(), [("one", false), ("two", true)]);
    assert!(Arc::ptr_eq(&denied, &scene.get("two")));
}

#[test]
fn a_folder_s_files_come_and_go() {
    let mut scene = Scene::of_folder(&[("one.json", OPEN)]).unwrap();
    let one = scene.get("one");
    scene.write("two.json", OPEN);
    scene.read();
    assert_eq!(scene.state(), [("one", true), ("two", true)]);
    scene.remove("one.json");
    scene.read();
    assert_eq!((scene.state(), scene.problems()), (vec![("two", true)], vec![]));
    assert!(!allows(&one), "what still holds it is denied everything");
    scene.write("one.json", OPEN);
    scene.read();
    assert!(Arc::ptr_eq(&one, &scene.get("one")), "what still holds it goes on");
    assert!(allows(&one));
}

#[test]
fn a_folder_that_can_t_be_read_is_as_it_was() {
    let mut scene = Scene::of_folder(&[("one.json", OPEN)]).unwrap();
    let away = scene.folder.path().with_extension("away");
    fs::rename(scene.folder.path(), &away).unwrap();
    scene.read();
    assert_eq!(scene.state(), [("one", true)]);
    assert_eq!(scene.problems().len(), 2, "the folder and the file: {:?}", scene.problems());
    fs::rename(away, scene.folder.path()).unwrap();
    scene.read();
    assert_eq!((scene.state(), scene.problems()), (vec![("one", true)], vec![]));
}

#[test]
fn a_file_that_claims_another_s_id_is_bad() {
    let claim = r#"{"environment_id": "one", "network": {"allowlist": []}}"#;
    let mut scene = Scene::of_folder(&[("one.json", OPEN), ("two.json", OPEN)]).unwrap();
    scene.write("two.json", claim);
    scene.write("a.json", claim);
    scene.read();
    assert_eq!(scene.state(), [("one", true), ("two", true)]);
    assert_eq!(scene.problems().len(), 2, "{:?}", scene.problems());
    scene.remove("one.json");
    scene.remove("a.json");
    scene.read();
    assert_eq!((scene.state(), scene.problems()), (vec![("one", false)], vec![]));
}

#[test]
fn an_id_that_changes_is_another_environment() {
    let mut scene = Scene::of_files(&[("one.json", OPEN)]).unwrap();
    let one = scene.get("one");
    scene.write("one.json", r#"{"environment_id": "two"}"#);
    scene.read();
    assert_eq!(scene.state(), [("two", true)]);
    assert!(!allows(&one));
}

#[test]
fn new_address_rules_are_in_force_with_a_bad_file_too() {
    let mut scene = Scene::of_files(&[("one.json", OPEN)]).unwrap();
    let private = "10.1.2.3:443".parse().unwrap();
    assert!(scene.get("one").snapshot().addresses.judge(private).is_err());
    scene.write("one.json", BROKEN);
    let allow = vec!["10.1.2.0/24".parse().unwrap()];
    let opened = AddressConfig { allow, ..AddressConfig::default() };
    scene.rules = address_rules(&opened, &scene.sources, &[]).unwrap();
    scene.last = scene.in_force.read(&scene.sources, &scene.rules, true);
    assert_eq!(scene.state(), [("one", true)]);
    assert!(scene.get("one").snapshot().addresses.judge(private).is_ok());
}

#[test]
fn a_problem_is_told_to_a_probe_without_folders_and_contents() {
    let scene = Scene::of_folder(&[("one.json", r#"{"network": {"s3cret": 1}}"#)]).unwrap();
    let told: Vec<_> = scene.last.problems.iter().map(Problem::summary).collect();
    let expected =
        "one.json can't be used: everything is denied to its environment; the log says why";
    assert_eq!(told, [expected]);
}

#[test]
fn no_sandbox_is_dialled_for_another() {
    let source_addresses = vec!["2a00:1::/64".parse().unwrap()];
    let known_by = KnownBy { source_addresses, ..KnownBy::default() };
    let source = EnvironmentSource::File { path: "one.json".into(), known_by };
    let rules = address_rules(&AddressConfig::default(), &[source], &[]).unwrap();
    assert!(rules.judge("[2a00:1::7]:443".parse().unwrap()).is_err());
    assert!(rules.judge("[2a00:2::7]:443".parse().unwrap()).is_ok());
}

#[test]
fn a_rule_without_effect_is_said_in_one_line() {
    let config =
        AddressConfig { allow: vec!["127.0.0.0/8".parse().unwrap()], ..Default::default() };
    let refused = address_rules(&config, &[], &[]).unwrap_err();
    assert_eq!(refused.code(), 1);
    assert!(refused.message().unwrap().starts_with("addresses.allow[0]"), "{refused:?}");
}

#[test]
fn what_is_wanted_in_a_sandbox_is_new_only_when_it_was_read_anew() {
    let with = |content: &str| {
        let source = serde_json::json!({"type": "inline", "target": "a", "content": content});
        serde_json::json!({"sources": [source]}).to_string()
    };
    let mut scene = Scene::of_files(&[("one.json", &with("x"))]).unwrap();
    let sources = |scene: &Scene| Arc::clone(&scene.in_force.wanted()[0].sources);
    let first = sources(&scene);
    scene.read();
    assert!(Arc::ptr_eq(&first, &sources(&scene)));
    scene.write("one.json", BROKEN);
    scene.read();
    assert!(Arc::ptr_eq(&first, &sources(&scene)), "what it said last");
    scene.write("one.json", &with("y"));
    scene.read();
    assert!(sources(&scene) != first);
}

#[test]
fn a_record_whose_id_is_another_s_is_known_not_to_be_in_force() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("one.json"), OPEN).unwrap();
    let (sources, rules) = (vec![file(&folder, "one.json")], AddressRules::default());
    let settings = Settings { made_environments: true, ..settings(sources.clone()) };
    let credentials = no_credentials();
    let (mut in_force, _) =
        InForce::load(&settings, &rules, roots(), credentials.clone(), any_may_be_named()).unwrap();
    let ids = ["one", "two"].map(|id| EnvironmentId::parse(id).unwrap());
    for id in &ids {
        let made = Made {
            id: id.clone(),
            created: 1,
            updated: 1,
            source_addresses: Vec::new(),
            proxy_token: "token".to_owned().into(),
            said: outgate_policy::Document::read(SHUT).unwrap().0,
        };
        let (place, expected) = (Collection::Environments, Expected::Absent);
        credentials.store().put(place, id.as_str(), &made.write(), expected).unwrap();
    }
    let problems = in_force.read(&sources, &rules, true).problems;
    let kept_out = ids.map(|id| problems.iter().any(|problem| problem.is_of_made(&id)));
    assert_eq!(kept_out, [true, false], "{problems:?}");
    let failed = StoreError::Conflict { id: "two".to_owned() };
    assert!(Problem::of_store(&failed).is_of_made(&EnvironmentId::parse("two").unwrap()));
}
