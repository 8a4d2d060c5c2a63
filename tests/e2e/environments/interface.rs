//! Is a client known by the interface it comes in by, and by nothing that it can make up?

use std::net::IpAddr;

use outgate_tests::network::Neighbour;

use super::*;

#[test]
fn a_client_is_whose_interface_it_comes_in_by() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).start();
        let one = Neighbour::new("veth-one", [10, 20, 1, 0].into());
        let two = Neighbour::new("veth-two", [10, 20, 2, 0].into());
        let folder = network::folder();
        let mut file = "[[listener]]\nkind = \"explicit\"\nbind = \"10.20.1.1:0\"\n".to_owned();
        file += "[[listener]]\nkind = \"explicit\"\nbind = \"10.20.2.1:0\"\n";
        for (id, known) in [
            ("e1", "interface = \"veth-one\"\nsource_addresses = [\"10.20.1.2\", \"10.20.9.9\"]"),
            ("e2", "interface = \"veth-two\""),
            ("e3", "source_addresses = [\"10.20.1.0/24\", \"10.20.9.0/24\"]"),
        ] {
            let path = folder.join(format!("{id}.json"));
            fs::write(&path, allowing(API)).expect("writable");
            file += &format!("[[environment]]\nfile = {path:?}\n{known}\n");
        }
        let builder = world.gateway_builder().configuration(&file);
        let mut gateway = builder.listeners_from_configuration().start();
        let listener = |number: usize| -> std::net::SocketAddr {
            gateway.ready()["explicit"][number - 1].as_str().unwrap().parse().unwrap()
        };
        let from = |source: &str, number: usize| {
            let source: IpAddr = source.parse().expect("an address");
            let client = RawClient::connect_from(source, listener(number), gateway.ca());
            client.try_connect_tunnel("api.example.com:443").map_or_else(|no| no.status, |_| 200)
        };
        // By its interface and its address, by its interface alone, by its address alone.
        assert_eq!(one.inside(|| from("10.20.1.2", 1)), 200);
        assert_eq!(two.inside(|| from("10.20.2.7", 2)), 200);
        assert_eq!(from("10.20.9.1", 1), 200);
        // The right interface, but not the address; e3's address, but not by this interface.
        assert_eq!(one.inside(|| from("10.20.1.3", 1)), 407);
        // The right address, but not the interface: it is e3's then, as the wider block says.
        assert_eq!(from("10.20.9.9", 1), 200);
        let mut audit = gateway.final_audit();
        // Lines come when tunnels close; their ids say in which order they were opened.
        audit.sort_by_key(|line| line["id"].to_string());
        let ids: Vec<_> = audit.iter().map(|line| line["environment_id"].as_str()).collect();
        assert_eq!(ids, [Some("e1"), Some("e2"), Some("e3"), None, Some("e3")]);
    });
}

#[test]
fn loopback_has_its_interface_too() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).start();
        let folder = network::folder();
        for bind in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let path = folder.join("e1.json");
            fs::write(&path, allowing(API)).expect("writable");
            for (interface, status) in [("lo", 200), ("veth-none", 407)] {
                let file = format!(
                    "[[listener]]\nkind = \"explicit\"\nbind = \"{bind}\"\n\
                     [[environment]]\nfile = {path:?}\ninterface = \"{interface}\"\n"
                );
                let builder = world.gateway_builder().configuration(&file);
                let gateway = builder.listeners_from_configuration().start();
                let answer = gateway.client().try_connect_tunnel("api.example.com:443");
                let came = answer.map_or_else(|refusal| refusal.status, |_| 200);
                assert_eq!(came, status, "{bind} {interface}");
            }
        }
    });
}
