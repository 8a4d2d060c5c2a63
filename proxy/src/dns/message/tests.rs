//! What is answered to which message?

use std::net::{Ipv4Addr, Ipv6Addr};

use hickory_proto::rr::rdata::SOA;
use hickory_proto::rr::{DNSClass, RecordType};
use outgate_policy::{SYNTHETIC_IPV4, SYNTHETIC_IPV6};

use super::*;
use crate::names::Names;

const A_OF_EXAMPLE: &[u8] = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\
    \x03api\x07example\x03com\x00\x00\x01\x00\x01";

fn name(text: &str) -> Name {
    Name::from_ascii(text).expect("a name on the wire")
}

fn question(text: &str, kind: RecordType) -> Message {
    let mut message = Message::new(0x1234, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name(text), kind));
    message
}

fn bytes(message: &Message) -> Vec<u8> {
    message.to_vec().expect("a message that fits")
}

/// The answer of a sandbox with IPv6 that has asked nothing yet.
fn ask(message: &[u8]) -> Option<Message> {
    ask_in(&Names::new(4), message)
}

fn ask_in(names: &Names, message: &[u8]) -> Option<Message> {
    let (answer, _) = respond(message, Some(&Zone::new(names, true)))?;
    assert!(answer.len() <= 512, "{} bytes need EDNS", answer.len());
    let answer = Message::from_vec(&answer).expect("a readable answer");
    assert_eq!(answer.metadata.message_type, MessageType::Response);
    Some(answer)
}

/// What one question gets: its data, or `-` where there is none, or the code of a failure.
fn told(names: &Names, text: &str, kind: RecordType) -> String {
    let answer = ask_in(names, &bytes(&question(text, kind))).expect("an answer");
    match (answer.metadata.response_code, answer.answers.as_slice()) {
        (ResponseCode::NoError, [record]) => record.data.to_string(),
        (ResponseCode::NoError, []) => "-".to_owned(),
        (code, _) => code.to_string(),
    }
}

fn code(message: &[u8]) -> ResponseCode {
    ask(message).expect("an answer").metadata.response_code
}

#[test]
fn answers_every_name_with_an_address_of_the_synthetic_ranges() {
    let names = Names::new(4);
    for text in ["api.example.com.", "evil.example.test.", "printer.", "a_b.xn--bcher-kva.test."] {
        let v4: Ipv4Addr = told(&names, text, RecordType::A).parse().expect("an address");
        let v6: Ipv6Addr = told(&names, text, RecordType::AAAA).parse().expect("an address");
        assert!(SYNTHETIC_IPV4.contains(&v4) && SYNTHETIC_IPV6.contains(&v6), "{v4} {v6}");
        assert_eq!(told(&names, &text.to_uppercase(), RecordType::A), v4.to_string());
    }
}

#[test]
fn repeats_the_question_as_it_was_asked() {
    let answer = ask(&bytes(&question("API.eXample.Com.", RecordType::A))).expect("an answer");
    let asked = name("API.eXample.Com.");
    assert_eq!(answer.metadata.id, 0x1234);
    assert!(answer.metadata.recursion_desired && answer.metadata.recursion_available);
    assert!(answer.queries[0].name.eq_case(&asked) && answer.answers[0].name.eq_case(&asked));
    assert_eq!(answer.answers[0].ttl, SECONDS_TO_LIVE);
    assert!(answer.edns.is_none());
}

#[test]
fn answers_ipv6_only_where_connections_to_it_come_here() {
    let names = Names::new(4);
    let zone = Zone::new(&names, false);
    let of = |text, kind| {
        let (answer, _) = respond(&bytes(&question(text, kind)), Some(&zone)).expect("an answer");
        Message::from_vec(&answer).expect("a readable answer").answers.len()
    };
    assert_eq!(of("api.example.com.", RecordType::A), 1);
    assert_eq!(of("api.example.com.", RecordType::AAAA), 0);
    assert_eq!(of("localhost.", RecordType::AAAA), 1);
}

#[test]
fn knows_localhost_as_loopback() {
    let names = Names::new(4);
    for text in ["localhost.", "LOCALHOST.", "db.localhost.", "localhost.localdomain."] {
        assert_eq!(told(&names, text, RecordType::A), "127.0.0.1", "{text}");
        assert_eq!(told(&names, text, RecordType::AAAA), "::1", "{text}");
    }
    assert_ne!(told(&names, "notlocalhost.", RecordType::A), "127.0.0.1");
}

#[test]
fn tells_the_name_behind_an_address_that_it_gave() {
    let names = Names::new(4);
    let v4: Ipv4Addr = told(&names, "api.example.com.", RecordType::A).parse().expect("v4");
    let v6: Ipv6Addr = told(&names, "api.example.com.", RecordType::AAAA).parse().expect("v6");
    for address in [IpAddr::from(v4), v6.into()] {
        let reverse = Name::from(address).to_ascii();
        assert_eq!(told(&names, &reverse, RecordType::PTR), "api.example.com.", "{reverse}");
        assert_eq!(told(&Names::new(4), &reverse, RecordType::PTR), "-", "{reverse}");
    }
    for other in
        ["1.0.18.198.in-addr.arpa.", "44.33.22.11.in-addr.arpa.", "18.198.in-addr.arpa.", "arpa."]
    {
        assert_eq!(told(&names, other, RecordType::PTR), "-", "{other}");
    }
}

#[test]
fn answers_everything_else_with_nothing() {
    let names = Names::new(4);
    for kind in [
        RecordType::ANY,
        RecordType::AXFR,
        RecordType::CAA,
        RecordType::CNAME,
        RecordType::HTTPS,
        RecordType::MX,
        RecordType::NS,
        RecordType::NULL,
        RecordType::SOA,
        RecordType::SRV,
        RecordType::SVCB,
        RecordType::TXT,
        RecordType::Unknown(65399),
    ] {
        assert_eq!(told(&names, "api.example.com.", kind), "-", "{kind}");
    }
    for no_host in [".", "127.0.0.1.", "a.1.", "*.x."] {
        assert_eq!(told(&names, no_host, RecordType::A), "-", "{no_host}");
    }
    for label in ["a.b", "a b", "[::1]", "a\0b", "ä", "a@b", "a:1", "%61"] {
        let mut asked = question("placeholder.test.", RecordType::A);
        let name = Name::from_labels([label.as_bytes(), b"test"]).expect("labels of any bytes");
        asked.queries[0].set_name(name);
        let answer = ask(&bytes(&asked)).expect("an answer");
        assert_eq!(answer.metadata.response_code, ResponseCode::NoError, "{label:?}");
        assert!(answer.answers.is_empty(), "{label:?}");
    }
    let mut chaos = question("version.bind.", RecordType::A);
    chaos.queries[0].set_query_class(DNSClass::CH);
    assert!(ask(&bytes(&chaos)).expect("an answer").answers.is_empty());
}

#[test]
fn refuses_where_there_is_no_zone() {
    let (answer, kind) = respond(A_OF_EXAMPLE, None).expect("an answer");
    let answer = Message::from_vec(&answer).expect("a readable answer");
    assert_eq!(answer.metadata.response_code, ResponseCode::Refused);
    assert_eq!((answer.answers.len(), kind), (0, Kind::Refused));
}

#[test]
fn fails_while_every_address_has_connections() {
    let names = Names::new(1);
    let held: Ipv4Addr = told(&names, "held.test.", RecordType::A).parse().expect("an address");
    let hold = names.name_of(held.into());
    assert_eq!(told(&names, "other.test.", RecordType::A), ResponseCode::ServFail.to_string());
    drop(hold);
    assert_ne!(told(&names, "other.test.", RecordType::A), ResponseCode::ServFail.to_string());
}

#[test]
fn answers_edns_with_its_own_and_nothing_of_the_clients() {
    let mut asked = question("api.example.com.", RecordType::A);
    let mut edns = Edns::new();
    edns.set_max_payload(65535).set_dnssec_ok(true);
    edns.options_mut().insert(hickory_proto::rr::rdata::opt::EdnsOption::Unknown(
        65001,
        b"something to echo".to_vec(),
    ));
    asked.set_edns(edns);
    let answer = ask(&bytes(&asked)).expect("an answer");
    let edns = answer.edns.expect("one for one");
    assert_eq!((edns.max_payload(), edns.version()), (LONGEST, 0));
    assert!(edns.flags().dnssec_ok && edns.options().as_ref().is_empty());

    asked.edns.as_mut().expect("set above").set_version(1);
    let answer = ask(&bytes(&asked)).expect("an answer");
    assert_eq!(answer.metadata.response_code.low(), ResponseCode::BADVERS.low());
    assert_eq!(answer.edns.expect("one for one").rcode_high(), 1);
    assert!(answer.answers.is_empty());
}

#[test]
fn is_silent_where_an_answer_would_be_wrong() {
    for length in 0..12 {
        assert_eq!(ask(&A_OF_EXAMPLE[..length]), None, "{length} bytes");
    }
    let mut answer = A_OF_EXAMPLE.to_vec();
    answer[2] |= 0x80;
    assert_eq!(ask(&answer), None);
}

#[test]
fn says_of_a_message_that_it_cannot_be_read() {
    for length in 12..A_OF_EXAMPLE.len() {
        assert_eq!(code(&A_OF_EXAMPLE[..length]), ResponseCode::FormErr, "{length} bytes");
    }
    let counted = |at: usize, count: u8| {
        let mut message = A_OF_EXAMPLE.to_vec();
        message[at] = count;
        message
    };
    for (what, message) in [
        ("no question", counted(5, 0)),
        ("two questions, one there", counted(5, 2)),
        ("65,281 questions", counted(4, 0xff)),
        ("an answer that isn't there", counted(7, 1)),
        ("an additional record that isn't there", counted(11, 1)),
        ("a pointer to itself", [&A_OF_EXAMPLE[..12], b"\xc0\x0c\x00\x01\x00\x01"].concat()),
        ("a pointer ahead", [&A_OF_EXAMPLE[..12], b"\xc0\x20\x00\x01\x00\x01"].concat()),
        ("a reserved label", [&A_OF_EXAMPLE[..12], b"\x41a\x00\x00\x01\x00\x01"].concat()),
        ("too long", [A_OF_EXAMPLE, &[0; LONGEST as usize]].concat()),
    ] {
        assert_eq!(code(&message), ResponseCode::FormErr, "{what}");
    }
    let mut twice = question("api.example.com.", RecordType::A);
    twice.add_query(twice.queries[0].clone());
    assert_eq!(code(&bytes(&twice)), ResponseCode::FormErr);
}

#[test]
fn takes_no_other_operation() {
    for operation in 1..16 {
        let mut message = A_OF_EXAMPLE.to_vec();
        message[2] |= operation << 3;
        assert_eq!(code(&message), ResponseCode::NotImp, "{operation}");
    }
}

#[test]
fn never_gives_a_record_of_the_clients_back() {
    let mut asked = question("api.example.com.", RecordType::A);
    let zone = name("planted.example.test.");
    let soa = RData::SOA(SOA::new(zone.clone(), zone.clone(), 1, 2, 3, 4, 5));
    asked.add_authority(Record::from_rdata(zone.clone(), 5, soa));
    asked.add_answer(Record::from_rdata(zone, 5, RData::A(A(Ipv4Addr::new(11, 22, 33, 66)))));
    let answer = ask(&bytes(&asked)).expect("an answer");
    assert_eq!((answer.answers.len(), answer.authorities.len()), (1, 0));
    assert_eq!(answer.answers[0].name, name("api.example.com."));
}

#[test]
fn the_longest_name_fits_without_edns() {
    let names = Names::new(4);
    let longest = format!("{0}.{0}.{0}.{1}.", "a".repeat(63), "b".repeat(61));
    let v4: Ipv4Addr = told(&names, &longest, RecordType::A).parse().expect("an address");
    told(&names, &longest, RecordType::AAAA);
    let reverse = Name::from(v4).to_ascii();
    assert_eq!(told(&names, &reverse, RecordType::PTR), longest);
}
