//! Do all who read a host and a port read the same?

#![no_main]

use std::net::Ipv4Addr;

use libfuzzer_sys::fuzz_target;
use outgate_policy::{Authority, Destination, Host, Scheme};
use rustls_pki_types::ServerName;

fuzz_target!(|input: &[u8]| {
    let Ok(authority) = Authority::from_wire(input) else { return };
    let port = authority.port.unwrap_or(443);
    let destination = Destination { host: authority.host.clone(), port };

    // What is written is read as the same again, whoever reads it.
    let written = destination.to_string();
    let again = Authority::from_wire(written.as_bytes()).expect("what was written can be read");
    assert_eq!((again.host, again.port), (authority.host.clone(), Some(port)));
    let as_host = destination.authority(Scheme::Https);
    let again = Authority::from_wire(as_host.as_bytes()).expect("what was written can be read");
    assert_eq!((again.host, again.port.unwrap_or(443)), (authority.host.clone(), port));
    let uri: http_uri::Result = http_uri::authority(&as_host);
    assert_eq!(uri, Ok(as_host.clone()));

    // A file means the same by it as the wire.
    let text = authority.host.to_string();
    assert_eq!(Host::from_config(&text).as_ref(), Ok(&authority.host));

    if let Host::Name(name) = &authority.host {
        let name = name.as_str();
        assert!(name.is_ascii() && name.len() <= 253 && !name.ends_with('.'));
        assert_eq!(name, name.to_ascii_lowercase());
        assert!(name.split('.').all(|label| (1..=63).contains(&label.len())));
        assert!(name.parse::<Ipv4Addr>().is_err(), "an address passed as a name");
        // A certificate can be issued and verified for it, under the same name.
        match ServerName::try_from(name) {
            Ok(ServerName::DnsName(dns)) => assert_eq!(dns.as_ref(), name),
            Ok(_) => panic!("a name became an address"),
            Err(_) => {}
        }
    }
});

mod http_uri {
    //! The crate that frames requests must not read another authority than ours.

    pub(crate) type Result = std::result::Result<String, ()>;

    pub(crate) fn authority(text: &str) -> Result {
        let mut headers = [httparse::EMPTY_HEADER; 4];
        let mut request = httparse::Request::new(&mut headers);
        let head = format!("GET / HTTP/1.1\r\nHost: {text}\r\n\r\n");
        match request.parse(head.as_bytes()) {
            Ok(httparse::Status::Complete(_)) => {
                Ok(String::from_utf8_lossy(request.headers[0].value).into_owned())
            }
            _ => Err(()),
        }
    }
}
