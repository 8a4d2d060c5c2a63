//! By which way does a command reach the credentials?

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use outgate_credentials::{Asker, ChangeError, Credentials, Summary};
use outgate_policy::{CredentialId, Document};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};
use zeroize::Zeroizing;

use crate::cli::{OperatorArgs, ServeArgs};
use crate::config::{BindAddress, Settings};
use crate::failure::Failure;
use crate::surroundings::Surroundings;
use crate::{state_dir, store};

/// A gateway on the same machine that takes longer is stuck.
const DEADLINE: Duration = Duration::from_secs(60);
const ANSWER_BYTES: usize = 8 << 20;
/// What fits into a header.
const LONGEST_KEY: usize = 16 << 10;
const PATH: &str = "/v1beta/credentials";

/// A running gateway, or the store itself.
pub(super) enum Door {
    Gateway { runtime: Runtime, address: BindAddress, key: Zeroizing<String> },
    Store(Credentials),
}

impl Door {
    pub(super) fn open(
        operator: &OperatorArgs,
        surroundings: &Surroundings,
    ) -> Result<Door, Failure> {
        let args = ServeArgs { operator: operator.clone(), ..ServeArgs::default() };
        let settings = Settings::resolve(&args, surroundings).map_err(Failure::input)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::start)?;
        match runtime.block_on(connect(&settings.management)) {
            Ok(_) => {
                let key = read_key(settings.state_dir.join("management.key"))?;
                Ok(Door::Gateway { runtime, address: settings.management, key })
            }
            Err(error) if nobody_is_there(&error) => {
                state_dir::open(&settings.state_dir).map_err(Failure::start)?;
                store::open(&settings.state_dir, &settings.store_key).map(Door::Store)
            }
            Err(error) => {
                let address = settings.management;
                Err(Failure::start(format_args!("the gateway at {address}: {error}")))
            }
        }
    }

    /// The answer of the API, or what the API would have answered. `path` is behind the
    /// collection's own.
    pub(super) fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<Value, Failure> {
        match self {
            Door::Gateway { runtime, address, key } => {
                let body = Bytes::from(body.unwrap_or_default());
                let request = Request::builder()
                    .method(method)
                    .uri(format!("{PATH}{path}"))
                    .header(header::HOST, "localhost")
                    .header(header::CONTENT_TYPE, "application/json")
                    .header("x-goog-api-key", key.as_str())
                    .body(Full::new(body))
                    .map_err(Failure::start)?;
                let answer = runtime.block_on(async {
                    tokio::time::timeout(DEADLINE, exchange(address, request)).await
                });
                answer.unwrap_or_else(|_| Err(Failure::start("the gateway does not answer")))
            }
            Door::Store(credentials) => in_store(credentials, &method, path, body.as_deref()),
        }
    }
}

async fn exchange(address: &BindAddress, request: Request<Full<Bytes>>) -> Result<Value, Failure> {
    let io = connect(address).await.map_err(Failure::start)?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(io)).await.map_err(Failure::start)?;
    // Ends with the runtime at the latest; its errors reach who waits for the answer.
    let driving = tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(Failure::start)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await;
    driving.abort();
    let body = body.map_err(|_| Failure::start("the gateway's answer broke off"))?.to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    match status {
        StatusCode::OK => Ok(answer),
        _ => Err(Failure::input(answer["error"]["message"].as_str().unwrap_or(status.as_str()))),
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

#[expect(clippy::disallowed_methods, reason = "the gateway's own API, on a loopback address")]
async fn connect(address: &BindAddress) -> io::Result<Box<dyn Stream>> {
    Ok(match address {
        BindAddress::Unix(path) => Box::new(UnixStream::connect(path).await?),
        BindAddress::Tcp(address) => Box::new(TcpStream::connect(address).await?),
    })
}

/// No socket, or one that its gateway left behind.
fn nobody_is_there(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn read_key(path: PathBuf) -> Result<Zeroizing<String>, Failure> {
    let text = outgate_files::read_text(&path, LONGEST_KEY);
    let text = text.map_err(|error| Failure::start(format_args!("{}: {error}", path.display())))?;
    Ok(Zeroizing::new(text.trim().to_owned()))
}

fn in_store(
    credentials: &Credentials,
    method: &Method,
    path: &str,
    body: Option<&str>,
) -> Result<Value, Failure> {
    let said = || match Document::read(body.unwrap_or_default()) {
        Ok((said, _)) => Ok(said),
        Err(problem) => Err(Failure::input(problem)),
    };
    let id = path.strip_prefix('/').map(CredentialId::parse).transpose();
    let outcome = match (method.as_str(), id.map_err(Failure::input)?) {
        ("POST", _) => credentials.create(&said()?, Asker::Local),
        ("PATCH", Some(id)) => credentials.update(&id, &said()?, None, Asker::Local),
        ("DELETE", Some(id)) => {
            return match credentials.delete(&id) {
                Ok(()) => Ok(json!({})),
                Err(error) => Err(failed(error)),
            };
        }
        (_, Some(id)) => credentials.get(&id).ok_or(ChangeError::Missing(id)),
        (_, None) => {
            let all = credentials.list(None, usize::MAX);
            return Ok(json!({"credentials": all.iter().map(shown).collect::<Vec<_>>()}));
        }
    };
    outcome.map(|summary| shown(&summary)).map_err(failed)
}

fn failed(error: ChangeError) -> Failure {
    match error {
        ChangeError::Store(error) => Failure::start(error),
        other => Failure::input(other.to_string().replace('\n', "; ")),
    }
}

fn shown(summary: &Summary) -> Value {
    let time = i64::try_from(summary.updated).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_millisecond(time);
    json!({
        "id": summary.id.as_str(),
        "type": summary.kind,
        "status": summary.status,
        "update_time": time.map_or_else(|_| String::new(), |time| format!("{time:.3}")),
    })
}
