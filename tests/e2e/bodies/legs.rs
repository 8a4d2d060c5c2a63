//! Is it the same over HTTP/2, on either leg?

use outgate_tests::prelude::*;

use super::scene::{API, Scene, key, post};

fn taking(world: &World) -> Http2Origin {
    let origin = world.http2(API).script(|stream| {
        stream.body();
        stream.answer(200, &[], b"yes");
    });
    origin.start()
}

#[test]
fn every_cut_into_frames_gives_the_same() {
    isolated(|| {
        let world = world!();
        let origin = taking(&world);
        let value = canary(60);
        let scene = Scene::new(&world, &[key(&value)]);
        let body = format!("{{\"k\":\"é{}\"}}", scene.placeholder("KEY"));
        let due = format!("{{\"k\":\"é{value}\"}}");
        let client = scene.gateway.http2(API).connect();
        let request = || client.request("POST", "/p").header("content-type", "application/json");
        let cuts = (1..body.len()).step_by(3).map(|cut| body.as_bytes().split_at(cut));
        for (index, (one, two)) in cuts.enumerate() {
            let mut exchange = client.open(request());
            exchange.send(one);
            exchange.send(two);
            match index % 2 {
                0 => exchange.finish(),
                _ => exchange.finish_with(&[("x-checksum", "1")]),
            }
            assert_eq!(exchange.answer().expect("an answer").status, 200, "{index}");
            let seen = origin.requests().pop().expect("it came");
            assert_eq!(String::from_utf8_lossy(&seen.body), due, "{index}");
            let length = due.len().to_string();
            let said = (index % 2 == 0).then_some(length.as_str());
            assert_eq!(seen.header("content-length"), said, "{index}");
            assert_eq!(seen.trailers.len(), index % 2, "{index}: {:?}", seen.trailers);
        }
        assert_secret_absent(scene.gateway.output(), &value);
    });
}

#[test]
fn both_legs_are_chosen_apart() {
    isolated(|| {
        let world = world!();
        let origin = taking(&world);
        let value = canary(60);
        let scene = Scene::new(&world, &[key(&value)]);
        let placeholder = scene.placeholder("KEY");
        let long = format!("k={placeholder}{}&l={placeholder}", "x".repeat(2 << 20));
        let fields = "Content-Type: application/x-www-form-urlencoded\r\n";
        for (index, body) in [format!("k={placeholder}"), long].iter().enumerate() {
            let due = body.replace(&placeholder, &value);
            let answer = scene.client().exchange(post(fields, body));
            assert_eq!(answer.status, 200);
            let seen = origin.requests().pop().expect("it came");
            assert!(seen.body == due.as_bytes(), "{index}");
            assert_eq!(seen.header("content-length").is_some(), index == 0);
            assert_eq!(seen.header("transfer-encoding"), None);
        }
    });
}

#[test]
fn an_http1_origin_gets_what_an_http2_client_sends() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let value = canary(60);
        let scene = Scene::new(&world, &[key(&value)]);
        let placeholder = scene.placeholder("KEY");
        let client = scene.gateway.http2(API).connect();
        for length in [10, 2 << 20] {
            let body = format!("[\"{}\",\"{placeholder}\"]", "x".repeat(length));
            let request = client.request("PUT", "/p").header("content-type", "application/json");
            assert_eq!(client.ask(request, &body).status, 200);
            let request = origin.requests().pop().expect("it came");
            assert!(request.text() == body.replace(&placeholder, &value), "{length}");
            assert_eq!(request.header("content-length").is_some(), length == 10);
        }
    });
}
