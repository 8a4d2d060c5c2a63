//! What does the name server of a test answer, and what was it asked?

mod serve;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use hickory_proto::op::ResponseCode;

use serve::{serve_tcp, serve_udp};

pub use hickory_proto::rr::RecordType;

/// Where the resolver files of an isolated test point.
const ADDRESS: &str = "127.0.0.53:53";

/// One answer to one question.
#[derive(Clone, Debug)]
pub struct Reply {
    content: Content,
    seconds_to_live: u32,
    delay: Duration,
}

#[derive(Clone, Debug)]
enum Content {
    Addresses(Vec<IpAddr>),
    Alias(String),
    Refusal(ResponseCode),
    Silence,
}

impl Reply {
    /// These addresses, in this order.
    ///
    /// # Panics
    /// When one is no IP address.
    pub fn addresses(addresses: &[&str]) -> Self {
        let parse = |text: &&str| {
            text.parse().unwrap_or_else(|_| panic!("{text} is no address for a name server"))
        };
        Self::of(Content::Addresses(addresses.iter().map(parse).collect()))
    }

    /// The name exists and has no record of the type asked for.
    pub fn nothing() -> Self {
        Self::addresses(&[])
    }

    /// A CNAME, followed by what the server knows of `target`.
    pub fn alias(target: &str) -> Self {
        Self::of(Content::Alias(target.to_owned()))
    }

    /// NXDOMAIN.
    pub fn no_such_name() -> Self {
        Self::of(Content::Refusal(ResponseCode::NXDomain))
    }

    /// SERVFAIL.
    pub fn server_failure() -> Self {
        Self::of(Content::Refusal(ResponseCode::ServFail))
    }

    /// No answer at all.
    pub fn silence() -> Self {
        Self::of(Content::Silence)
    }

    /// How long the answer may be kept; a minute otherwise.
    #[must_use]
    pub fn seconds_to_live(mut self, seconds: u32) -> Self {
        self.seconds_to_live = seconds;
        self
    }

    /// How long the server thinks first.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    fn of(content: Content) -> Self {
        Self { content, seconds_to_live: 60, delay: Duration::ZERO }
    }
}

/// One question as it arrived; names in lower case without the final dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Lower case, without the final dot.
    pub name: String,
    /// What was asked for.
    pub kind: RecordType,
    /// `udp` or `tcp`.
    pub transport: &'static str,
}

/// A scriptable name server on 127.0.0.53:53, over UDP and TCP.
///
/// A name it was told nothing of is NXDOMAIN; a known name without a record of that type is an
/// empty answer.
pub struct Server {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The last reply of a sequence repeats.
    replies: HashMap<(String, RecordType), Vec<Reply>>,
    questions: Vec<Question>,
}

impl Server {
    /// Binds both sockets and answers until the test ends.
    ///
    /// # Panics
    /// When the address is taken, as it is outside `isolated`.
    pub fn start() -> Self {
        let server = Self { state: Arc::default() };
        server.listen_on(ADDRESS.parse().expect("an address"));
        server
    }

    /// Answers on this address too.
    ///
    /// # Panics
    /// When it is taken.
    pub fn listen_on(&self, address: SocketAddr) {
        let udp = UdpSocket::bind(address)
            .unwrap_or_else(|fault| panic!("cannot bind the name server's UDP {address}: {fault}"));
        let tcp = TcpListener::bind(address)
            .unwrap_or_else(|fault| panic!("cannot bind the name server's TCP {address}: {fault}"));
        let state = Arc::clone(&self.state);
        thread::spawn(move || serve_udp(&udp, &state));
        let state = Arc::clone(&self.state);
        thread::spawn(move || serve_tcp(&tcp, &state));
    }

    /// Gives `name` these addresses: the IPv4 ones as A, the IPv6 ones as AAAA.
    ///
    /// # Panics
    /// When one is no IP address.
    pub fn name(&self, name: &str, addresses: &[&str]) {
        let (v4, v6): (Vec<&str>, Vec<&str>) =
            addresses.iter().partition(|address| !address.contains(':'));
        self.script(name, RecordType::A, vec![Reply::addresses(&v4)]);
        self.script(name, RecordType::AAAA, vec![Reply::addresses(&v6)]);
    }

    /// Answers every address question for `name` like this.
    pub fn reply(&self, name: &str, reply: &Reply) {
        self.script(name, RecordType::A, vec![reply.clone()]);
        self.script(name, RecordType::AAAA, vec![reply.clone()]);
    }

    /// Answers questions of one type with one reply after the other; the last one repeats.
    ///
    /// # Panics
    /// When there is no reply.
    pub fn script(&self, name: &str, kind: RecordType, replies: Vec<Reply>) {
        assert!(!replies.is_empty(), "{name} needs at least one reply");
        lock(&self.state).replies.insert((canonical(name), kind), replies);
    }

    /// Every question so far, in order of arrival.
    pub fn questions(&self) -> Vec<Question> {
        lock(&self.state).questions.clone()
    }

    /// How often `name` was asked for, whatever the type.
    pub fn asked(&self, name: &str) -> usize {
        let name = canonical(name);
        lock(&self.state).questions.iter().filter(|question| question.name == name).count()
    }

    /// How often `name` was asked for with this type.
    pub fn asked_for(&self, name: &str, kind: RecordType) -> usize {
        let name = canonical(name);
        let matches = |question: &&Question| question.name == name && question.kind == kind;
        lock(&self.state).questions.iter().filter(matches).count()
    }
}

impl State {
    /// Records the question and takes the reply that is due.
    fn take(&mut self, question: Question) -> Reply {
        let key = (question.name.clone(), question.kind);
        self.questions.push(question);
        self.next(&key.0, key.1)
    }

    fn next(&mut self, name: &str, kind: RecordType) -> Reply {
        let known = self.replies.keys().any(|(known, _)| known == name);
        match self.replies.get_mut(&(name.to_owned(), kind)) {
            Some(replies) if replies.len() > 1 => replies.remove(0),
            Some(replies) => replies[0].clone(),
            None if known => Reply::nothing(),
            None => Reply::no_such_name(),
        }
    }
}

fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no thread of the name server panics while it holds the lock")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use hickory_proto::op::{Message, Query};

    use super::serve::fully_qualified;
    use super::*;
    use crate::isolated;

    fn question(name: &str, kind: RecordType) -> Vec<u8> {
        let mut message = Message::query();
        message.add_query(Query::query(fully_qualified(name), kind));
        message.to_vec().unwrap()
    }

    fn ask(name: &str, kind: RecordType) -> Message {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        client.send_to(&question(name, kind), ADDRESS).unwrap();
        let mut answer = [0; 4096];
        let length = client.recv(&mut answer).unwrap();
        Message::from_vec(&answer[..length]).unwrap()
    }

    fn addresses(message: &Message) -> Vec<String> {
        message.answers.iter().map(|record| record.data.to_string()).collect()
    }

    #[test]
    fn answers_over_udp_and_counts() {
        isolated(|| {
            let server = Server::start();
            server.name("api.example.com", &["11.22.33.44", "2606:4700::1"]);
            assert_eq!(addresses(&ask("API.example.com", RecordType::A)), ["11.22.33.44"]);
            assert_eq!(addresses(&ask("api.example.com", RecordType::AAAA)), ["2606:4700::1"]);
            assert_eq!(server.asked("api.example.com"), 2);
            assert_eq!(server.asked_for("api.example.com", RecordType::AAAA), 1);
            assert_eq!(server.asked("evil.example.test"), 0);
        });
    }

    #[test]
    fn answers_over_tcp() {
        isolated(|| {
            let server = Server::start();
            server.name("api.example.com", &["11.22.33.44"]);
            let address = ADDRESS.parse().unwrap();
            let mut client = TcpStream::connect_timeout(&address, Duration::from_secs(1)).unwrap();
            let query = question("api.example.com", RecordType::A);
            let length = u16::try_from(query.len()).unwrap().to_be_bytes();
            client.write_all(&[&length, query.as_slice()].concat()).unwrap();
            let mut length = [0; 2];
            client.read_exact(&mut length).unwrap();
            let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(addresses(&Message::from_vec(&answer).unwrap()), ["11.22.33.44"]);
            assert_eq!(server.questions()[0].transport, "tcp");
        });
    }

    #[test]
    fn plays_a_sequence_and_repeats_its_last_reply() {
        isolated(|| {
            let server = Server::start();
            let first = Reply::addresses(&["11.22.33.55"]).seconds_to_live(0);
            let then = Reply::addresses(&["127.0.0.1"]);
            server.script("a.ok.example.test", RecordType::A, vec![first, then]);
            let answer = ask("a.ok.example.test", RecordType::A);
            assert_eq!(addresses(&answer), ["11.22.33.55"]);
            assert_eq!(answer.answers[0].ttl, 0);
            assert_eq!(addresses(&ask("a.ok.example.test", RecordType::A)), ["127.0.0.1"]);
            assert_eq!(addresses(&ask("a.ok.example.test", RecordType::A)), ["127.0.0.1"]);
        });
    }

    #[test]
    fn follows_an_alias_and_reports_trouble() {
        isolated(|| {
            let server = Server::start();
            server.name("localhost", &["127.0.0.1"]);
            server.reply("cn.ok.example.test", &Reply::alias("localhost."));
            server.reply("broken.example.test", &Reply::server_failure());
            server.reply("slow.example.test", &Reply::silence());
            let chain = ask("cn.ok.example.test", RecordType::A);
            assert_eq!(addresses(&chain), ["localhost.", "127.0.0.1"]);
            let code = |name| ask(name, RecordType::A).metadata.response_code;
            assert_eq!(code("broken.example.test"), ResponseCode::ServFail);
            assert_eq!(code("nobody.example.test"), ResponseCode::NXDomain);
            let nothing = ask("localhost", RecordType::MX);
            assert_eq!(nothing.metadata.response_code, ResponseCode::NoError);
            assert!(nothing.answers.is_empty());
        });
    }
}
