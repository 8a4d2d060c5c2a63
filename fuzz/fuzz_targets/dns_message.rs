//! Is every message answered by one small answer to what it asked, or by none?

#![no_main]

use libfuzzer_sys::fuzz_target;
use outgate_proxy::fuzzing::dns_answer;

/// RFC 1035 §4.1.1.
const HEADER: usize = 12;
/// What fits where a client has not said that it takes more (RFC 1035 §4.2.1).
const SMALL: usize = 512;

fuzz_target!(|message: &[u8]| {
    let is_question = message.len() >= HEADER && message[2] & 0x80 == 0;
    let Some(answer) = dns_answer(message) else {
        assert!(!is_question, "a question without an answer: {message:02x?}");
        return;
    };
    assert!(is_question, "an answer to an answer: {answer:02x?}");
    assert!((HEADER..=SMALL).contains(&answer.len()), "{} bytes", answer.len());
    assert_eq!(answer[..2], message[..2], "another id");
    // An answer, the same operation and RD; neither authoritative nor cut.
    assert_eq!(answer[2], 0x80 | message[2] & 0x79, "{:02x?}", &answer[..HEADER]);
    let count = |at: usize| u16::from_be_bytes([answer[at], answer[at + 1]]);
    let [questions, answers, authorities, additionals] = [4, 6, 8, 10].map(count);
    assert!(questions <= 1 && answers <= questions, "{:02x?}", &answer[..HEADER]);
    assert!(authorities == 0 && additionals <= 1, "{:02x?}", &answer[..HEADER]);
    let failed = answer[3] & 0x0f != 0;
    assert!(!failed || answers == 0, "a failure with an answer: {answer:02x?}");
});
