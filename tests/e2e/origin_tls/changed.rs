//! What if the files change?

use super::*;

/// Until a request fares so, for up to 5 s.
fn becomes(gateway: &Gateway, wanted: &(u16, Option<String>)) -> bool {
    wait_until(Duration::from_secs(5), || &status(gateway, URL) == wanted)
}

#[test]
fn other_contents_of_a_file_count_at_once_and_use_no_connection_of_before() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        let place = Place::new();
        place.copy(world.pki.roots(), "corp.pem");
        let gateway = place.gateway(&world, &json!({"roots": "corp.pem"})).start();
        for _ in 0..2 {
            assert_eq!(status(&gateway, URL), (200, None));
        }
        assert_eq!(origin.connections(), 1);
        place.copy(world.pki.unknown_roots(), "corp.pem");
        assert!(becomes(&gateway, &refused()), "the kept connection is not used");
        place.copy(world.pki.roots(), "corp.pem");
        assert!(becomes(&gateway, &(200, None)));
    });
}

#[test]
fn a_file_that_fails_leaves_what_it_said_last_in_force() {
    isolated(|| {
        let world = world!();
        let _origin = world.https(API).start();
        let place = Place::new();
        place.copy(world.pki.roots(), "corp.pem");
        let gateway = place.gateway(&world, &json!({"roots": "corp.pem"})).start();
        assert_eq!(status(&gateway, URL), (200, None));
        fs::write(place.folder.join("corp.pem"), "nothing").expect("the folder is writable");
        assert!(gateway.wait_log("network.allowlist[0].origin.roots: "));
        assert!(gateway.wait_log("what it said last is in force"));
        assert_eq!(status(&gateway, URL), (200, None));
        // Not even what else the same file says.
        place.writes(&json!({"network": {"allowlist": [
            {"domain": API, "methods": ["POST"], "origin": {"roots": "corp.pem"}}]}}));
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!(status(&gateway, URL), (200, None));
        place.copy(world.pki.roots(), "corp.pem");
        assert!(becomes(&gateway, &(403, Some("method_not_allowed".to_owned()))));
    });
}

#[test]
fn an_entry_s_connections_are_no_other_s() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).start();
        let place = Place::new();
        place.identity(&world, "client");
        let said = json!({"client_certificate": "client.pem", "client_key": "client.key"});
        let gateway = place.gateway(&world, &said).start();
        for _ in 0..2 {
            assert_eq!(status(&gateway, URL), (200, None));
        }
        assert_eq!(origin.connections(), 1);
        place.writes(&json!({"network": {"allowlist": [{"domain": API}]}}));
        assert!(gateway.wait_log("environment files were read"));
        assert!(wait_until(Duration::from_secs(5), || {
            assert_eq!(status(&gateway, URL), (200, None));
            origin.connections() == 2
        }));
        let resumed = origin.records()[1].handshake().expect("over").expect("good").resumed;
        assert!(!resumed, "nor are its sessions");
        for _ in 0..2 {
            assert_eq!(status(&gateway, URL), (200, None));
        }
        assert_eq!(origin.connections(), 2);
    });
}
