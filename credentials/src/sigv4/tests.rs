//! Figures of the test suite that AWS has published, and of its documentation of S3.

use std::time::{Duration, UNIX_EPOCH};

use crate::secret::Fit;

use super::*;

/// 2015-08-30T12:36:00Z.
const OF_SUITE: u64 = 1_440_938_160;
/// 2013-05-24T00:00:00Z.
const OF_S3: u64 = 1_369_353_600;

struct Case {
    method: &'static str,
    target: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
    signature: &'static str,
}

const GET: Case = Case { method: "GET", target: "/", headers: &[], body: "", signature: "" };
const POST: Case = Case { method: "POST", ..GET };

fn secret(text: &str) -> Secret {
    Secret::parse(text, Fit::Text).expect("a secret")
}

fn claim(scope: &str, signed: &str) -> Claim {
    let signature = "0".repeat(64);
    let value = format!(
        "{ALGORITHM} Credential=any/20000101/{scope}/aws4_request, SignedHeaders=host;{signed}, \
         Signature={signature}"
    );
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::try_from(value).expect("a value"));
    Claim::read(&headers, &PathAndQuery::from_static("/")).expect("a claim")
}

/// The headers of a case after it was signed.
fn signed(signer: &Signer, scope: &str, host: &'static str, now: u64, case: &Case) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in case.headers {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let names: Vec<_> = case.headers.iter().map(|(name, _)| *name).collect();
    let names = if names.is_empty() { "x".to_owned() } else { names.join(";") };
    let payload = Payload::of_hash(digest(&SHA256, case.body.as_bytes()).as_ref());
    let subject = Subject {
        method: &Method::from_bytes(case.method.as_bytes()).expect("a method"),
        host: &HeaderValue::from_static(host),
        target: &PathAndQuery::from_static(case.target),
        payload: &payload,
    };
    let now = UNIX_EPOCH + Duration::from_secs(now);
    signer.sign_at(&claim(scope, &names), &subject, &mut headers, now).expect("signed");
    headers
}

fn signature(headers: &HeaderMap) -> &str {
    let value = headers[AUTHORIZATION].to_str().expect("text");
    value.split_once("Signature=").expect("there is one").1
}

fn of_suite(case: &Case) -> HeaderMap {
    let signer = Signer {
        access_key_id: Arc::from("AKIDEXAMPLE"),
        secret: secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        session_token: None,
    };
    signed(&signer, "us-east-1/service", "example.amazonaws.com", OF_SUITE, case)
}

const VANILLA: &str = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
const POST_VANILLA: &str = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
/// Cases of the suite that AWS publishes, by their names there.
const SUITE: [(&str, Case); 16] = [
    ("get-vanilla", Case { signature: VANILLA, ..GET }),
    ("get-relative", Case { target: "/example/..", signature: VANILLA, ..GET }),
    (
        "get-relative-relative",
        Case { target: "/example1/example2/../..", signature: VANILLA, ..GET },
    ),
    ("get-slash", Case { target: "//", signature: VANILLA, ..GET }),
    ("get-slash-dot-slash", Case { target: "/./", signature: VANILLA, ..GET }),
    (
        "get-slash-pointless-dot",
        Case {
            target: "/./example",
            signature: "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5",
            ..GET
        },
    ),
    (
        "get-slashes",
        Case {
            target: "//example//",
            signature: "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
            ..GET
        },
    ),
    (
        "get-unreserved",
        Case {
            target: "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            signature: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
            ..GET
        },
    ),
    (
        "get-vanilla-empty-query-key",
        Case {
            target: "/?Param1=value1",
            signature: "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
            ..GET
        },
    ),
    (
        "get-vanilla-query-order-key-case",
        Case {
            target: "/?Param2=value2&Param1=value1",
            signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ..GET
        },
    ),
    (
        "get-header-value-order",
        Case {
            headers: &[
                ("my-header1", "value4"),
                ("my-header1", "value1"),
                ("my-header1", "value3"),
                ("my-header1", "value2"),
            ],
            signature: "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
            ..GET
        },
    ),
    (
        "get-header-value-trim",
        Case {
            headers: &[("my-header1", " value1"), ("my-header2", " \"a   b   c\"")],
            signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
            ..GET
        },
    ),
    ("post-vanilla", Case { signature: POST_VANILLA, ..POST }),
    (
        "post-header-key-sort",
        Case {
            headers: &[("my-header1", "value1")],
            signature: "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
            ..POST
        },
    ),
    (
        "post-header-value-case",
        Case {
            headers: &[("my-header1", "VALUE1")],
            signature: "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
            ..POST
        },
    ),
    (
        "post-x-www-form-urlencoded",
        Case {
            headers: &[("content-type", "application/x-www-form-urlencoded")],
            body: "Param1=value1",
            signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ..POST
        },
    ),
];

#[test]
fn signs_as_the_published_suite_says() {
    for (name, case) in SUITE {
        assert_eq!(signature(&of_suite(&case)), case.signature, "{name}");
    }
}

fn of_s3(case: &Case) -> HeaderMap {
    let signer = Signer {
        access_key_id: Arc::from("AKIAIOSFODNN7EXAMPLE"),
        secret: secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        session_token: None,
    };
    signed(&signer, "us-east-1/s3", "examplebucket.s3.amazonaws.com", OF_S3, case)
}

#[test]
fn signs_for_s3_as_its_documentation_says() {
    let table = [
        Case {
            target: "/test.txt",
            headers: &[("range", "bytes=0-9")],
            signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ..GET
        },
        Case {
            method: "PUT",
            target: "/test%24file.text",
            headers: &[
                ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ],
            body: "Welcome to Amazon S3.",
            signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        },
        Case {
            target: "/?lifecycle",
            signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ..GET
        },
        Case {
            target: "/?max-keys=2&prefix=J",
            signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ..GET
        },
    ];
    for case in table {
        assert_eq!(signature(&of_s3(&case)), case.signature, "{}", case.target);
    }
}

#[test]
fn signs_what_is_sent_and_nothing_that_the_connection_changes() {
    let case = Case {
        headers: &[
            ("accept-encoding", "identity"),
            ("connection", "keep-alive"),
            ("content-length", "0"),
            ("content-type", "text/plain"),
            ("expect", "100-continue"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("x-amz-meta-a", "b"),
        ],
        ..POST
    };
    let headers = of_suite(&case);
    let value = headers[AUTHORIZATION].to_str().expect("text");
    let names = value.split("SignedHeaders=").nth(1).expect("names").split(',').next();
    assert_eq!(names, Some("accept-encoding;content-type;host;x-amz-date;x-amz-meta-a"));
    assert!(headers.get(CONTENT_SHA256).is_none(), "only S3 is told what it was not told before");
    assert_eq!(of_s3(&GET)[CONTENT_SHA256], Payload::empty().as_str());
}

#[test]
fn a_session_token_is_sent_signed_and_shown_to_nobody() {
    let signer = Signer {
        access_key_id: Arc::from("AKIDEXAMPLE"),
        secret: secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        session_token: Some(secret("hunter2/token==")),
    };
    let headers = signed(&signer, "us-east-1/service", "example.amazonaws.com", OF_SUITE, &POST);
    assert_eq!(headers[SECURITY_TOKEN], "hunter2/token==");
    assert!(headers[AUTHORIZATION].to_str().expect("text").contains(";x-amz-security-token,"));
    assert!(headers[AUTHORIZATION].is_sensitive());
    assert!(!format!("{headers:?}{signer:?}").contains("hunter2"));
    let names: Vec<_> = signer.sets().collect();
    assert_eq!(names, [AUTHORIZATION, AMZ_DATE, SECURITY_TOKEN]);
}
