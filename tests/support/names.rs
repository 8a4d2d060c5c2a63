//! How does a sandbox ask the gateway for names?

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use socket2::{Domain, Socket, Type};

use crate::gateway::Gateway;
use crate::wait::SOON;

/// A datagram may be lost, as it may anywhere; resolvers ask again too.
const TRIES: usize = 3;

/// A client of one name server.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    server: SocketAddr,
    source: Option<IpAddr>,
}

/// What a name server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The whole answer.
    pub message: Message,
}

/// Many questions on one TCP connection.
pub struct Conversation {
    stream: TcpStream,
}

impl Names {
    /// A client of the name server at this address.
    pub fn of(server: SocketAddr) -> Self {
        Self { server, source: None }
    }

    /// The same from this address of its own.
    #[must_use]
    pub fn from(self, source: IpAddr) -> Self {
        Self { source: Some(source), ..self }
    }

    /// The answer to a question over UDP.
    ///
    /// # Panics
    /// When there is none, or one from another address than was asked.
    pub fn ask(&self, name: &str, kind: RecordType) -> Told {
        let question = question(name, kind);
        let answer = self.datagram(&question).unwrap_or_else(|| panic!("no answer for {name}"));
        assert_eq!(answer[..2], question[..2], "the answer to another question");
        Told::read(&answer)
    }

    /// The one address of a name, as text.
    ///
    /// # Panics
    /// When the name has none.
    pub fn address(&self, name: &str, kind: RecordType) -> IpAddr {
        let told = self.ask(name, kind);
        match told.data().as_slice() {
            [address] => address.parse().expect("an address record holds an address"),
            _ => panic!("{name} has no {kind}: {told:?}"),
        }
    }

    /// The name behind an address.
    pub fn name(&self, address: IpAddr) -> Option<String> {
        let reverse = Name::from(address).to_ascii();
        let told = self.ask(&reverse, RecordType::PTR);
        told.data().first().map(|name| name.trim_end_matches('.').to_owned())
    }

    /// What comes back for these bytes over UDP, if anything does.
    ///
    /// # Panics
    /// When the machine has no socket for it.
    pub fn datagram(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let socket = self.datagrams(SOON / 2);
        let mut answer = [0; 4096];
        (0..TRIES).find_map(|_| {
            socket.send(bytes).expect("a datagram can be sent");
            socket.recv(&mut answer).ok().map(|length| answer[..length].to_vec())
        })
    }

    /// A socket that is connected to the server: it gets no answer from anybody else.
    ///
    /// # Panics
    /// When the machine has none.
    pub fn datagrams(&self, patience: Duration) -> UdpSocket {
        let any = if self.server.is_ipv4() { "0.0.0.0" } else { "::" };
        let source = self.source.unwrap_or_else(|| any.parse().expect("an address"));
        let socket = UdpSocket::bind((source, 0)).expect("a socket of this address");
        socket.connect(self.server).expect("UDP connects to anything");
        socket.set_read_timeout(Some(patience)).expect("a timeout above zero can be set");
        socket
    }

    /// A connection to the server.
    ///
    /// # Panics
    /// When it doesn't accept.
    pub fn connect(&self) -> Conversation {
        let domain = Domain::for_address(self.server);
        let socket = Socket::new(domain, Type::STREAM, None).expect("a socket");
        if let Some(source) = self.source {
            socket.bind(&SocketAddr::from((source, 0)).into()).expect("an address of this machine");
        }
        socket
            .connect_timeout(&self.server.into(), SOON)
            .unwrap_or_else(|fault| panic!("cannot connect to {}: {fault}", self.server));
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(SOON)).expect("a timeout above zero can be set");
        stream.set_write_timeout(Some(SOON)).expect("a timeout above zero can be set");
        Conversation { stream }
    }
}

impl Told {
    fn read(bytes: &[u8]) -> Self {
        let message = Message::from_vec(bytes)
            .unwrap_or_else(|fault| panic!("the answer can't be read ({fault}): {bytes:02x?}"));
        assert_eq!(message.metadata.message_type, MessageType::Response);
        Self { message }
    }

    /// Whether it worked, and why not.
    pub fn code(&self) -> ResponseCode {
        self.message.metadata.response_code
    }

    /// The content of the records, as text.
    pub fn data(&self) -> Vec<String> {
        self.message.answers.iter().map(|record| record.data.to_string()).collect()
    }
}

impl Conversation {
    /// Asks one thing and reads the answer.
    ///
    /// # Errors
    /// The connection is closed or broken, or silent for 5 s.
    pub fn ask(&mut self, name: &str, kind: RecordType) -> io::Result<Told> {
        self.send(&question(name, kind))?;
        self.receive().map(|bytes| Told::read(&bytes))
    }

    /// Sends one message, or many that were framed before.
    ///
    /// # Errors
    /// As [`Conversation::ask`].
    pub fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.stream.write_all(&framed(message))
    }

    /// Sends bytes exactly as given.
    ///
    /// # Errors
    /// As [`Conversation::ask`].
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next message.
    ///
    /// # Errors
    /// As [`Conversation::ask`].
    pub fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 2];
        self.stream.read_exact(&mut length)?;
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        self.stream.read_exact(&mut message)?;
        Ok(message)
    }
}

impl Gateway {
    /// A client of its name server.
    ///
    /// # Panics
    /// When it has none.
    pub fn names(&self) -> Names {
        let address = self.ready()["dns"][0].as_str().and_then(|address| address.parse().ok());
        Names::of(address.unwrap_or_else(|| panic!("no name server: {}", self.ready())))
    }
}

/// A question as resolvers put it, with an id that tells it from others.
///
/// # Panics
/// When `name` is no domain name.
pub fn question(name: &str, kind: RecordType) -> Vec<u8> {
    let name = Name::from_ascii(format!("{}.", name.trim_end_matches('.')))
        .unwrap_or_else(|fault| panic!("{name} is no domain name: {fault}"));
    let mut message = Message::query();
    message.metadata.op_code = OpCode::Query;
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name, kind));
    message.to_vec().expect("a question is short")
}

/// A message behind its length, as it travels over TCP.
///
/// # Panics
/// When it is longer than 65,535 bytes.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let length = u16::try_from(message.len()).expect("a message is short");
    [&length.to_be_bytes(), message].concat()
}
