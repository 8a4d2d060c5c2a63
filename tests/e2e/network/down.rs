//! What if outgate is not there: not yet, not now, or not any more?

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use outgate_tests::dns::RecordType;
use outgate_tests::names::question;

use super::attacks::Attacks;
use super::*;

const KILLS: usize = 20;

/// A gateway that was killed is back in a moment (I15); under load, on a busy machine, within this.
const BACK: Duration = Duration::from_secs(30);

for_every_kind![what_is_down_is_refused_at_once, nothing_gets_out_in_twenty_kills];

fn what_is_down_is_refused_at_once(kind: Kind) {
    let scene = Scene::new(kind);
    scene.one.inside(|| {
        for to in ["11.22.33.44:443", "[2a00:1122:3344::44]:443", "10.20.0.1:8080", "10.20.0.1:22"]
        {
            assert_eq!(connect(to).map(drop), Err(ErrorKind::ConnectionRefused), "{to}");
        }
        let asks = question(API, RecordType::A);
        for to in ["10.20.0.1:53", "11.22.33.66:53", "[2a00::53]:53", "11.22.33.44:443"] {
            assert_eq!(datagram(to, &asks), Err(ErrorKind::ConnectionRefused), "{to}");
        }
    });
    Attacks::of_one(&scene).send(&scene.one);
    assert_eq!(scene.site.leaked(&[]), []);
}

/// Killed under load, started again, told to reload, and the rules loaded anew meanwhile.
fn nothing_gets_out_in_twenty_kills(kind: Kind) {
    let scene = Scene::new(kind);
    let _api = scene.world.https(API).start();
    let state = network::folder().join("state");
    let builder = scene.builder(&json!([{"domain": API}]), "").state(&state);
    // Makes the CA, which the clients trust through all of it.
    let first = builder.clone().start();
    let load = Load {
        ca: first.ca().to_owned(),
        stopped: AtomicBool::new(false),
        served: AtomicUsize::new(0),
    };
    drop(first);
    thread::scope(|scope| {
        let _stop = StopAtEnd(&load.stopped);
        scope.spawn(|| load.frames(&scene));
        scope.spawn(|| scene.one.inside(|| load.connections()));
        scope.spawn(|| scene.one.inside(|| load.requests()));
        for round in 0..KILLS {
            let mut gateway = builder.clone().start();
            let served = load.served.load(Ordering::Relaxed);
            gateway.reload();
            if round % 2 == 0 {
                kind.load_rules(&scene.site.gateway);
            }
            let back = wait_until(BACK, || load.served.load(Ordering::Relaxed) > served);
            assert!(back, "round {round}: nobody is served\n{}", gateway.output());
            gateway.kill();
        }
    });
    assert_eq!(scene.site.leaked(&API_ORIGINS), []);
}

/// What sandbox `one` does all the while.
struct Load {
    ca: std::path::PathBuf,
    stopped: AtomicBool,
    served: AtomicUsize,
}

/// Also when the test fails: nobody would stop the threads.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Load {
    fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    /// Every attack, again and again. A breath between two rounds leaves the processor to others.
    fn frames(&self, scene: &Scene) {
        let attacks = Attacks::of_one(scene);
        while self.goes_on() {
            attacks.send(&scene.one);
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Connections, questions and datagrams to ever other addresses and ports.
    fn connections(&self) {
        let asks = question("secret.evil.example.test", RecordType::A);
        let ports = [22, 53, 80, 443, 853, 6379, 8080, 8081, 65535];
        for number in (0..=u16::MAX).cycle() {
            let stranger = Ipv4Addr::from(0x0b43_0000 | u32::from(number));
            let port = ports[usize::from(number) % ports.len()];
            for to in [format!("{stranger}:{port}"), format!("[2a00:67::{number:x}]:{port}")] {
                let to: SocketAddr = to.parse().expect("an address and a port");
                // Whether it is taken, refused or cut is the gateway's business at this moment.
                let _ = TcpStream::connect_timeout(&to, Duration::from_millis(100));
                let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any).expect("a free port");
                let _ = socket.send_to(&asks, to);
            }
            if !self.goes_on() {
                return;
            }
        }
    }

    /// What the sandbox may do, for as long as it is done.
    fn requests(&self) {
        while self.goes_on() {
            let curl = Curl::new("https://api.example.com/").ca(&self.ca).max_time(5);
            if curl.run().status == 200 {
                self.served.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
