//! What does a DNS message ask, and how is the answer written?
//!
//! A message is read as far as it matters: the header, its one question, EDNS. Nothing of an answer
//! comes from the message but the question, so that an answer is small whatever was sent: it always
//! fits where EDNS is unknown, and needs no truncation.

use std::net::IpAddr;

use hickory_proto::op::{
    Edns, Header, Message, MessageType, Metadata, OpCode, Query, ResponseCode,
};
use hickory_proto::rr::rdata::{A, AAAA, PTR};
use hickory_proto::rr::{Name, RData, Record};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder, DecodeError};

use super::count::Kind;
use super::zone::Zone;

/// The longest message that is read, and what EDNS says of it: no question comes near it, and it
/// passes every link in one piece (RFC 9715 §3.1).
pub(super) const LONGEST: u16 = 1232;

/// How long an answer may be kept, in seconds. Short, since a name may have to leave its address
/// when its sandbox asks for thousands of others; long enough that one page does not ask for its
/// own host again and again.
const SECONDS_TO_LIVE: u32 = 60;

/// What is said to a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Address(IpAddr),
    Pointer(Name),
    /// There is no such record.
    Nothing,
    Failure(Failure),
}

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Malformed,
    OtherOperation,
    OtherEdns,
    Refused,
    Exhausted,
}

/// What the rest of a message holds, after its header.
struct Asked {
    query: Query,
    edns: Option<Edns>,
}

/// The answer to `message` out of `zone`, or refused where there is none. `None` where answering
/// would be wrong: to an answer, since two servers could go on for ever, and to what has no header.
pub(super) fn respond(message: &[u8], zone: Option<&Zone<'_>>) -> Option<(Vec<u8>, Kind)> {
    let mut decoder = BinDecoder::new(message);
    let header = Header::read(&mut decoder).ok()?;
    let metadata = header.metadata;
    if metadata.message_type != MessageType::Query {
        return None;
    }
    if metadata.op_code != OpCode::Query {
        return write(&metadata, None, Answer::Failure(Failure::OtherOperation));
    }
    let asked = match Asked::read(&mut decoder, &header) {
        Ok(asked) if message.len() <= usize::from(LONGEST) => asked,
        _ => return write(&metadata, None, Answer::Failure(Failure::Malformed)),
    };
    let answer = match (&asked.edns, zone) {
        // RFC 6891 §6.1.3.
        (Some(edns), _) if edns.version() > 0 => Answer::Failure(Failure::OtherEdns),
        (_, None) => Answer::Failure(Failure::Refused),
        (_, Some(zone)) => zone.answer(&asked.query),
    };
    write(&metadata, Some(asked), answer)
}

impl Asked {
    /// Exactly one question: no two servers agree on what more of them would mean (RFC 9619).
    fn read(decoder: &mut BinDecoder<'_>, header: &Header) -> Result<Asked, DecodeError> {
        let counts = &header.counts;
        if counts.queries != 1 {
            return Err(DecodeError::InsufficientBytes);
        }
        let query = Query::read(decoder)?;
        for count in [counts.answers, counts.authorities] {
            Message::read_records(decoder, count.into(), false, OpCode::Query)?;
        }
        let additionals = usize::from(counts.additionals);
        let (_, edns, _) = Message::read_records(decoder, additionals, true, OpCode::Query)?;
        Ok(Asked { query, edns })
    }
}

impl Answer {
    fn kind(&self) -> Kind {
        match self {
            Answer::Address(_) => Kind::Address,
            Answer::Pointer(_) => Kind::Pointer,
            Answer::Nothing => Kind::Empty,
            Answer::Failure(Failure::Malformed) => Kind::Malformed,
            Answer::Failure(Failure::OtherOperation | Failure::OtherEdns) => Kind::Unsupported,
            Answer::Failure(Failure::Refused) => Kind::Refused,
            Answer::Failure(Failure::Exhausted) => Kind::Failed,
        }
    }

    fn code(&self) -> ResponseCode {
        match self {
            Answer::Address(_) | Answer::Pointer(_) | Answer::Nothing => ResponseCode::NoError,
            Answer::Failure(Failure::Malformed) => ResponseCode::FormErr,
            Answer::Failure(Failure::OtherOperation) => ResponseCode::NotImp,
            Answer::Failure(Failure::OtherEdns) => ResponseCode::BADVERS,
            Answer::Failure(Failure::Refused) => ResponseCode::Refused,
            Answer::Failure(Failure::Exhausted) => ResponseCode::ServFail,
        }
    }

    fn data(self) -> Option<RData> {
        match self {
            Answer::Address(IpAddr::V4(address)) => Some(RData::A(A(address))),
            Answer::Address(IpAddr::V6(address)) => Some(RData::AAAA(AAAA(address))),
            Answer::Pointer(name) => Some(RData::PTR(PTR(name))),
            Answer::Nothing | Answer::Failure(_) => None,
        }
    }
}

fn write(to: &Metadata, asked: Option<Asked>, answer: Answer) -> Option<(Vec<u8>, Kind)> {
    let kind = answer.kind();
    let mut message = Message::response(to.id, to.op_code);
    message.metadata = Metadata::response_from_request(to);
    message.metadata.recursion_available = true;
    message.metadata.response_code = answer.code();
    if let Some(Asked { query, edns }) = asked {
        message.edns = edns.map(|edns| edns_for(&edns));
        let data = answer.data();
        let owner = query.name.clone();
        message.add_answers(data.map(|data| Record::from_rdata(owner, SECONDS_TO_LIVE, data)));
        message.add_query(query);
    }
    match message.to_vec() {
        Ok(bytes) => Some((bytes, kind)),
        Err(error) => {
            tracing::warn!(%error, "a DNS answer could not be written");
            None
        }
    }
}

/// RFC 6891 §6.1.1 wants one for one; the DO bit is copied (RFC 3225 §3), options are not.
fn edns_for(asked: &Edns) -> Edns {
    let mut edns = Edns::new();
    edns.set_max_payload(LONGEST);
    edns.set_dnssec_ok(asked.flags().dnssec_ok);
    edns
}

#[cfg(test)]
mod tests;
