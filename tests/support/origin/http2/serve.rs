//! How does an HTTP/2 origin serve one connection?

use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use h2::{Reason, server};
use rustls::StreamOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio_rustls::TlsAcceptor;

use super::stream::{Stream, request};
use super::{Connected, State};
use crate::origin::connection::{Connection, handshake};
use crate::origin::record::Record;
use crate::origin::run_script;
use crate::transport::Plain;

/// As long as other origins wait for bytes that don't come.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// What a test tells a connection to do.
pub(super) enum Command {
    /// Takes no more streams, ends with the last one.
    GoAway,
    /// Ends now.
    Abort(Reason),
}

/// Serves `socket` on the origin's event loop.
pub(super) fn serve(state: &Arc<State>, socket: TcpStream) {
    let (sender, commands) = mpsc::unbounded_channel();
    let record = Arc::new(Record::default());
    let number = {
        let mut connected = state.connected();
        connected.push(Connected { commands: sender, record: Arc::clone(&record) });
        connected.len() - 1
    };
    let state = Arc::clone(state);
    let handle = state.background.handle().clone();
    handle.spawn(async move {
        // What breaks a connection is seen by its streams, or by the test at its other end.
        let _ = accept(&state, socket, number, &record, commands).await;
        record.end();
    });
}

async fn accept(
    state: &Arc<State>,
    socket: TcpStream,
    number: usize,
    record: &Arc<Record>,
    commands: UnboundedReceiver<Command>,
) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)?;
    let socket = tokio::net::TcpStream::from_std(socket)?;
    let Some(config) = &state.tls else {
        return http2(state, socket, number, commands).await;
    };
    let accepted = TlsAcceptor::from(Arc::clone(config)).accept(socket).await;
    record.shook_hands(
        accepted.as_ref().map(|tls| handshake(tls.get_ref().1)).map_err(ToString::to_string),
    );
    let tls = accepted?;
    if tls.get_ref().1.alpn_protocol() == Some(b"h2") {
        return http2(state, tls, number, commands).await;
    }
    let (socket, session) = tls.into_inner();
    let socket = socket.into_std()?;
    socket.set_nonblocking(false)?;
    let (state, record) = (Arc::clone(state), Arc::clone(record));
    thread::spawn(move || {
        let session = StreamOwned::new(session, Plain::new(socket, READ_TIMEOUT));
        let mut connection = Connection::over(session, &record);
        run_script(&state.panics, || (state.http1)(&mut connection));
    });
    Ok(())
}

async fn http2<IO: AsyncRead + AsyncWrite + Unpin>(
    state: &Arc<State>,
    io: IO,
    number: usize,
    mut commands: UnboundedReceiver<Command>,
) -> io::Result<()> {
    let mut connection: server::Connection<_, bytes::Bytes> =
        state.settings.handshake(io).await.map_err(io::Error::other)?;
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            Some(command) = commands.recv() => {
                match command {
                    Command::GoAway => connection.graceful_shutdown(),
                    Command::Abort(reason) => connection.abrupt_shutdown(reason),
                }
                continue;
            }
        };
        let Some(accepted) = accepted else { return Ok(()) };
        let (head, respond) = accepted.map_err(io::Error::other)?;
        let (head, body) = head.into_parts();
        let record = Arc::new(Mutex::new(request(number, &head)));
        state.keep(&record);
        let handle = state.background.handle().clone();
        let mut stream = Stream::new(handle, body, respond, record);
        let state = Arc::clone(state);
        thread::spawn(move || run_script(&state.panics, || (state.script)(&mut stream)));
    }
}
