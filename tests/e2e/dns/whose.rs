//! Is a question answered out of its sandbox's own names, and the answer sent back to it?

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use outgate_tests::network::Neighbour;

use super::*;

/// A gateway with these name servers, and an environment for each `(id, how it is known)`.
fn serve(world: &World, binds: &[&str], environments: &[(&str, &str)]) -> Gateway {
    let folder = network::folder();
    let mut file = "[[listener]]\nkind = \"explicit\"\nbind = \"127.0.0.1:0\"\n".to_owned();
    for bind in binds {
        file += &format!("[[listener]]\nkind = \"dns\"\nbind = \"{bind}\"\n");
    }
    for (id, known) in environments {
        let path = folder.join(format!("{id}.json"));
        fs::write(&path, allowing_api().to_string()).expect("writable");
        file += &format!("[[environment]]\nfile = {path:?}\n{known}\n");
    }
    world.gateway_builder().configuration(&file).listeners_from_configuration().start()
}

fn at(gateway: &Gateway, number: usize) -> SocketAddr {
    let address = gateway.ready()["dns"][number].as_str().expect("a name server");
    address.parse().expect("its address")
}

#[test]
fn what_an_address_means_is_told_to_its_own_sandbox_alone() {
    isolated(|| {
        let world = world!();
        let gateway = serve(
            &world,
            &["10.20.0.1:0"],
            &[
                ("e1", "source_addresses = [\"10.20.0.2\"]"),
                ("e2", "source_addresses = [\"10.20.0.3\"]"),
            ],
        );
        let from = |last: u8| gateway.names().from(Ipv4Addr::new(10, 20, 0, last).into());
        let secret = from(2).address("secret-project.example.com", RecordType::A);
        assert_eq!(from(2).name(secret).as_deref(), Some("secret-project.example.com"));
        assert_eq!(from(3).name(secret), None);
        let mut connection = from(3).connect();
        for name in drawn_names(100) {
            assert!(connection.ask(&name, RecordType::A).expect("an answer").code().low() == 0);
            assert_ne!(from(3).name(secret).as_deref(), Some("secret-project.example.com"));
        }
        // Who belongs to nobody learns nothing, over either way.
        let told = from(4).ask(API, RecordType::A);
        assert_eq!((told.code().low(), told.data().len()), (REFUSED, 0));
        let told = from(4).connect().ask("localhost", RecordType::A).expect("an answer");
        assert_eq!((told.code().low(), told.data().len()), (REFUSED, 0));
    });
}

#[test]
fn answers_from_the_address_that_was_asked() {
    isolated(|| {
        let world = world!();
        let known = "source_addresses = [\"127.0.0.0/8\", \"::/0\", \"11.22.33.0/24\"]";
        let gateway = serve(&world, &["0.0.0.0:0", "[::]:0"], &[("e1", known)]);
        for (number, asked) in [
            (0, "11.22.33.66"),
            (0, "127.0.0.1"),
            (0, "127.9.9.9"),
            (1, "2606:4700::1111"),
            (1, "::1"),
            (1, "::ffff:11.22.33.66"),
            (1, "11.22.33.66"),
        ] {
            let server =
                SocketAddr::new(asked.parse().expect("an address"), at(&gateway, number).port());
            // Its socket takes answers from that very address only.
            let address = Names::of(server).address(API, RecordType::A);
            assert!(is_synthetic(address), "{asked}");
            let told = Names::of(server).connect().ask(API, RecordType::A).expect("an answer");
            assert_eq!(told.data(), [address.to_string()], "{asked}");
        }
    });
}

#[test]
fn a_question_is_whose_interface_it_comes_in_by() {
    isolated(|| {
        let world = world!();
        let one = Neighbour::new("veth-one", [10, 20, 1, 0].into());
        let two = Neighbour::new("veth-two", [10, 20, 2, 0].into());
        let gateway = serve(
            &world,
            &["0.0.0.0:0"],
            &[
                ("e1", "interface = \"veth-one\"\nsource_addresses = [\"10.20.1.2\"]"),
                ("e2", "interface = \"veth-two\""),
            ],
        );
        let port = at(&gateway, 0).port();
        let from = |client: &Neighbour, source: &str, server: &str| {
            let server = SocketAddr::new(server.parse().expect("an address"), port);
            let names = Names::of(server).from(source.parse().expect("an address"));
            client.inside(|| {
                let told = names.ask(API, RecordType::A);
                let again = names.connect().ask(API, RecordType::A).expect("an answer");
                assert_eq!((told.code(), told.data()), (again.code(), again.data()));
                told.code().low()
            })
        };
        assert_eq!(from(&one, "10.20.1.2", "10.20.1.1"), 0);
        assert_eq!(from(&two, "10.20.2.7", "10.20.2.1"), 0);
        // The right interface, but not the address.
        assert_eq!(from(&one, "10.20.1.3", "10.20.1.1"), REFUSED);
        // Not by the interface of anybody.
        let names = Names::of(SocketAddr::from(([10, 20, 1, 1], port)));
        assert_eq!(names.ask(API, RecordType::A).code().low(), REFUSED);
    });
}
