//! Can a message that was cut be taken for a whole one?

use outgate_tests::prelude::*;

use crate::{answered_by, both_ways};

const REQUEST: &str = "GET @/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

fn is_cut(answer: Result<Response, ReadFault>, way: Way, start: &[u8]) {
    match answer {
        Err(ReadFault::Truncated { body } | ReadFault::Reset { body }) => {
            assert!(start.starts_with(&body), "{way}: {body:?}");
        }
        other => panic!("{way}: a cut answer came as {other:?}"),
    }
}

#[test]
fn an_answer_that_ends_early_ends_early_for_the_client() {
    isolated(|| {
        let world = world!();
        let scripts: [fn() -> Box<origin::Script>; 8] = [
            || scripts::truncated(100, 40),
            || {
                scripts::respond_and_close(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n28\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n",
                )
            },
            || {
                scripts::respond_and_close(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n28\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n0\r\n",
                )
            },
            || scripts::reset_after("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nxxxx"),
            || {
                scripts::reset_after(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\n",
                )
            },
            // A fault in the middle of a body can only be told by an end.
            || {
                scripts::respond(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\n0x5\r\nxxxxx\r\n0\r\n\r\n",
                )
            },
            || {
                scripts::respond(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nxxxxxx\r\n0\r\n\r\n",
                )
            },
            || {
                scripts::respond(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\n0\r\nX: 1\r\n 2\r\n\r\n",
                )
            },
        ];
        for script in scripts {
            let both = answered_by(&world, script);
            for way in Way::ALL {
                is_cut(both.sent(way, REQUEST).try_read_response("GET"), way, &[b'x'; 40]);
            }
            let audit = both.audited(2);
            assert!(audit.iter().all(|line| line["error"].is_string()), "{audit:#?}");
        }
    });
}

/// Over TLS an end without close_notify may be an attacker's.
#[test]
fn an_answer_that_ends_with_its_connection_is_cut_where_tls_did_not_say_the_end() {
    isolated(|| {
        let world = world!();
        let response = "HTTP/1.1 200 OK\r\n\r\nhello";
        let both = answered_by(&world, || {
            Box::new(move |connection: &mut Connection| {
                if connection.request().is_some() {
                    connection.send(response);
                    connection.cut();
                }
            })
        });
        let answer = both.sent(Way::Tunnel, REQUEST).try_read_response("GET");
        is_cut(answer, Way::Tunnel, b"hello");
        drop(both);

        let control =
            answered_by(&world, || scripts::respond_and_close("HTTP/1.1 200 OK\r\n\r\nhello"));
        for way in Way::ALL {
            assert_eq!(control.ask(way, REQUEST).text(), "hello", "{way}");
        }
    });
}

#[test]
fn an_upload_that_ends_early_never_looks_whole_to_the_origin() {
    isolated(|| {
        let both = both_ways();
        let framings = [
            "Content-Length: 100\r\n\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "Transfer-Encoding: chunked\r\n\r\n28\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n",
            "Transfer-Encoding: chunked\r\n\r\n28\r\nxxxxxxxx",
        ];
        for framing in framings {
            for way in Way::ALL {
                for abrupt in [false, true] {
                    let head = format!("POST @/ HTTP/1.1\r\nHost: api.example.com\r\n{framing}");
                    let before = both.origin(way).connections();
                    let mut client = both.sent(way, head);
                    assert!(
                        wait_until(Duration::from_secs(5), || {
                            both.origin(way).connections() > before
                        }),
                        "{way}: the upload never began"
                    );
                    if abrupt {
                        client.reset();
                    } else {
                        client.finish_sending();
                        let answer = client.try_read_response("POST");
                        assert!(answer.map_or(true, |answer| answer.status >= 400), "{way}");
                    }
                    assert!(both.origin(way).wait_closed(), "{way}: the origin still waits");
                }
            }
        }
        for way in Way::ALL {
            let requests = both.origin(way).requests();
            assert!(requests.is_empty(), "{way}: the origin took it for whole: {requests:?}");
        }
        both.audited(2 * 2 * framings.len());
    });
}
