//! Is the framing right, however a body is cut and however long it is?

use outgate_tests::prelude::*;

use super::scene::{API, JSON, Scene, chunk, chunked_head, key, post};

const MIB: usize = 1 << 20;

#[test]
fn every_cut_of_a_body_gives_the_same() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let value = canary(50);
        let scene = Scene::new(&world, &[key(&value)]);
        let body = format!("{{\"k\":\"{}\"}}", scene.placeholder("KEY"));
        let due = format!("{{\"k\":\"{value}\"}}");
        let mut client = scene.client();
        for cut in 1..body.len() {
            client.send(chunked_head(JSON));
            client.send(chunk(&body[..cut]));
            client.send([chunk(&body[cut..]), b"0\r\n\r\n".to_vec()].concat());
            assert_eq!(client.read_response().status, 200, "{cut}");
        }
        for size in [1, 2, 7] {
            let request = post(JSON, &body);
            let (head, content) = request.split_at(request.len() - body.len());
            client.send(head);
            client.send_in_pieces(content, size, Duration::from_millis(2));
            assert_eq!(client.read_response().status, 200, "{size}");
        }
        let requests = origin.requests();
        assert_eq!(requests.len(), body.len() - 1 + 3);
        for request in requests {
            assert_eq!(request.text(), due);
            assert_eq!(request.head.values("content-length"), [due.len().to_string().as_str()]);
        }
    });
}

#[test]
fn trailers_come_behind_a_body_that_changes() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let scene = Scene::new(&world, &[key("value")]);
        let placeholder = scene.placeholder("KEY");
        let fields = format!("{JSON}TE: trailers\r\nTrailer: X-Checksum\r\nConnection: TE\r\n");
        let body = chunk(format!("\"{placeholder}\""));
        let end = b"0\r\nX-Checksum: 1\r\n\r\n".to_vec();
        let request = [chunked_head(&fields).into_bytes(), body.clone(), end].concat();
        assert_eq!(scene.client().exchange(request).status, 200);
        let request = &origin.requests()[0];
        assert_eq!(request.text(), "\"value\"");
        let trailers: Vec<_> = request.trailers.iter().map(|field| field.value.as_str()).collect();
        assert_eq!(trailers, ["1"]);
        // A placeholder in a trailer is one in a place where nothing is replaced.
        let end = format!("0\r\nX-Checksum: {placeholder}\r\n\r\n").into_bytes();
        let request = [chunked_head(&fields).into_bytes(), body, end].concat();
        scene.refuses(request, 403, "placeholder_not_trusted");
        assert_eq!(origin.requests().len(), 1);
    });
}

#[test]
fn up_to_a_mebibyte_has_a_length_and_more_comes_in_chunks() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let value = canary(200);
        let scene = Scene::new(&world, &[key(&value)]);
        let placeholder = scene.placeholder("KEY");
        for (length, whole) in [(MIB, true), (MIB + 1, false), (5 * MIB + 77, false)] {
            let most = length - 2 * placeholder.len() - 2;
            let body = format!("\"{placeholder}{}{placeholder}\"", "x".repeat(most));
            assert_eq!(body.len(), length);
            let due = body.replace(&placeholder, &value);
            assert_eq!(scene.client().exchange(post(JSON, &body)).status, 200);
            let requests = origin.requests();
            let request = requests.last().expect("it came");
            assert!(request.text() == due, "{length}");
            let said = request.header("content-length").map(str::to_owned);
            // What was put in counts: longer than a mebibyte, it is streamed too.
            let whole = whole && due.len() <= MIB;
            assert_eq!(said, whole.then(|| due.len().to_string()), "{length}");
            assert_eq!(request.header("transfer-encoding").is_some(), !whole);
        }
        let short = format!("\"{placeholder}\"");
        let padded = format!("{short}{}", " ".repeat(MIB - short.len() - value.len()));
        assert_eq!(scene.client().exchange(post(JSON, &padded)).status, 200);
        let requests = origin.requests();
        let request = requests.last().expect("it came");
        let due = padded.replace(&placeholder, &value).len().to_string();
        assert_eq!(request.header("content-length"), Some(due.as_str()));
        assert_eq!(scene.audit(4)[2]["credentials"], json!(["key"]));
    });
}

#[test]
fn the_limit_is_the_operator_s() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let limits = "[limits]\nbody_buffer_bytes = 100\n";
        let scene = Scene::with(&world, &[key("v")], limits);
        for (length, whole) in [(100, true), (101, false)] {
            let body = format!("\"{}\"", "x".repeat(length - 2));
            assert_eq!(scene.client().exchange(post(JSON, &body)).status, 200);
            let requests = origin.requests();
            let request = requests.last().expect("it came");
            assert_eq!(request.header("content-length").is_some(), whole, "{length}");
            assert_eq!(request.text(), body);
        }
    });
}

#[test]
fn bytes_that_are_no_text_keep_their_length() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let scene = Scene::new(&world, &[key("v")]);
        let body = vec![0xff; 2 * MIB];
        let fields = "Content-Type: application/octet-stream\r\nContent-MD5: x\r\n";
        assert_eq!(scene.client().exchange(post(fields, &body)).status, 200);
        let request = &origin.requests()[0];
        assert!(request.body == body);
        assert_eq!(request.header("content-length"), Some(body.len().to_string().as_str()));
        assert_eq!(request.header("content-md5"), Some("x"));
    });
}

#[test]
fn a_client_that_waits_for_100_is_told_to_go_on() {
    isolated(|| {
        let world = world!();
        let origin = world.https(API).respond(scripts::ok("yes")).start();
        let scene = Scene::new(&world, &[key("value")]);
        let body = format!("\"{}\"", scene.placeholder("KEY"));
        let mut client = scene.client();
        let request = post(&format!("{JSON}Expect: 100-continue\r\n"), &body);
        let (head, content) = request.split_at(request.len() - body.len());
        client.send(head);
        assert_eq!(client.read_exact(25), b"HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(origin.connections(), 0, "the body was still to be looked at");
        client.send(content);
        assert_eq!(client.read_response().status, 200);
        let request = &origin.requests()[0];
        assert_eq!((request.text().as_str(), request.header("expect")), ("\"value\"", None));
    });
}
