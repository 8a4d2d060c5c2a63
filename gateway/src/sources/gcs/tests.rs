//! What comes out of a bucket, and what must not?

use std::fs;
use std::path::PathBuf;

use outgate_certs::{Authority, Leaves, OriginRoots};
use outgate_policy::{AddressRules, compile};
use outgate_proxy::{
    AuditSink, Environments, Gateway, Limits, Parts, Purpose, Refusals, Resolver, Snapshot,
    Upstream,
};
use outgate_tests::gcs::{self, SERVICE};
use outgate_tests::origin::scripts;
use outgate_tests::{World, isolated, network};
use serde_json::{Value, json};

use super::*;

const ADDRESS: &str = "11.22.33.88";

/// What a source brought.
struct Brought(PathBuf);

impl Brought {
    /// Every file and its content, folders with a slash, in order.
    fn content(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&self.0).unwrap().display().to_string();
                if path.is_dir() {
                    found.push((name + "/", String::new()));
                    folders.push(path);
                } else {
                    found.push((name, fs::read_to_string(&path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }
}

/// A world in which the service has an address.
fn world() -> World {
    let world = World::new("outgate");
    world.name(SERVICE, ADDRESS);
    world
}

fn allowing() -> Value {
    json!({"network": {"allowlist": [{"domain": SERVICE}]}})
}

/// What a source brings, and how it ends, in an environment of this text.
fn fetch(world: &World, source: &str, environment: &Value) -> (Brought, Result<(), String>) {
    asking(world, environment, async |asker, target| {
        let (bucket, prefix) = source.split_once('/').unwrap_or((source, ""));
        Bucket::new(bucket, prefix).fetch(asker, target).await.map_err(|error| error.to_string())
    })
}

/// Something done with a target, in an environment of this text.
fn asking<T>(
    world: &World,
    environment: &Value,
    action: impl AsyncFnOnce(Asker<'_>, &Folder) -> T,
) -> (Brought, T) {
    let authority = Authority::open_or_create(&network::folder().join("authority")).unwrap();
    let mut roots = OriginRoots::none();
    roots.add_pem(world.pki.roots()).unwrap();
    let limits = Limits::default();
    let compiled = compile(&environment.to_string(), "env_test").unwrap();
    let policy = Arc::new(compiled.policy);
    let snapshot =
        Snapshot { policy, addresses: AddressRules::default(), profiles: Arc::default() };
    let environment = Environment::new(&compiled.id, snapshot, &roots, &limits).unwrap();
    let (audit, _writer) = AuditSink::new(limits.audit_wait);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = outgate_credentials::LocalStore::in_memory().unwrap();
        let gateway = Gateway::new(Parts {
            credentials: outgate_credentials::Credentials::open(Arc::new(store)).unwrap(),
            leaves: Leaves::new(Arc::new(authority), 1).unwrap(),
            resolver: Resolver::system(&limits),
            limits,
            environments: Environments::default(),
            audit,
            refusals: Refusals::Status,
            upstream: Upstream::Direct,
            captures_ipv6: false,
        });
        let egress = Egress::new(gateway, Purpose::Source);
        let asker = Asker { egress: &egress, environment: &Arc::new(environment) };
        let folder = tempfile::tempdir_in(network::folder()).unwrap().keep();
        let target = Folder::open(&folder).unwrap();
        let done = action(asker, &target).await;
        (Brought(folder), done)
    })
}

#[test]
fn brings_the_objects_below_the_prefix_page_by_page() {
    isolated(|| {
        let bucket = gcs::Bucket::new("data.example.com")
            .object("models/", "")
            .object("models/a b é#?.txt", "first")
            .object("models/deep/er/b.txt", "second")
            .object("models/empty", "")
            .object("models/folder/", "")
            .object("models2/other", "not below it")
            .page(2);
        let world = world();
        let api = world.https(SERVICE).script(bucket.serve()).start();
        let mut environment = allowing();
        environment["network"]["allowlist"][0]["transform"] = json!({"Authorization": "Bearer t"});
        let (folder, fetched) = fetch(&world, "data.example.com/models/", &environment);
        assert_eq!(fetched, Ok(()));
        let expected = [
            ("a b é#?.txt", "first"),
            ("deep/", ""),
            ("deep/er/", ""),
            ("deep/er/b.txt", "second"),
            ("empty", ""),
            ("folder/", ""),
        ];
        assert_eq!(folder.content(), expected.map(|(name, text)| (name.into(), text.into())));
        let requests = api.requests();
        assert!(requests.iter().all(|asked| asked.header("authorization") == Some("Bearer t")));
        assert_eq!((requests.len(), api.connections()), (3 + 3, 1));
    });
}

#[test]
fn brings_the_object_that_the_source_names() {
    isolated(|| {
        let bucket = gcs::Bucket::new("data").object("a/one.bin", "1").object("a/one.bin2", "2");
        let world = world();
        let _api = world.https(SERVICE).script(bucket.serve()).start();
        let (folder, fetched) = fetch(&world, "data/a/one.bin", &allowing());
        assert_eq!(fetched, Ok(()));
        assert_eq!(folder.content(), [("one.bin".to_owned(), "1".to_owned())]);
    });
}

#[test]
fn brings_nothing_where_one_name_leads_elsewhere() {
    isolated(|| {
        let world = world();
        for name in ["x/../../escaped", "/etc/escaped", "x//y", "x/./y", "x/\0y", ".."] {
            let bucket = gcs::Bucket::new("data").object("good", "good").object(name, "evil");
            let api = world.https(SERVICE).script(bucket.serve()).start();
            let (folder, fetched) = fetch(&world, "data", &allowing());
            let said = fetched.expect_err("a name that leads elsewhere");
            let shown = format!("gs://data/{}: ", name.escape_debug());
            assert!(said.starts_with(&shown), "{said}");
            assert_eq!(folder.content(), []);
            assert_eq!(api.requests().len(), 1, "only the list was asked for");
            api.stop();
        }
    });
}

#[test]
fn says_which_object_failed_and_why() {
    isolated(|| {
        let bucket = gcs::Bucket::new("data").object("a", "1").object("a/b", "2");
        let world = world();
        let _api = world.https(SERVICE).script(bucket.serve()).start();
        let said = |source: &str, environment: &Value| {
            fetch(&world, source, environment).1.expect_err("it fails")
        };
        let nothing = json!({"network": {"allowlist": []}});
        assert_eq!(
            said("data/a", &nothing),
            "gs://data/a: domain_not_allowed: storage.googleapis.com is not in network.allowlist \
             of environment env_test"
        );
        assert!(said("data", &json!({"network": "disabled"})).contains(": network_disabled: "));
        let media = json!({"network": {"allowlist": [
            {"domain": SERVICE, "paths": ["/storage/v1/b/*/o"]}
        ]}});
        assert!(said("data/a", &media).starts_with("gs://data/a: path_not_allowed: "));
        assert!(said("data/c", &allowing()).contains("no object has this name"));
        let long = format!("data/{}", "c".repeat(1025));
        assert!(said(&long, &allowing()).contains("no object has this name"));
        assert!(said("other/a", &allowing()).contains("answered 404"));
        // `a` is a file already.
        assert!(said("data", &allowing()).starts_with("gs://data/a/b: can't be written: "));
    });
}

#[test]
fn gives_up_on_a_service_that_does_not_behave() {
    isolated(|| {
        let endless = r#"{"items": [], "nextPageToken": "again"}"#;
        let huge = r#"{"items": [{"name": "a", "size": "4294967297"}]}"#;
        let twice = r#"{"items": [], "items": [{"name": "a", "size": "1"}]}"#;
        let denied = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
        let moved = "HTTP/1.1 302 Found\r\nLocation: https://evil.example.test/\r\n\
                     Content-Length: 0\r\n\r\n";
        let token = json!({"items": [], "nextPageToken": "t".repeat(1 << 17)}).to_string();
        let answers: [(Vec<u8>, &str); 7] = [
            (scripts::ok(token), "can't be asked for"),
            (scripts::ok(endless), "more than 10000 objects or 4 GiB"),
            (scripts::ok(huge), "more than 10000 objects or 4 GiB"),
            (scripts::ok(twice), "twice"),
            (scripts::ok("<html>"), "can't be read"),
            (denied.into(), "answered 401 Unauthorized; give the entry"),
            (moved.into(), "answered 302 Found"),
        ];
        let world = world();
        for (answer, expected) in answers {
            let api = world.https(SERVICE).respond(answer).start();
            let (folder, fetched) = fetch(&world, "data/a", &allowing());
            let said = fetched.expect_err("it fails");
            assert!(said.starts_with("gs://data/a: ") && said.contains(expected), "{said}");
            assert_eq!(folder.content(), []);
            api.stop();
        }
    });
}

#[test]
fn takes_no_more_bytes_than_are_left_whatever_was_announced() {
    isolated(|| {
        let world = world();
        let bucket = gcs::Bucket::new("data").object("five", "12345");
        let _api = world.https(SERVICE).script(bucket.serve()).start();
        let fetch = |left: u64| {
            let (_, fetched) = asking(&world, &allowing(), async |asker, target| {
                let bucket = Bucket::new("data", "");
                let object = Object::of("five", "").unwrap().unwrap();
                bucket.fetch_one(asker, &object, (target, left)).await
            });
            fetched.map_err(|error| error.to_string())
        };
        assert_eq!((fetch(5), fetch(7)), (Ok(0), Ok(2)));
        assert!(fetch(4).is_err_and(|said| said.starts_with("gs://data/five: more than")));
    });
}
