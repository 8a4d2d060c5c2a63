//! How long is a request's body?

use outgate_tests::prelude::*;

use crate::{both_ways, targets};

const INNER: &str = "GET @/inner HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

#[test]
fn sends_up_one_request_where_length_and_chunks_disagree() {
    isolated(|| {
        let both = both_ways();
        let framings = [
            "Content-Length: 51\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 51\r\n",
            "Content-Length: 5\r\nTransfer-Encoding: CHUNKED\r\nContent-Length: 6\r\n",
        ];
        for framing in framings {
            for way in Way::ALL {
                let template = format!(
                    "POST @/a HTTP/1.1\r\nHost: api.example.com\r\n{framing}\r\n0\r\n\r\n{INNER}"
                );
                let mut client = both.sent(way, template);
                let answer = client.read_response();
                assert_eq!((answer.status, &answer.json()["body"]), (200, &json!("")));
                assert!(client.is_closed(), "{way}: the bytes behind it were read on");
            }
        }
        for way in Way::ALL {
            assert_eq!(targets(&both, way), ["/a"; 3], "{way}");
        }
        both.audited(6);
    });
}

#[test]
fn refuses_what_only_looks_like_a_length() {
    isolated(|| {
        let both = both_ways();
        let lengths = [
            "+5",
            "-0",
            "-5",
            "0x5",
            "5 5",
            "5,5",
            "5,6",
            "5abc",
            "٥",
            "",
            "5.0",
            "1e1",
            "5;",
            "\"5\"",
            "18446744073709551621",
        ];
        for length in lengths {
            both.refuses_and_closes(
                format!(
                    "POST @/ HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: {length}\r\n\r\nhello"
                ),
                400,
                "malformed_request",
            );
        }
        both.refuses_and_closes(
            "POST @/ HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            400,
            "malformed_request",
        );
        // As long as a number can say, which hyper calls too large.
        for length in [u64::MAX, u64::MAX - 1] {
            both.refuses_and_closes(
                format!(
                    "POST @/ HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: {length}\r\n\r\nhello"
                ),
                431,
                "head_too_large",
            );
        }
        both.still_works();
        both.audited(2 * (lengths.len() + 3) + 2);
    });
}

#[test]
fn collapses_lengths_that_agree() {
    isolated(|| {
        let both = both_ways();
        for way in Way::ALL {
            let answer = both.ask(
                way,
                "POST @/ HTTP/1.1\r\nHost: api.example.com\r\n\
                 Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
            );
            assert_eq!(answer.json()["body"], "hello", "{way}");
            let request = &both.origin(way).requests()[0];
            assert_eq!(request.head.values("content-length"), ["5"], "{way}");
        }
    });
}

#[test]
fn takes_an_underscore_for_no_length() {
    isolated(|| {
        let both = both_ways();
        for way in Way::ALL {
            let mut client = both.sent(
                way,
                "POST @/ HTTP/1.1\r\nHost: api.example.com\r\nContent_Length: 5\r\n\r\nhello",
            );
            assert_eq!(client.read_response().json()["body"], "", "{way}");
            client.send("\r\n\r\n");
            assert_eq!(client.read_response().status, 400, "{way}: `hello` is no request");
            assert_eq!(targets(&both, way), ["/"], "{way}");
        }
    });
}

#[test]
fn refuses_transfer_codings_other_than_chunked() {
    isolated(|| {
        let both = both_ways();
        let codings = [
            "gzip, chunked",
            "chunked, chunked",
            "chunked, identity",
            "identity",
            "gzip",
            "xchunked",
            "\"chunked\"",
            "chunked;q=1",
            "chunked\r\nTransfer-Encoding: chunked",
            "chunked\r\nTransfer-Encoding: identity",
            "",
        ];
        for coding in codings {
            let template = format!(
                "POST @/ HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: {coding}\r\n\r\n0\r\n\r\n"
            );
            both.refuses(template, 400, "malformed_request");
        }
        both.still_works();
        both.audited(2 * codings.len() + 2);
    });
}

#[test]
fn refuses_chunks_in_http_1_0() {
    isolated(|| {
        let both = both_ways();
        both.refuses_and_closes(
            format!(
                "POST @/ HTTP/1.0\r\nHost: api.example.com\r\nConnection: keep-alive\r\n\
                 Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{INNER}"
            ),
            400,
            "malformed_request",
        );
        both.still_works();
        both.audited(4);
    });
}

#[test]
fn serves_http_1_0_with_a_length_or_none() {
    isolated(|| {
        let both = both_ways();
        for way in Way::ALL {
            let mut client = both.sent(
                way,
                "POST @/old HTTP/1.0\r\nHost: api.example.com\r\nContent-Length: 2\r\n\r\nhi",
            );
            let bytes = client.read_to_end().expect("HTTP/1.0 ends with the connection");
            let text = String::from_utf8_lossy(&bytes);
            assert!(text.starts_with("HTTP/1.0 200 OK\r\n"), "{way}: {text}");
            assert!(text.contains("\"body\":\"hi\""), "{way}: {text}");
            assert_eq!(targets(&both, way), ["/old"], "{way}");
        }
        both.audited(2);
    });
}

#[test]
fn no_connection_field_names_the_chunks_away() {
    isolated(|| {
        let both = both_ways();
        for way in Way::ALL {
            let mut client = both.sent(
                way,
                "POST @/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: Transfer-Encoding\r\n\
                 Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            );
            assert_eq!(client.read_response().json()["body"], "hello", "{way}");
            client.send(way.write("GET @/next HTTP/1.1\r\nHost: api.example.com\r\n\r\n"));
            assert_eq!(client.read_response().json()["target"], "/next", "{way}");
        }
        both.audited(4);
    });
}

#[test]
fn refuses_connect_with_a_body() {
    isolated(|| {
        let both = both_ways();
        for framing in
            ["Content-Length: 4\r\n\r\nabcd", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"]
        {
            let mut client = both.gateway.client();
            client.send(format!(
                "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n{framing}"
            ));
            let answer = client.read_response();
            assert_eq!(answer.status, 400);
            assert_eq!(answer.header("outgate-reason"), Some("malformed_request"));
        }
        both.still_works();
        both.audited(4);
    });
}

#[test]
fn sends_bodies_of_any_method_with_their_exact_framing() {
    isolated(|| {
        let both = both_ways();
        let body = "GET /inner HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
        let methods = ["GET", "DELETE", "OPTIONS", "HEAD", "POST", "M-SEARCH"];
        for method in methods {
            for way in Way::ALL {
                let mut client = both.sent(
                    way,
                    format!(
                        "{method} @/outer HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: {}\r\n\r\n{body}",
                        body.len()
                    ),
                );
                let answer = client.try_read_response(method).expect("an answer");
                assert_eq!(answer.status, 200, "{way} {method}");
            }
        }
        for way in Way::ALL {
            let requests = both.origin(way).requests();
            assert_eq!(targets(&both, way), ["/outer"; 6], "{way}");
            assert!(requests.iter().all(|request| request.text() == body), "{way}");
        }
        both.audited(2 * methods.len());
    });
}
