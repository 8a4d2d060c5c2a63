//! Is a connection to an origin given no more streams than the origin counts?

use outgate_tests::prelude::*;

use crate::{NAME, Step, open_gateway};

/// An origin of one stream at a time that answers an upload before its end.
fn hasty(world: &World, go: Step) -> Http2Origin {
    world
        .http2(NAME)
        .settings(|settings| {
            settings.max_concurrent_streams(1);
        })
        .script(move |stream: &mut Stream| {
            stream.answer(200, &[], b"early");
            if stream.request().method == "POST" {
                assert!(go.wait(1));
            }
        })
        .start()
}

#[test]
fn an_upload_that_was_answered_early_still_has_its_place() {
    isolated(|| {
        let world = world!();
        let step = Step::default();
        let origin = hasty(&world, step.clone());
        let gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        assert_eq!(client.get("/").status, 200);
        let mut upload = client.open(client.request("POST", "/"));
        upload.send("some");
        assert_eq!(upload.head().expect("an answer").status, 200);
        assert_eq!(upload.rest().expect("its body").0, b"early");
        // Behind the upload it would wait for that.
        assert_eq!(client.get("/").status, 200);
        assert_eq!(origin.connections(), 2);
        step.reach(1);
        upload.finish();
        let shared = || {
            let before = origin.connections();
            assert_eq!(client.get("/").status, 200);
            origin.connections() == before
        };
        assert!(wait_until(Duration::from_secs(5), shared), "its place is never given back");
    });
}

#[test]
fn uploads_take_one_place_each() {
    isolated(|| {
        let world = world!();
        let (step, most) = (Step::default(), 8);
        let go = step.clone();
        let origin = world
            .http2(NAME)
            .settings(move |settings| {
                settings.max_concurrent_streams(most);
            })
            .script(move |stream: &mut Stream| {
                stream.respond(200, &[]);
                assert!(stream.request().method == "GET" || go.wait(1));
                stream.finish();
            })
            .start();
        let gateway = open_gateway(&world);
        let client = gateway.http2(NAME).connect();
        assert_eq!(client.get("/").status, 200);
        let mut open: Vec<_> =
            (0..most).map(|_| client.open(client.request("POST", "/"))).collect();
        for upload in &mut open {
            upload.send("some");
            assert_eq!(upload.head().expect("an answer").status, 200);
        }
        assert_eq!(origin.connections(), 1, "as many as it takes");
        assert_eq!(client.get("/").status, 200);
        assert_eq!(origin.connections(), 2, "and no more");
        step.reach(1);
    });
}
