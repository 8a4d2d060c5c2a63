//! How is each kind of request made?
//!
//! Its number stands in its path or, where it is refused before there is one, in its domain.

use super::load::{Kind, Load};
use super::scene::{API, BIG, CLEAR, MANY, OPEN, Scene};
use super::*;

/// Requests of one connection before another takes its place.
const USES: usize = 50;
/// What a client reads of a download before it leaves.
const TASTE: usize = 100 << 10;
const MESSAGES: usize = 5;
/// As long is a WebSocket silent at most: no client's silence ends a connection sooner.
const SILENCE: Duration = Duration::from_secs(30 * 60);

const SUCCEEDED: u8 = 0;
const NOT_ALLOWED: u8 = 2;

/// One client in the sandbox, with the connections that it keeps.
pub(super) struct Client<'a> {
    scene: &'a Scene,
    load: &'a Load,
    /// Goes on with earlier sessions of TLS.
    hello: Hello,
    tunnel: Option<(RawClient, usize)>,
    http2: Option<(Http2Client, usize)>,
    /// A WebSocket that is silent from one turn to the next.
    silent: Option<RawClient>,
}

impl<'a> Client<'a> {
    pub(super) fn new(scene: &'a Scene, load: &'a Load) -> Client<'a> {
        let hello = Hello::to(API).remembering();
        Client { scene, load, hello, tunnel: None, http2: None, silent: None }
    }

    pub(super) fn ask(&mut self, kind: Kind, number: u64) {
        match kind {
            Kind::Denied => self.denied(number),
            Kind::Aborted => self.aborted(number),
            Kind::WebSocket => self.websocket(number),
            Kind::Upload => self.upload(number),
            Kind::Download => self.download(number),
            Kind::Slow => self.with_tunnel(|tunnel| {
                assert_eq!(tunnel.exchange(get(API, "slow", number)).body.len(), 20);
            }),
            Kind::Fresh if number.is_multiple_of(2) => {
                small(&mut self.connect(&self.hello), number)
            }
            Kind::Fresh => small(&mut self.connect(&Hello::to(API)), number),
            Kind::Absolute => {
                let asks =
                    format!("GET http://{CLEAR}/get/{number} HTTP/1.1\r\nHost: {CLEAR}\r\n\r\n");
                assert_small(&self.scene.gateway.client().exchange(asks));
            }
            Kind::Socks => {
                let (reply, client) = self.socks(API);
                assert_eq!(reply, SUCCEEDED);
                small(&mut client.tls(&self.hello), number);
            }
            Kind::Http2 => self.with_http2(|http2| {
                assert_eq!(http2.get(&format!("/get/{number}")).status, 200);
            }),
            Kind::KeepAlive => self.with_tunnel(|tunnel| small(tunnel, number)),
        }
    }

    fn connect(&self, hello: &Hello) -> RawClient {
        self.scene.gateway.client().connect_tunnel(&format!("{API}:443")).tls(hello)
    }

    /// Uses the connection that is kept, or a new one in its place.
    fn with_tunnel(&mut self, ask: impl FnOnce(&mut RawClient)) {
        let kept = self.tunnel.take();
        let (mut tunnel, uses) = kept.unwrap_or_else(|| (self.connect(&self.hello), 0));
        ask(&mut tunnel);
        self.tunnel = (uses < USES).then_some((tunnel, uses + 1));
    }

    fn with_http2(&mut self, ask: impl FnOnce(&Http2Client)) {
        let kept = self.http2.take();
        let (http2, uses) = kept.unwrap_or_else(|| (self.scene.gateway.http2(MANY).connect(), 0));
        ask(&http2);
        self.http2 = (uses < USES).then_some((http2, uses + 1));
    }

    fn socks(&self, name: &str) -> (u8, RawClient) {
        let mut client = RawClient::connect(self.scene.socks(), self.scene.gateway.ca());
        client.send([5, 1, 0]);
        assert_eq!(client.read_exact(2), [5, 0]);
        let length = u8::try_from(name.len()).expect("names are short");
        client.send([&[5, 1, 0, 3, length], name.as_bytes(), &443_u16.to_be_bytes()].concat());
        (client.read_exact(10)[1], client)
    }

    fn denied(&mut self, number: u64) {
        let name = format!("d{number}.denied.example.test");
        let client = self.scene.gateway.client();
        match number % 4 {
            0 => {
                let refused = client.try_connect_tunnel(&format!("{name}:443")).err();
                assert_eq!(refused.map(|refused| refused.status), Some(403));
            }
            1 => {
                let mut client = client;
                let asks = format!("GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n");
                assert_eq!(client.exchange(asks).status, 403);
            }
            2 => assert_eq!(self.socks(&name).0, NOT_ALLOWED),
            _ => self.with_tunnel(|tunnel| {
                assert_eq!(tunnel.exchange(get(API, "denied", number)).status, 403);
            }),
        }
    }

    fn aborted(&mut self, number: u64) {
        if number.is_multiple_of(4) {
            return self.with_http2(|http2| {
                let mut stream = http2.open_get(&format!("/down/{number}"));
                assert_eq!(stream.head().expect("a head").status, 200);
                stream.data().expect("the stream is open");
                // Dropped, it is reset.
            });
        }
        let mut tunnel = self.used_tunnel();
        if number % 4 == 1 {
            tunnel.send(post(number));
            tunnel.send(vec![b'x'; BIG / 4]);
            return tunnel.reset();
        }
        tunnel.send(get(API, "down", number));
        let mut tasted = 0;
        while tasted < TASTE {
            tasted += tunnel.read_some().expect("the download goes on").len();
        }
        if number % 4 == 2 {
            tunnel.reset();
        }
    }

    /// The connection that is kept. What is reset on one whose handshake has not quite ended may
    /// take the request along, and the line of that is the tunnel's.
    fn used_tunnel(&mut self) -> RawClient {
        let number = self.load.number();
        self.with_tunnel(|tunnel| small(tunnel, number));
        let kept = self.tunnel.take();
        kept.map_or_else(|| self.used_tunnel(), |(tunnel, _)| tunnel)
    }

    fn websocket(&mut self, number: u64) {
        let host = if number.is_multiple_of(2) { OPEN } else { CLEAR };
        let mut socket = open_websocket(self.scene, host, number);
        (0..MESSAGES).for_each(|_| speak(&mut socket));
        if let Some(mut earlier) = self.silent.replace(socket) {
            speak(&mut earlier);
        }
    }

    fn upload(&mut self, number: u64) {
        let body = vec![b'x'; BIG];
        if number.is_multiple_of(2) {
            return self.with_http2(|http2| {
                let request = http2.request("POST", &format!("/up/{number}"));
                assert_eq!(http2.ask(request, &body).status, 200);
            });
        }
        self.with_tunnel(|tunnel| {
            tunnel.send(post(number));
            assert_eq!(tunnel.exchange(&body).status, 200);
        });
    }

    fn download(&mut self, number: u64) {
        if number.is_multiple_of(2) {
            return self.with_http2(|http2| {
                assert_eq!(http2.get(&format!("/down/{number}")).body.len(), BIG);
            });
        }
        self.with_tunnel(|tunnel| {
            assert_eq!(tunnel.exchange(get(API, "down", number)).body.len(), BIG);
        });
    }
}

fn get(host: &str, kind: &str, number: u64) -> String {
    format!("GET /{kind}/{number} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// The head of an upload.
fn post(number: u64) -> String {
    format!("POST /up/{number} HTTP/1.1\r\nHost: {API}\r\nContent-Length: {BIG}\r\n\r\n")
}

fn small(client: &mut RawClient, number: u64) {
    assert_small(&client.exchange(get(API, "get", number)));
}

fn assert_small(response: &Response) {
    assert_eq!((response.status, response.text().as_str()), (200, "small"));
}

/// Two WebSockets, `wss` and `ws`, that say something in the beginning and in the end.
pub(super) fn be_silent(scene: &Scene, load: &Load) {
    let _guard = load.ends_with_a_panic();
    let mut sockets = [OPEN, CLEAR].map(|host| open_websocket(scene, host, load.number()));
    loop {
        sockets.iter_mut().for_each(speak);
        if load.is_over() {
            return;
        }
        let spoke = Instant::now();
        while !load.is_over() && spoke.elapsed() < SILENCE {
            thread::sleep(LOOK);
        }
    }
}

fn open_websocket(scene: &Scene, host: &str, number: u64) -> RawClient {
    let client = scene.gateway.client();
    let mut socket = match host {
        CLEAR => client.connect_tunnel(&format!("{host}:80")),
        _ => client.connect_tunnel(&format!("{host}:443")).tls(&Hello::to(host)),
    };
    let upgraded = socket.exchange(format!(
        "GET /socket/{number} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ));
    assert_eq!(upgraded.status, 101);
    socket
}

fn speak(socket: &mut RawClient) {
    socket.send("ping");
    assert_eq!(socket.read_exact(4), b"ping");
}
