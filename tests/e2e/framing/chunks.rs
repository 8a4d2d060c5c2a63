//! Where does a chunk end?

use outgate_tests::prelude::*;

use crate::{both_ways, targets};

fn chunked(body: &str) -> String {
    format!("POST @/ HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
}

#[test]
fn refuses_what_only_looks_like_a_chunk_size() {
    isolated(|| {
        let both = both_ways();
        let bodies = [
            "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
            "10000000000000005\r\nhello\r\n0\r\n\r\n",
            "0x5\r\nhello\r\n0\r\n\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            "-1\r\nhello\r\n0\r\n\r\n",
            " 5\r\nhello\r\n0\r\n\r\n",
            "5_0\r\nhello\r\n0\r\n\r\n",
            "5 0\r\nhello\r\n0\r\n\r\n",
            "\r\nhello\r\n0\r\n\r\n",
            ";\r\nhello\r\n0\r\n\r\n",
            ";a=b\r\nhello\r\n0\r\n\r\n",
            "5\nhello\r\n0\r\n\r\n",
            "5\rhello\r\n0\r\n\r\n",
            "5;a\nhello\r\n0\r\n\r\n",
            "5\r\nhelloX\r\n0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5\r\nhello0\r\n\r\n",
            "5\r\nhello\r\n0\r\nX: 1\r\n 2\r\n\r\n",
            "5\r\nhello\r\n0\r\nX : 1\r\n\r\n",
            "5\r\nhello\r\n0\r\nX\r\n\r\n",
        ];
        for body in bodies {
            for way in Way::ALL {
                let mut client = both.sent(way, chunked(body));
                let answer = client.read_response();
                let reason = answer.header("outgate-reason");
                assert_eq!(
                    (answer.status, reason),
                    (400, Some("malformed_request")),
                    "{way} {body:?}"
                );
                assert!(client.is_closed(), "{way} {body:?}");
            }
        }
        // A head may have gone up before the fault was seen: no whole request has.
        for way in Way::ALL {
            assert!(targets(&both, way).is_empty(), "{way}");
            assert!(both.origin(way).wait_closed(), "{way}: the origin's connection goes on");
        }
        both.still_works();
        both.audited(2 * bodies.len() + 2);
    });
}

#[test]
fn rebuilds_chunks_and_drops_their_extensions() {
    isolated(|| {
        let both = both_ways();
        let bodies = [
            "5\r\nhello\r\n0\r\n\r\n",
            "5;a=b\r\nhello\r\n0;c\r\n\r\n",
            "5;a=\"x;y\"\r\nhello\r\n0\r\n\r\n",
            "5;\r\nhello\r\n0\r\n\r\n",
            "5 \r\nhello\r\n0\r\n\r\n",
            "00000000000000000005\r\nhello\r\n000\r\n\r\n",
            "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        ];
        for body in bodies {
            for way in Way::ALL {
                let mut client = both.sent(way, chunked(body));
                assert_eq!(client.read_response().json()["body"], "hello", "{way} {body:?}");
                // The connection is in step: what comes next is a request.
                client.send(way.write("GET @/next HTTP/1.1\r\nHost: api.example.com\r\n\r\n"));
                assert_eq!(client.read_response().json()["target"], "/next", "{way} {body:?}");
            }
        }
        for way in Way::ALL {
            // The strict parser takes no extension, no blank and no such size.
            assert_eq!(both.origin(way).requests().len(), 2 * bodies.len());
        }
        both.audited(4 * bodies.len());
    });
}

#[test]
fn takes_a_body_that_ends_without_its_last_line_for_unfinished() {
    isolated(|| {
        let both = both_ways();
        for way in Way::ALL {
            let mut client = both.sent(way, chunked("5\r\nhello\r\n0\r\n"));
            client.finish_sending();
            let answer = client.try_read_response("GET");
            assert!(answer.map_or(true, |answer| answer.status == 400), "{way}");
            assert!(both.origin(way).wait_closed(), "{way}");
            assert!(targets(&both, way).is_empty(), "{way}");
        }
        both.audited(2);
    });
}
