//! Does a state folder always hold one whole CA, and is its key nobody else's?

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, SystemTime};

use outgate_certs::{Authority, CertsError};
use tempfile::TempDir;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A state folder that doesn't exist yet.
fn state() -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("state");
    (parent, folder)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("ascii"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_first_start_makes_both_files_for_its_user_alone() {
    let (_parent, folder) = state();
    assert!(Authority::open(&folder).expect("nothing wrong").is_none());
    assert!(!folder.exists(), "a look makes nothing");

    let made = Authority::open_or_create(&folder).expect("a CA");
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("ca.key")), 0o600);
    assert_eq!(mode(&folder.join("ca.pem")), 0o644);
    assert_eq!(names(&folder), [".ca.lock", "ca.key", "ca.pem"]);
    let exported = fs::read_to_string(folder.join("ca.pem")).expect("a file");
    assert_eq!(made.certificate_pem(), exported);
    assert!(!exported.contains("PRIVATE"));
    assert!(made.not_after() > SystemTime::now() + 3650 * DAY);
}

#[test]
fn every_later_start_has_the_same_ca() {
    let (_parent, folder) = state();
    let made = Authority::open_or_create(&folder).expect("a CA");
    let again = Authority::open_or_create(&folder).expect("the CA");
    let looked = Authority::open(&folder).expect("nothing wrong").expect("the CA");
    assert_eq!(made.fingerprint(), again.fingerprint());
    assert_eq!(made.fingerprint(), looked.fingerprint());
    assert_eq!(made.fingerprint().len(), 32 * 3 - 1);
}

#[test]
fn first_starts_at_once_agree_on_one_ca() {
    let (_parent, folder) = state();
    let barrier = Barrier::new(16);
    let start = || {
        barrier.wait();
        Authority::open_or_create(&folder).expect("a CA").fingerprint()
    };
    let seen: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(seen.iter().all(|fingerprint| *fingerprint == seen[0]));
}

#[test]
fn readers_never_see_half_a_replacement() {
    let (_parent, folder) = state();
    Authority::open_or_create(&folder).expect("a CA");
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..40 {
                Authority::replace(&folder).expect("a new CA");
            }
        });
        while !writer.is_finished() {
            Authority::open(&folder).expect("whole").expect("there");
        }
    });
}

#[test]
fn two_installs_share_neither_key_nor_name() {
    let ((_one, one), (_other, other)) = (state(), state());
    let (a, b) = (Authority::open_or_create(&one), Authority::open_or_create(&other));
    assert_ne!(a.expect("a CA").fingerprint(), b.expect("a CA").fingerprint());
    let key = |folder: &Path| fs::read_to_string(folder.join("ca.key")).expect("a key");
    assert_ne!(key(&one), key(&other));
    let subject = |folder: &Path| {
        let pem = fs::read(folder.join("ca.pem")).expect("a certificate");
        let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).expect("PEM");
        pem.parse_x509().expect("a certificate").subject().to_string()
    };
    assert_ne!(subject(&one), subject(&other));
}

#[test]
fn a_replacement_leaves_no_copy_of_the_old_key() {
    let (_parent, folder) = state();
    let old = Authority::open_or_create(&folder).expect("a CA");
    let old_key = fs::read_to_string(folder.join("ca.key")).expect("a key");
    let new = Authority::replace(&folder).expect("a new CA");
    assert_ne!(old.fingerprint(), new.fingerprint());
    assert_eq!(names(&folder), [".ca.lock", "ca.key", "ca.pem"]);
    assert_ne!(fs::read_to_string(folder.join("ca.key")).expect("a key"), old_key);
    assert_eq!(mode(&folder.join("ca.key")), 0o600);
}

#[test]
fn half_a_pair_is_an_error_that_says_how_to_mend_it() {
    for (gone, left) in [("ca.key", "ca.pem"), ("ca.pem", "ca.key")] {
        let (_parent, folder) = state();
        Authority::open_or_create(&folder).expect("a CA");
        let kept = fs::read(folder.join(left)).expect("a file");
        fs::remove_file(folder.join(gone)).expect("ours");
        let error = Authority::open_or_create(&folder).expect_err("half");
        assert_eq!(
            error,
            CertsError::HalfPair { present: folder.join(left), missing: folder.join(gone) }
        );
        assert!(error.to_string().contains("outgate ca new"), "{error}");
        assert_eq!(fs::read(folder.join(left)).expect("a file"), kept, "nothing was touched");
        Authority::replace(&folder).expect("mended");
        assert!(Authority::open(&folder).expect("whole").is_some());
    }
}

/// The files of a finished CA, to be laid out as a writer that died would have left them.
fn finished() -> (Vec<u8>, Vec<u8>) {
    let (_parent, folder) = state();
    Authority::open_or_create(&folder).expect("a CA");
    let read = |name: &str| fs::read(folder.join(name)).expect("a file");
    (read("ca.pem"), read("ca.key"))
}

#[test]
fn a_writer_that_died_before_its_decision_never_was() {
    let (pem, key) = finished();
    let leftovers: [&[(&str, &[u8])]; 4] = [
        &[(".ca.key.new", b"")],
        &[(".ca.key.new", &key[..50])],
        &[(".ca.key.new", &key), (".ca.pem.new", &pem[..50])],
        &[(".ca.key.new", &key), (".ca.pem.new", &pem)],
    ];
    for files in leftovers {
        // Over nothing: a new CA is made. Over a CA: that one stays.
        for before in [false, true] {
            let (_parent, folder) = state();
            fs::create_dir(&folder).expect("a folder");
            let kept = before.then(|| Authority::open_or_create(&folder).expect("a CA"));
            for (name, bytes) in files {
                fs::write(folder.join(name), bytes).expect("a file");
            }
            let seen = Authority::open_or_create(&folder).expect("a whole CA");
            if let Some(kept) = kept {
                assert_eq!(seen.fingerprint(), kept.fingerprint());
            }
            assert_ne!(seen.certificate_pem().as_bytes(), pem);
            assert_eq!(names(&folder), [".ca.lock", "ca.key", "ca.pem"]);
        }
    }
}

#[test]
fn a_writer_that_died_after_its_decision_is_helped_to_the_end() {
    for before in [false, true] {
        let (pem, key) = finished();
        let (_parent, folder) = state();
        fs::create_dir(&folder).expect("a folder");
        if before {
            Authority::open_or_create(&folder).expect("a CA");
        }
        fs::write(folder.join("ca.key"), &key).expect("a file");
        set_mode(&folder.join("ca.key"), 0o600);
        fs::write(folder.join(".ca.pem.new"), &pem).expect("a file");
        let seen = Authority::open(&folder).expect("a whole CA").expect("there");
        assert_eq!(seen.certificate_pem().as_bytes(), pem);
        assert_eq!(names(&folder), [".ca.lock", "ca.key", "ca.pem"]);
    }
}

#[test]
fn a_key_that_every_user_can_read_is_refused() {
    let (_parent, folder) = state();
    Authority::open_or_create(&folder).expect("a CA");
    let key = folder.join("ca.key");
    for open in [0o604, 0o644, 0o606, 0o602] {
        set_mode(&key, open);
        let error = Authority::open(&folder).expect_err("exposed");
        assert_eq!(error, CertsError::KeyExposed { path: key.clone(), mode: open });
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    set_mode(&key, 0o640);
    assert!(Authority::open(&folder).expect("the group is the operator's business").is_some());
}

#[test]
fn a_damaged_ca_is_never_replaced_unasked() {
    let (_parent, folder) = state();
    Authority::open_or_create(&folder).expect("a CA");
    for (name, text) in [("ca.pem", "rubbish"), ("ca.key", "rubbish")] {
        let path = folder.join(name);
        let whole = fs::read(&path).expect("a file");
        fs::write(&path, text).expect("ours");
        Authority::open_or_create(&folder).expect_err("damaged");
        assert_eq!(fs::read_to_string(&path).expect("a file"), text);
        fs::write(&path, whole).expect("ours");
    }
    let (other, _) = finished();
    fs::write(folder.join("ca.pem"), other).expect("ours");
    let error = Authority::open_or_create(&folder).expect_err("two halves of two pairs");
    assert!(matches!(error, CertsError::KeyMismatch { .. }), "{error}");
}

#[test]
fn neither_debug_nor_errors_show_the_key() {
    let (_parent, folder) = state();
    let authority = Authority::open_or_create(&folder).expect("a CA");
    let shown = format!("{authority:?}");
    assert_eq!(shown, format!("Authority {{ fingerprint: {:?}, .. }}", authority.fingerprint()));

    let key = fs::read_to_string(folder.join("ca.key")).expect("a key");
    let body: Vec<&str> = key.lines().filter(|line| !line.starts_with('-')).collect();
    // The key's text where a certificate is expected, and a key file that is cut.
    fs::write(folder.join("ca.pem"), key.replace("PRIVATE KEY", "CERTIFICATE")).expect("ours");
    let one = Authority::open(&folder).expect_err("not a certificate");
    fs::write(folder.join("ca.pem"), authority.certificate_pem()).expect("ours");
    fs::write(folder.join("ca.key"), &key[..key.len() / 2]).expect("ours");
    let other = Authority::open(&folder).expect_err("cut");
    for text in [one.to_string(), format!("{one:?}"), other.to_string(), format!("{other:?}")] {
        assert!(body.iter().all(|line| !text.contains(line)), "{text}");
    }
}
