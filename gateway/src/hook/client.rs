//! How is the gateway of a running sandbox asked? Over its socket, with the key beside it.

use std::os::unix::net::UnixStream;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::runtime::Builder;

use super::{Question, settings, socket};
use crate::cli::HookArgs;
use crate::failure::Failure;
use crate::run::id;
use crate::surroundings::Surroundings;

/// Room for the outcomes of a file with as many handlers as fit.
const MOST: usize = 16 << 20;
/// What fits into a header.
const LONGEST_KEY: usize = 16 << 10;

/// The answer; `None` if no sandbox of the environment runs.
pub(super) fn ask_running(
    args: &HookArgs,
    surroundings: &Surroundings,
    question: &Question,
) -> Result<Option<String>, Failure> {
    let settings = settings(args, surroundings)?;
    let Ok(stream) = UnixStream::connect(socket(&settings, &args.environment)?) else {
        return Ok(None);
    };
    let key = outgate_files::read_text(&settings.state_dir.join("management.key"), LONGEST_KEY)
        .map_err(|error| Failure::start(format_args!("the management key: {error}")))?;
    let id = id(&args.environment)?;
    let request = Request::post(format!("/v1/environments/{id}/hooks/{}", question.phase.as_str()))
        .header(header::HOST, "outgate")
        .header("x-goog-api-key", key.trim())
        .body(Full::new(Bytes::from(question.event.clone())))
        .map_err(Failure::start)?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::start)?;
    runtime.block_on(exchange(stream, request)).map(Some)
}

async fn exchange(stream: UnixStream, request: Request<Full<Bytes>>) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::start(format_args!("the gateway of the running sandbox: {error}"))
    };
    stream.set_nonblocking(true).map_err(|error| failed(&error))?;
    let stream = tokio::net::UnixStream::from_std(stream).map_err(|error| failed(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MOST).collect().await;
        Ok((status, body.map_err(|error| failed(&error))?.to_bytes()))
    };
    let (status, body) = tokio::select! {
        exchanged = exchange => exchanged?,
        // It ends only with an error while an exchange goes on.
        Err(error) = connection => return Err(failed(&error)),
    };
    let answer = String::from_utf8(body.into()).map_err(|error| failed(&error))?;
    if status == StatusCode::OK {
        return Ok(answer);
    }
    let said: Value = serde_json::from_str(&answer).unwrap_or_default();
    Err(Failure::input(said["error"]["message"].as_str().unwrap_or("the gateway did not say why")))
}
