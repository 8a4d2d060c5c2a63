use std::sync::{Arc, Mutex};

use super::*;

const CREDENTIALS: Collection = Collection::Credentials;

fn key(byte: u8) -> StoreKey {
    StoreKey::parse(&format!("{byte:02x}").repeat(32), "it").expect("a key")
}

fn value(store: &LocalStore, id: &str) -> Option<String> {
    let record = store.get(CREDENTIALS, id).expect("read")?;
    Some(String::from_utf8(record.value.to_vec()).expect("text"))
}

/// A disk that keeps what was synced, and loses the rest when the power fails.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// What the disk would hold after a power failure at each of its syncs.
    history: Vec<Vec<u8>>,
}

impl Disk {
    fn holding(bytes: Vec<u8>) -> Disk {
        let contents = Contents { now: bytes.clone(), synced: bytes, history: Vec::new() };
        Disk(Arc::new(Mutex::new(contents)))
    }

    fn history(&self) -> Vec<Vec<u8>> {
        self.0.lock().expect("no panic").history.clone()
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().expect("no panic").now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let contents = self.0.lock().expect("no panic");
        let from = usize::try_from(offset).expect("small");
        let read = contents.now.get(from..from + out.len());
        out.copy_from_slice(read.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).expect("small");
        self.0.lock().expect("no panic").now.resize(len, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut contents = self.0.lock().expect("no panic");
        contents.synced = contents.now.clone();
        let synced = contents.synced.clone();
        contents.history.push(synced);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut contents = self.0.lock().expect("no panic");
        let from = usize::try_from(offset).expect("small");
        contents.now[from..from + data.len()].copy_from_slice(data);
        Ok(())
    }
}

#[test]
fn keeps_what_was_written_over_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("credentials.redb");
    {
        let store = LocalStore::open(&path, &key(1)).expect("made");
        store.put(CREDENTIALS, "a", b"hunter2", Expected::Absent).expect("written");
        store.put(CREDENTIALS, "b", b"gone", Expected::Absent).expect("written");
        store.delete(CREDENTIALS, "b", Expected::Anything).expect("deleted");
        // Another gateway of the same user has it open beside this one.
        let other = LocalStore::open(&path, &key(1)).expect("shared");
        assert_eq!(value(&other, "a").as_deref(), Some("hunter2"));
        other.put(CREDENTIALS, "c", b"theirs", Expected::Absent).expect("written");
        assert_eq!(value(&store, "c").as_deref(), Some("theirs"));
        assert_eq!(store.newest().expect("read"), 4);
    }
    let bytes = std::fs::read(&path).expect("the file");
    assert!(!bytes.windows(7).any(|window| window == b"hunter2"));
    let store = LocalStore::open(&path, &key(1)).expect("opened");
    assert_eq!(value(&store, "a").as_deref(), Some("hunter2"));
    assert_eq!(value(&store, "b"), None);
    assert_eq!(*store.watch().borrow(), 4);
}

#[test]
fn of_two_changes_to_one_version_one_is_refused() {
    let store =
        LocalStore::over(&builder(), Disk::default(), Path::new("it"), &key(1)).expect("made");
    let first = store.put(CREDENTIALS, "a", b"1", Expected::Absent).expect("written");
    let again = store.put(CREDENTIALS, "a", b"2", Expected::Absent);
    assert!(matches!(again, Err(StoreError::Conflict { .. })));
    let second = store.put(CREDENTIALS, "a", b"2", Expected::Version(first)).expect("written");
    assert!(second > first);
    let late = store.put(CREDENTIALS, "a", b"3", Expected::Version(first));
    assert!(matches!(late, Err(StoreError::Conflict { .. })));
    let late = store.delete(CREDENTIALS, "a", Expected::Version(first));
    assert!(matches!(late, Err(StoreError::Conflict { .. })));
    assert_eq!(value(&store, "a").as_deref(), Some("2"));
    let absent = store.delete(CREDENTIALS, "x", Expected::Anything);
    assert!(matches!(absent, Err(StoreError::Conflict { .. })));
}

#[test]
fn lists_in_pages_and_keeps_collections_apart() {
    let store =
        LocalStore::over(&builder(), Disk::default(), Path::new("it"), &key(1)).expect("made");
    for id in ["c", "a", "e", "b", "d"] {
        store.put(CREDENTIALS, id, id.as_bytes(), Expected::Absent).expect("written");
    }
    store.put(Collection::Environments, "a", b"other", Expected::Absent).expect("written");
    let page = |after| -> Vec<_> {
        let page = store.list(CREDENTIALS, after, 2).expect("listed");
        page.into_iter().map(|(id, _)| id).collect()
    };
    assert_eq!(page(None), ["a", "b"]);
    assert_eq!(page(Some("b")), ["c", "d"]);
    assert_eq!(page(Some("d")), ["e"]);
    assert_eq!(page(Some("e")), Vec::<String>::new());
    assert_eq!(page(Some("bb")), ["c", "d"]);
}

#[test]
fn tells_watchers_of_every_change() {
    let store =
        LocalStore::over(&builder(), Disk::default(), Path::new("it"), &key(1)).expect("made");
    let mut watch = store.watch();
    assert!(!watch.has_changed().expect("open"));
    let version = store.put(CREDENTIALS, "a", b"1", Expected::Absent).expect("written");
    assert!(watch.has_changed().expect("open"));
    assert_eq!(*watch.borrow_and_update(), version);
}

#[test]
fn another_key_opens_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("credentials.redb");
    drop(LocalStore::open(&path, &key(1)).expect("made"));
    let other = LocalStore::open(&path, &key(2));
    assert!(matches!(other, Err(StoreError::Damaged { .. })));
    assert!(LocalStore::open(&path, &key(1)).is_ok());
}

/// After a power failure at any moment the store is as before a change or as after it.
#[test]
fn a_crash_leaves_the_old_or_the_new() {
    let disk = Disk::default();
    {
        let store =
            LocalStore::over(&builder(), disk.clone(), Path::new("it"), &key(1)).expect("made");
        let mut version = store.put(CREDENTIALS, "a", b"0", Expected::Absent).expect("written");
        for n in 1..20 {
            let value = n.to_string();
            let expected = Expected::Version(version);
            version = store.put(CREDENTIALS, "a", value.as_bytes(), expected).expect("written");
        }
    }
    let mut last = 0;
    for synced in disk.history() {
        let Ok(store) =
            LocalStore::over(&builder(), Disk::holding(synced), Path::new("it"), &key(1))
        else {
            // Only before the store itself was whole.
            assert_eq!(last, 0);
            continue;
        };
        let Some(value) = value(&store, "a") else {
            assert_eq!(last, 0);
            continue;
        };
        let value: u32 = value.parse().expect("a number");
        assert!(value == last || value == last + 1, "{value} after {last}");
        last = value;
    }
    assert_eq!(last, 19);
}

/// The bytes of a store with a record, small enough to cut in many places.
fn file() -> Vec<u8> {
    let disk = Disk::default();
    let store = LocalStore::over(&builder(), disk.clone(), Path::new("it"), &key(1)).expect("made");
    store.put(CREDENTIALS, "a", b"hunter2", Expected::Absent).expect("written");
    drop(store);
    disk.history().pop().expect("synced")
}

#[test]
fn a_truncated_file_is_an_error_or_whole_and_never_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = file();
    let near_pages = (0..whole.len()).filter(|at| at % 4096 < 2 || *at < 700);
    for length in near_pages.chain([whole.len() - 1]) {
        let path = folder.path().join("cut");
        std::fs::write(&path, &whole[..length]).expect("written");
        match LocalStore::open(&path, &key(1)) {
            Ok(store) => assert_eq!(value(&store, "a").as_deref(), Some("hunter2"), "{length}"),
            Err(error) => {
                let said = error.to_string();
                assert!(matches!(error, StoreError::Damaged { .. }), "{length}: {error:?}");
                assert!(said.contains("nothing in it is used"), "{said}");
            }
        }
    }
}

#[test]
fn a_damaged_file_is_an_error_or_whole_and_never_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = file();
    let used: Vec<_> = (0..whole.len()).filter(|at| whole[*at] != 0).step_by(61).collect();
    for at in used {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        let path = folder.path().join("damaged");
        std::fs::write(&path, &damaged).expect("written");
        if let Ok(store) = LocalStore::open(&path, &key(1)) {
            assert_eq!(value(&store, "a").as_deref(), Some("hunter2"), "{at}");
        }
    }
}
