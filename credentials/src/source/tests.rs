use std::future::poll_fn;
use std::task::Poll;

use super::*;

fn command(script: &str) -> Arc<Reader> {
    let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    Reader::new(Source::Command(words), Fit::Header, &Arc::default())
}

#[tokio::test]
async fn a_file_is_read_anew_when_it_changes_and_failing_leaves_no_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("token");
    std::fs::write(&path, "one\n").expect("written");
    let reader = Reader::new(Source::File(path.clone()), Fit::Header, &Arc::default());
    assert!(reader.value().await.is_ok_and(|secret| secret.is(b"one")));
    std::fs::write(folder.path().join("next"), "two").expect("written");
    std::fs::rename(folder.path().join("next"), &path).expect("renamed");
    tokio::time::sleep(FILE_GLANCE).await;
    assert!(reader.value().await.is_ok_and(|secret| secret.is(b"two")));
    std::fs::remove_file(&path).expect("removed");
    tokio::time::sleep(FILE_GLANCE).await;
    assert!(matches!(reader.value().await, Err(SourceError::File { .. })));
    std::fs::write(&path, "three").expect("written");
    tokio::time::sleep(FILE_GLANCE).await;
    assert!(reader.value().await.is_ok_and(|secret| secret.is(b"three")));
}

#[tokio::test]
async fn what_is_no_plain_file_or_too_long_is_no_value() {
    let device = Reader::new(Source::File("/dev/zero".into()), Fit::Header, &Arc::default());
    assert!(matches!(device.value().await, Err(SourceError::File { .. })));
    let long = command("head -c 100000 /dev/zero | tr '\\0' a");
    let outcome = long.value().await;
    assert!(
        matches!(outcome, Err(SourceError::Value(SecretError::Long) | SourceError::Failed(_))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_command_gets_no_variable_but_path_and_its_failure_gives_no_value() {
    let said = command("env | cut -d= -f1 | grep -vE '^(PATH|PWD|SHLVL|_)$' || echo none");
    assert!(said.value().await.is_ok_and(|secret| secret.is(b"none")));
    let failed = command("echo value; exit 3");
    assert!(matches!(failed.value().await, Err(SourceError::Failed(_))));
    let absent =
        Reader::new(Source::Command(vec!["/nowhere/x".to_owned()]), Fit::Header, &Arc::default());
    assert!(matches!(absent.value().await, Err(SourceError::Start(_))));
}

#[tokio::test]
async fn a_command_is_asked_once_for_many_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = folder.path().join("count");
    let reader = command(&format!("echo x >> {}; echo value", count.display()));
    let asked: Vec<_> = (0..20)
        .map(|_| {
            let reader = Arc::clone(&reader);
            tokio::spawn(async move { reader.value().await.is_ok() })
        })
        .collect();
    for one in asked {
        assert!(one.await.expect("no panic"));
    }
    assert_eq!(std::fs::read_to_string(count).expect("counted"), "x\n");
}

#[tokio::test]
async fn an_unset_variable_is_no_value() {
    let reader = Reader::new(
        Source::Variable("OUTGATE_TEST_UNSET".to_owned()),
        Fit::Header,
        &Arc::default(),
    );
    let expected = SourceError::NoVariable("OUTGATE_TEST_UNSET".to_owned());
    assert_eq!(reader.value().await.map(|_| ()), Err(expected));
}

#[tokio::test]
async fn clients_that_leave_end_no_look_and_start_no_second_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (count, go) = (folder.path().join("count"), folder.path().join("go"));
    let script = format!(
        "echo x >> {}; until [ -e {} ]; do sleep 0.02; done; echo value",
        count.display(),
        go.display()
    );
    let reader = command(&script);
    for _ in 0..20 {
        let left = timeout(Duration::from_millis(10), reader.value()).await;
        assert!(left.is_err());
    }
    std::fs::write(go, "").expect("written");
    assert!(reader.value().await.is_ok_and(|secret| secret.is(b"value")));
    assert_eq!(std::fs::read_to_string(count).expect("counted"), "x\n");
}

#[tokio::test]
async fn a_failure_that_nobody_waited_for_is_remembered() {
    let reader = command("exit 3");
    let mut asking = Box::pin(reader.value());
    let waits = poll_fn(|cx| Poll::Ready(asking.as_mut().poll(cx).is_pending()));
    assert!(waits.await, "the command takes longer than a look");
    drop(asking);
    let reading = loop {
        match reader.last.load_full() {
            Some(reading) => break reading,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    assert!(matches!(reading.outcome, Err(SourceError::Failed(_))));
}

#[tokio::test]
async fn what_a_late_command_started_is_killed_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let started = folder.path().join("started");
    let script = format!("sleep 600 & echo $! > {}; wait", started.display());
    let words = ["/bin/sh", "-c", &script].map(str::to_owned);
    let outcome = run(&words, Fit::Header, Duration::from_secs(2)).await;
    assert!(matches!(outcome, Err(SourceError::Late)));
    let process = std::fs::read_to_string(started).expect("it was started");
    let status = PathBuf::from(format!("/proc/{}/stat", process.trim()));
    // A zombie is one that nobody has asked about yet.
    while std::fs::read_to_string(&status).is_ok_and(|status| !status.contains(") Z ")) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
