//! Does a file that can't be used leave the last good one in force, and is that told?

use std::fs;

use super::*;

#[test]
fn a_bad_file_changes_nothing_and_is_told_until_it_is_good_again() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).start();
        let gateway = world.gateway(allowing(&[API]));
        let mut tunnel = tunnel(&gateway, API);
        let get = GET.replace(OK, API);
        assert_eq!(gateway.readiness(), (200, json!({"ready": true})));
        let failures = "outgate_reloads_total{outcome=\"failure\"}";
        let successes = "outgate_reloads_total{outcome=\"success\"}";

        let secret = canary(32);
        let entry = json!({"domian": API, "transform": {"Authorization": secret}});
        let network = json!({"network": {"allowlist": [entry, {"domain": "a b"}]}});
        for bad in [network.to_string(), "{".to_owned(), String::new(), "[]".to_owned()] {
            gateway.set_environment_text(&bad);
            let before = gateway.metric(failures);
            assert!(wait_until(SOON, || gateway.metric(failures) > before
                || !gateway.problems().is_empty()));
            let (status, told) = gateway.readiness();
            assert_eq!((status, &told["ready"]), (200, &json!(true)), "it serves");
            let expected =
                "env_test.json can't be used: what it said last is in force; the log says why";
            assert_eq!(told["problems"], json!([expected]));
            assert_eq!(gateway.metric("outgate_problems"), 1.0);
            assert_eq!(tunnel.exchange(&get).status, 200);
            wait_admission(&gateway, API, true);
            wait_admission(&gateway, OK, false);
        }
        assert!(gateway.wait_log("network.allowlist[0].domian: unknown field"));
        assert!(gateway.wait_log("network.allowlist[1].domain"), "every problem");
        assert_secret_absent(gateway.output(), &secret);

        let before = gateway.metric(successes);
        gateway.set_environment(&allowing(&[API, OK]));
        wait_admission(&gateway, OK, true);
        assert!(wait_until(SOON, || gateway.readiness() == (200, json!({"ready": true}))));
        assert!(gateway.metric(successes) > before);
    });
}

#[test]
fn a_file_that_is_deleted_is_kept_in_force_loudly() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).start();
        let file = network::folder().join("one.json");
        fs::write(&file, allowing(&[API]).to_string()).expect("writable");
        let gateway = world.gateway_builder().argument("--environment").argument(&file).start();
        fs::remove_file(&file).expect("it is there");
        assert!(wait_until(SOON, || gateway.problems().len() == 1));
        assert!(gateway.wait_log("No such file"));
        gateway.reload();
        assert!(gateway.wait_log("SIGHUP"));
        wait_admission(&gateway, API, true);
        wait_admission(&gateway, OK, false);
        assert_eq!(gateway.problems().len(), 1);
    });
}

#[test]
fn one_that_never_was_good_is_denied_everything_until_it_is() {
    isolated(|| {
        let world = world!();
        let builder = world.gateway_builder().environment_text("{\"network\": {}}");
        let gateway = builder.start();
        wait_admission(&gateway, API, false);
        let expected = "env_test.json can't be used: everything is denied to its environment; the log says why";
        assert_eq!(gateway.problems(), [expected]);
        gateway.set_environment(&allowing(&[API]));
        wait_admission(&gateway, API, true);
        assert!(gateway.problems().is_empty());
    });
}

#[test]
fn what_the_api_changes_does_not_tell_of_a_bad_file_again_and_a_person_who_asks_is_told() {
    isolated(|| {
        let gateway = world!().gateway(allowing(&[API]));
        gateway.set_environment_text("{");
        assert!(gateway.wait_log("can't be used"));
        let told = || gateway.logs().iter().filter(|line| line.contains("can't be used")).count();
        let before = told();
        for _ in 0..5 {
            let network = json!({"network": {"allowlist": []}});
            assert_eq!(gateway.api("POST", "/v1beta/environments", &network).status, 200);
        }
        assert_eq!((told(), gateway.problems().len()), (before, 1));
        gateway.reload();
        assert!(wait_until(SOON, || told() > before), "a person asked");
    });
}
