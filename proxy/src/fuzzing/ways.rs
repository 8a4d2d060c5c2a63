//! Where would a connection go, whatever a client begins it with?

use std::io;

use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

use super::{ROOM, block_on};
use crate::ingress::client_hello;
use crate::ingress::prefixed::Prefixed;
use crate::ingress::socks5;

/// The host that a ClientHello names, if it does, and whether it may hide another: `None` where it is
/// refused. It comes in pieces of these lengths, and must be put back unchanged.
pub fn hello(input: &[u8], pieces: &[usize]) -> Option<(Option<String>, bool)> {
    let (hello, read) = block_on(in_pieces(input, pieces, async |io| {
        let read = client_hello::read(Prefixed::new(Default::default(), io)).await;
        let (hello, mut io) = read.expect("the pipe has no faults");
        let mut all = Vec::new();
        tokio::io::copy(&mut io, &mut all).await.expect("the pipe has no faults");
        (hello, all)
    }));
    assert_eq!(read, input, "bytes changed on the way");
    let hello = hello.ok()?;
    Some((hello.server_name.map(|host| host.to_string()), hello.hides_name))
}

/// Where a SOCKS5 request leads, and how many bytes behind it are the tunnel's: `None` where it is
/// refused. It comes in pieces of these lengths.
pub fn socks_request(input: &[u8], pieces: &[usize]) -> Option<(String, u64)> {
    block_on(in_pieces(input, pieces, async |mut io| {
        let destination = socks5::request(&mut io).await.ok();
        let left = tokio::io::copy(&mut io, &mut tokio::io::sink()).await;
        Some((destination?.to_string(), left.expect("the pipe has no faults")))
    }))
}

async fn in_pieces<T>(
    input: &[u8],
    pieces: &[usize],
    read: impl AsyncFnOnce(DuplexStream) -> T,
) -> T {
    let (mut client, server) = duplex(ROOM);
    let writing = async {
        let mut rest = input;
        for piece in pieces {
            let (now, later) = rest.split_at((*piece).min(rest.len()));
            rest = later;
            client.write_all(now).await?;
            tokio::task::yield_now().await;
        }
        client.write_all(rest).await?;
        drop(client);
        io::Result::Ok(())
    };
    // Whoever refuses reads the rest all the same.
    let (written, read) = tokio::join!(writing, read(server));
    written.expect("the reader takes all");
    read
}
