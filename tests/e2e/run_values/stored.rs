//! Is a value that can't be read missed by its own requests alone?

use super::*;

#[test]
fn one_whose_file_is_gone_refuses_its_own_requests_and_nothing_else() {
    isolated(|| {
        let place = Place::new();
        let api = place.world.https(API).start();
        let _ok = place.world.https(OK).start();
        let (main, other) = (place.path("main"), place.path("nowhere/other"));
        let secret = canary(40);
        place.write("main", &secret);
        place.stores("main", &from_file(&main));
        let script = format!("{}; {}", status(API), status(OK));
        let finished = place.sh(&script);
        assert_eq!(finished.text(), "200 \n200 \n", "{finished:?}");
        assert!(!finished.stderr.contains("the credential main"), "{}", finished.stderr);
        fs::remove_file(&main).expect("it is there");
        place.stores("other", &from_file(&other));
        // What the command works in can't be hidden from it.
        place.stores("folder", &from_file(&place.path("")));
        let finished = place.sh(&script);
        assert_eq!(finished.text(), "403 credential_unavailable\n200 \n", "{finished:?}");
        for (id, file) in [("main", &main), ("other", &other)] {
            let told = format!("the credential {id}: {} can't be read: ", file.display());
            let lines: Vec<_> = finished.stderr.lines().filter(|one| one.contains(&told)).collect();
            let [line] = lines[..] else { panic!("{}", finished.stderr) };
            assert!(line.contains("start anew") && line.contains("credentials update"), "{line}");
        }
        place.write("main", &secret);
        assert_eq!(place.sh(&script).text(), "200 \n200 \n");
        assert_eq!(api.requests().len(), 2);
        assert_secret_absent(&finished.stderr, &secret);
    });
}

#[test]
fn one_whose_file_comes_back_into_a_folder_of_its_own_is_used_and_stays_hidden() {
    isolated(|| {
        let place = Place::new();
        let api = place.world.https(API).start();
        fs::create_dir(place.path("own")).expect("writable");
        place.stores("main", &from_file(&place.path("own/main")));
        let script = format!("{}; echo > asked; {}; ls own", status(API), until_allowed(API));
        let child = place.start(&script);
        assert!(wait_until(SOON, || place.path("asked").exists()));
        let secret = canary(40);
        place.replace("own/main", &secret);
        let (said, logs) = ended(child);
        assert_eq!(said, "403 credential_unavailable\n200 \n", "{logs}");
        let expected = format!("Bearer {secret}");
        assert_eq!(api.requests()[0].header("authorization"), Some(expected.as_str()));
    });
}

#[test]
fn what_the_command_may_have_put_in_the_place_of_a_file_is_no_value() {
    isolated(|| {
        let place = Place::new();
        let api = place.world.https(API).start();
        let [token, other] = [canary(40), canary(40)];
        place.write("other", &other);
        place.stores("other", &from_file(&place.path("other")));
        place.stores("main", &from_file(&place.path("main")));
        // Gone at the start: the command makes one, and a link to a secret that it can't read.
        let script = format!(
            "cat other; echo forged > main; sleep 0.2; {0}; ln -sf other main; sleep 0.2; {0}; \
             rm main",
            status(API)
        );
        let refused = "403 credential_unavailable\n";
        let finished = place.sh(&script);
        assert_eq!(finished.text(), refused.repeat(2), "{finished:?}");
        assert!(!finished.text().contains(&other), "{finished:?}");
        // Replaced meanwhile: what hid the old one went with it.
        place.write("main", &token);
        let script = format!(
            "{0}; echo > asked; {1}; sleep 0.2; {0}; ln -sf other main; sleep 0.2; {0}",
            status(API),
            until_there("replaced"),
        );
        let child = place.start(&script);
        assert!(wait_until(SOON * 4, || place.path("asked").exists()));
        place.replace("main", &token);
        place.write("replaced", "");
        let (said, logs) = ended(child);
        assert_eq!(said, format!("200 \n{}", refused.repeat(2)), "{logs}");
        assert!(logs.contains("main can't be read: another one was put in its place"), "{logs}");
        let requests = api.requests();
        assert_eq!(requests.len(), 1);
        let expected = format!("Bearer {token}");
        assert_eq!(requests[0].header("authorization"), Some(expected.as_str()));
    });
}

#[test]
fn one_that_is_stored_meanwhile_is_read_only_if_its_file_is_hidden() {
    isolated(|| {
        let place = Place::new();
        let api = place.world.https(API).start();
        let [main, hidden] = [canary(40), canary(40)];
        place.write("main", &main);
        place.write("own/hidden", &hidden);
        place.stores("other", &from_file(&place.path("own/hidden")));
        let script = format!("{}; {}; {}", until_there("stored"), status(API), until_allowed(API));
        let child = place.start(&script);
        place.stores("main", &from_file(&place.path("main")));
        // Another process stored it; the gateway looks a few times a second.
        std::thread::sleep(Duration::from_secs(1));
        place.write("stored", "");
        std::thread::sleep(Duration::from_millis(300));
        let set = format!("token={}", from_file(&place.path("own/hidden")));
        let words = ["credentials", "update", "main", "--set", &set].map(OsStr::new);
        let updated = run(&mut place.outgate(&words), b"", SOON * 4);
        assert_eq!(updated.code(), 0, "{updated:?}");
        let (said, logs) = ended(child);
        assert_eq!(said, "403 credential_unavailable\n200 \n", "{logs}");
        let expected = format!("Bearer {hidden}");
        assert_eq!(api.requests()[0].header("authorization"), Some(expected.as_str()));
    });
}

#[test]
fn a_gateway_starts_without_it_says_so_and_uses_it_when_it_comes() {
    isolated(|| {
        let place = Place::new();
        let api = place.world.https(API).start();
        let _ok = place.world.https(OK).start();
        let (main, unset) = (place.path("nowhere/main"), json!({"from_env": "OUTGATE_TEST_UNSET"}));
        place.stores("main", &from_file(&main));
        place.stores("unset", &unset);
        let gateway = place.world.gateway_builder().state(&place.path("state"));
        let gateway = gateway.argument("--environment").argument(place.path("env.json")).start();
        for told in [
            format!("the credential main: {} can't be read: ", main.display()),
            "the credential unset: the variable OUTGATE_TEST_UNSET is not set".to_owned(),
        ] {
            assert!(gateway.wait_log(&told), "{told}: {:?}", gateway.logs());
        }
        let answer = |domain: &str| {
            let answer = gateway.curl(&format!("https://{domain}/")).run();
            (answer.status, answer.reason().map(str::to_owned))
        };
        let refused = (403, Some("credential_unavailable".to_owned()));
        assert_eq!((answer(API), answer(OK).0), (refused, 200));
        let secret = canary(40);
        place.write("nowhere/main", &secret);
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(answer(API), (200, None));
        let expected = format!("Bearer {secret}");
        assert_eq!(api.requests()[0].header("authorization"), Some(expected.as_str()));
        // Whoever asks for its sandbox is not kept waiting by the other one either.
        assert_eq!(place.sh(&status(OK)).text(), "200 \n");
    });
}
