//! How does a question come in, and the answer go out?

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::thread;

use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, SOA};
use hickory_proto::rr::{Name, RData, Record, RecordType};

use super::{Content, Question, Reply, State, canonical, lock};

/// An alias of an alias of an alias: longer chains than this are a loop.
const LONGEST_CHAIN: usize = 8;

pub(super) fn serve_udp(socket: &UdpSocket, state: &Arc<Mutex<State>>) {
    let mut buffer = [0; 4096];
    while let Ok((length, client)) = socket.recv_from(&mut buffer) {
        let question = buffer[..length].to_vec();
        let state = Arc::clone(state);
        let socket = socket.try_clone().expect("a socket can be shared");
        // A thread each: one slow or silent answer must not hold back the others.
        thread::spawn(move || {
            if let Some(answer) = answer(&question, "udp", &state) {
                // The client may be gone.
                let _ = socket.send_to(&answer, client);
            }
        });
    }
}

pub(super) fn serve_tcp(listener: &TcpListener, state: &Arc<Mutex<State>>) {
    for client in listener.incoming().map_while(Result::ok) {
        let state = Arc::clone(state);
        thread::spawn(move || serve_tcp_client(client, &state));
    }
}

/// Each message behind its length in two bytes (RFC 1035 4.2.2).
fn serve_tcp_client(mut client: TcpStream, state: &Mutex<State>) -> io::Result<()> {
    loop {
        let mut length = [0; 2];
        client.read_exact(&mut length)?;
        let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
        client.read_exact(&mut question)?;
        if let Some(answer) = answer(&question, "tcp", state) {
            let length = u16::try_from(answer.len()).expect("answers of tests are short");
            client.write_all(&[&length.to_be_bytes(), answer.as_slice()].concat())?;
        }
    }
}

fn answer(question: &[u8], transport: &'static str, state: &Mutex<State>) -> Option<Vec<u8>> {
    let message = Message::from_vec(question).ok()?;
    let query = message.queries.first()?.clone();
    let mut response = Message::response(message.metadata.id, OpCode::Query);
    response.metadata.recursion_desired = message.metadata.recursion_desired;
    response.metadata.recursion_available = true;
    response.add_query(query.clone());

    let name = canonical(&query.name.to_ascii());
    let reply = lock(state).take(Question { name, kind: query.query_type, transport });
    thread::sleep(reply.delay);
    fill(&mut response, query.name, query.query_type, reply, state)?;
    Some(response.to_vec().expect("a well-formed answer can be written"))
}

/// Follows aliases as a recursive server does. `None` is silence.
fn fill(
    response: &mut Message,
    mut owner: Name,
    kind: RecordType,
    mut reply: Reply,
    state: &Mutex<State>,
) -> Option<()> {
    for _ in 0..LONGEST_CHAIN {
        let seconds = reply.seconds_to_live;
        match reply.content {
            Content::Silence => return None,
            Content::Refusal(code) => {
                response.metadata.response_code = code;
                if code == ResponseCode::NXDomain {
                    response.add_authority(start_of_authority(seconds));
                }
                return Some(());
            }
            Content::Addresses(addresses) if addresses.is_empty() => {
                response.add_authority(start_of_authority(seconds));
                return Some(());
            }
            Content::Addresses(addresses) => {
                let records = addresses.into_iter().map(record_data);
                response.add_answers(
                    records.map(|data| Record::from_rdata(owner.clone(), seconds, data)),
                );
                return Some(());
            }
            Content::Alias(target) => {
                let target = fully_qualified(&target);
                let alias = RData::CNAME(CNAME(target.clone()));
                response.add_answer(Record::from_rdata(owner, seconds, alias));
                reply = lock(state).next(&canonical(&target.to_ascii()), kind);
                owner = target;
            }
        }
    }
    response.metadata.response_code = ResponseCode::ServFail;
    Some(())
}

/// Says how long "no such name" and "no such record" may be kept (RFC 2308).
fn start_of_authority(seconds_to_live: u32) -> Record {
    let zone = fully_qualified("test");
    let soa = SOA::new(zone.clone(), zone.clone(), 1, 3600, 600, 86400, seconds_to_live);
    Record::from_rdata(Name::root(), seconds_to_live, RData::SOA(soa))
}

fn record_data(address: IpAddr) -> RData {
    match address {
        IpAddr::V4(address) => RData::A(A(address)),
        IpAddr::V6(address) => RData::AAAA(AAAA(address)),
    }
}

pub(super) fn fully_qualified(name: &str) -> Name {
    Name::from_str(&format!("{}.", canonical(name)))
        .unwrap_or_else(|fault| panic!("{name} is no domain name: {fault}"))
}
