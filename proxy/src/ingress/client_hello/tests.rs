//! Is a hello read in one way, or not at all?

use tokio::io::AsyncWriteExt;

use super::*;

fn behind_length(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes(), bytes].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes(), &behind_length(content)[..]].concat()
}

fn names(entries: &[(u8, &[u8])]) -> Vec<u8> {
    let entries: Vec<u8> = entries
        .iter()
        .flat_map(|(kind, name)| [&[*kind], &behind_length(name)[..]].concat())
        .collect();
    extension(SERVER_NAME, &behind_length(&entries))
}

/// A hello with these bytes for its list of extensions.
fn body(extensions: &[u8]) -> Vec<u8> {
    let head = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0]].concat();
    [head, behind_length(extensions)].concat()
}

fn message(body: &[u8]) -> Vec<u8> {
    [&[CLIENT_HELLO], &(body.len() as u32).to_be_bytes()[1..], body].concat()
}

fn records(message: &[u8], length: usize) -> Vec<u8> {
    let record = |piece: &[u8]| [&[HANDSHAKE, 3, 1], &behind_length(piece)[..]].concat();
    message.chunks(length).flat_map(record).collect()
}

async fn read_all(bytes: &[u8]) -> Result<ClientHello, HelloError> {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    client.write_all(bytes).await.expect("room");
    drop(client);
    let given = Prefixed::new(Bytes::new(), server);
    let (hello, mut io) = read(given).await.expect("no fault of the pipe");
    let mut again = Vec::new();
    io.read_to_end(&mut again).await.expect("no fault of the pipe");
    assert!(again == bytes, "what was read is not what is put back");
    hello
}

#[tokio::test]
async fn the_name_is_read_however_the_message_is_cut() {
    let api = Host::from_wire(b"api.example.com").expect("a host");
    let extensions = [extension(0x0a0a, b""), names(&[(HOST_NAME, b"API.example.com.")])];
    let hello = message(&body(&extensions.concat()));
    for length in [1, 2, 3, 4, 5, 100, 1 << 14] {
        let read = read_all(&records(&hello, length)).await.expect("a hello");
        assert_eq!((read.server_name, read.hides_name), (Some(api.clone()), false));
    }
}

#[tokio::test]
async fn a_hello_may_name_nobody() {
    let bare = body(b"");
    for body in [&bare[..], &bare[..bare.len() - 2]] {
        let read = read_all(&records(&message(body), 4096)).await.expect("a hello");
        assert_eq!(read, ClientHello { server_name: None, hides_name: false });
    }
}

#[test]
fn hidden_names_are_seen_behind_any_name() {
    for kind in HIDDEN_NAME {
        let extensions = [names(&[(HOST_NAME, b"a.test")]), extension(kind, &[0; 9])].concat();
        assert!(parse(&body(&extensions)).expect("a hello").hides_name);
    }
}

#[test]
fn what_two_servers_could_read_in_two_ways_is_refused() {
    let name = names(&[(HOST_NAME, b"a.test")]);
    let malformed = [
        [name.clone(), name.clone()].concat(),
        [extension(10, b"x"), extension(10, b"x")].concat(),
        names(&[(HOST_NAME, b"a.test"), (HOST_NAME, b"b.test")]),
        names(&[(1, b"a.test")]),
        names(&[]),
        extension(SERVER_NAME, b""),
        extension(SERVER_NAME, b"\0\x09\0\0\x06a.testx"),
        name[..name.len() - 1].to_vec(),
        [name.clone(), vec![0]].concat(),
    ];
    for extensions in malformed {
        assert_eq!(parse(&body(&extensions)), Err(HelloError::Malformed), "{extensions:?}");
    }
    assert_eq!(parse(&[body(&name), vec![0]].concat()), Err(HelloError::Malformed));
    for name in [&b""[..], b"a\0b", b"*.test", b"a..test", b"a.test:443", b"127.1"] {
        let refused = parse(&body(&names(&[(HOST_NAME, name)])));
        assert!(matches!(refused, Err(HelloError::Name(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn records_that_are_no_hello_end_it() {
    let hello = message(&body(&names(&[(HOST_NAME, b"a.test")])));
    let good = records(&hello, 1 << 14);
    for (bytes, error) in [
        (good[..good.len() - 1].to_vec(), HelloError::Truncated),
        (good[..3].to_vec(), HelloError::Truncated),
        ([&records(&hello[..9], 9)[..], b"\x17\x03\x03\0\x01x"].concat(), HelloError::Malformed),
        (b"\x16\x03\x01\0\0".to_vec(), HelloError::Malformed),
        (b"\x16\x02\x01\0\x01x".to_vec(), HelloError::Malformed),
        (records(&[2, 0, 0, 0], 4), HelloError::Malformed),
        (records(&[1, 1, 0, 0], 4), HelloError::Long),
        (records(&[&hello[..], &hello].concat(), 1 << 14), HelloError::Malformed),
        // Announced short enough, but in records of one byte each.
        (records(&message(&[0; 60_000]), 1), HelloError::Long),
    ] {
        assert_eq!(read_all(&bytes).await, Err(error));
    }
}
