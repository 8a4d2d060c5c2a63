//! Hooks, a tool call, and where commands run and URLs lead to in a test.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use outgate_hooks::{
    Answer, Busy, Cause, Engine, Event, Failure, HookSet, HookTransport, Phase, Run, Spawner,
    Started, Streams, compile,
};
use outgate_policy::EnvironmentId;
use serde_json::{Value, json};
use tokio::process::Command;

/// The hooks of a file that has no mistake.
pub(crate) fn hooks(file: &Value) -> HookSet {
    let compiled = compile(&file.to_string()).expect("a hooks file");
    HookSet::merge([&compiled.file])
}

/// A file with one group, `gate`, that runs these before every call.
pub(crate) fn before_every_call(handlers: &[Value]) -> HookSet {
    hooks(&json!({"gate": {"pre_tool_execution": [{"hooks": handlers}]}}))
}

/// A command handler.
pub(crate) fn command(text: &str) -> Value {
    json!({"type": "command", "command": text})
}

/// A command handler with a timeout.
pub(crate) fn command_within(text: &str, seconds: u64) -> Value {
    json!({"type": "command", "command": text, "timeout": seconds})
}

/// A call of `view_file`.
pub(crate) fn call(args: &Value) -> Event {
    let text = json!({"tool_call": {"name": "view_file", "args": args}}).to_string();
    Event::parse(text.as_bytes()).expect("an event")
}

/// Runs commands beside the test itself.
#[derive(Default)]
pub(crate) struct Here {
    pub(crate) env: Vec<(String, String)>,
    pub(crate) directory: Option<String>,
    pub(crate) other: Option<Other>,
}

/// Whom the commands belong to, if not to the test.
pub(crate) struct Other {
    pub(crate) user: u32,
    /// A supervisor where that user can reach it: the checkout may be in somebody's home.
    pub(crate) supervisor: PathBuf,
}

impl Other {
    /// Has the supervisor and all of `folder`.
    pub(crate) fn owning(folder: &Path, user: u32) -> Other {
        let supervisor = folder.join("supervise");
        fs::copy(SUPERVISOR, &supervisor).expect("the test's folder is writable");
        for path in [folder, &supervisor] {
            chown(path, Some(user), Some(user)).expect("root gives away what it has");
        }
        Other { user, supervisor }
    }
}

const SUPERVISOR: &str = env!("CARGO_BIN_EXE_supervise");

impl Spawner for Here {
    async fn start(&self, streams: Streams) -> Result<Started, Failure> {
        let Streams { control, stdout, stderr } = streams;
        let program = self.other.as_ref().map_or(Path::new(SUPERVISOR), |other| &other.supervisor);
        let mut supervisor = Command::new(program);
        supervisor.env_clear().stdin(control).stdout(stdout).stderr(stderr);
        if let Some(Other { user, .. }) = self.other {
            supervisor.uid(user).gid(user);
        }
        let process = supervisor.spawn().expect("the supervisor starts");
        let directory = self.directory.clone().unwrap_or_else(|| "/".to_owned());
        let mut env = self.env.clone();
        env.push(("PATH".to_owned(), "/usr/bin:/bin".to_owned()));
        Ok(Started { process: Some(process), enter: None, directory, env })
    }
}

/// No sandbox anywhere.
pub(crate) struct Nowhere;

impl Spawner for Nowhere {
    async fn start(&self, _: Streams) -> Result<Started, Failure> {
        Err(Failure::new(Cause::NoSandbox, "there is none"))
    }
}

type Answerer = dyn FnMut() -> Result<Response<Bytes>, Failure> + Send;

/// Answers every request, and keeps them.
pub(crate) struct Answering {
    answer: Mutex<Box<Answerer>>,
    pub(crate) asked: Mutex<Vec<Request<Bytes>>>,
}

impl Answering {
    pub(crate) fn with(
        answer: impl FnMut() -> Result<Response<Bytes>, Failure> + Send + 'static,
    ) -> Answering {
        Answering { answer: Mutex::new(Box::new(answer)), asked: Mutex::default() }
    }

    pub(crate) fn status(status: u16, body: impl Into<Bytes>) -> Answering {
        let body = body.into();
        Answering::with(move || {
            Ok(Response::builder().status(status).body(body.clone()).expect("a response"))
        })
    }
}

impl HookTransport for Answering {
    type Body = Full<Bytes>;

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Full<Bytes>>, Failure> {
        self.asked.lock().expect("no panic").push(request);
        let answer = (self.answer.lock().expect("no panic"))();
        answer.map(|response| response.map(Full::new))
    }
}

/// Asks before a call.
pub(crate) async fn ask(
    hooks: &HookSet,
    spawner: &impl Spawner,
    transport: &impl HookTransport,
) -> Answer {
    let event = call(&json!({"path": "/public/x"}));
    ask_about(&Engine::default(), hooks, &event, Phase::PreToolExecution, spawner, transport)
        .await
        .expect("room for one call")
}

/// Asks about this call.
pub(crate) async fn ask_about(
    engine: &Engine,
    hooks: &HookSet,
    event: &Event,
    phase: Phase,
    spawner: &impl Spawner,
    transport: &impl HookTransport,
) -> Result<Answer, Busy> {
    let environment = EnvironmentId::parse("env_1").expect("an id");
    let run = Run {
        id: "run".to_owned(),
        environment: &environment,
        phase,
        event,
        spawner,
        transport,
        observe: &|_| {},
    };
    engine.run(hooks, run).await
}

/// Asks a single command before a call.
pub(crate) async fn ask_command(handler: Value) -> Answer {
    ask(&before_every_call(&[handler]), &Here::default(), &unreachable()).await
}

/// A transport that nobody is to use.
pub(crate) fn unreachable() -> Answering {
    Answering::with(|| Err(Failure::new(Cause::Transport, "nothing is there")))
}

/// Each outcome as `allow`, `deny`, `skipped` or the cause of a failure.
pub(crate) fn endings(answer: &Answer) -> Vec<String> {
    let ending = |outcome: &outgate_hooks::Outcome| match outcome.cause {
        Some(cause) => cause.code().to_owned(),
        None => format!("{:?}", outcome.outcome).to_lowercase(),
    };
    answer.outcomes.iter().map(ending).collect()
}

/// Whether a process with this text in its command line runs.
pub(crate) fn is_running(text: &str) -> bool {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| line.split(|byte| *byte == 0).any(|word| word == text.as_bytes()))
}

/// A number of seconds to sleep that no other test uses.
pub(crate) fn unique_sleep() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}.{}", 600 + NEXT.fetch_add(1, Ordering::Relaxed), std::process::id())
}

/// The table under a heading of `docs/hooks.md`: each cell with the names of its row and column,
/// code marks taken off.
pub(crate) fn table(heading: &str) -> Vec<(String, String, String)> {
    let page = include_str!("../../../docs/hooks.md");
    let (_, section) = page.split_once(&format!("{heading}\n")).expect("the heading");
    let mut rows = section.lines().skip_while(|line| !line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let columns = cells(rows.next().expect("a table"));
    let mut found = Vec::new();
    for row in rows.skip(1).take_while(|line| line.starts_with('|')).map(cells) {
        for (column, cell) in columns.iter().zip(&row).skip(1) {
            found.push((row[0].clone(), column.clone(), cell.trim_matches('`').to_owned()));
        }
    }
    found
}
