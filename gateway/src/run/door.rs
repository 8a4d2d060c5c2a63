//! Where is the gateway of this sandbox asked about itself?

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use crate::config::{BindAddress, Settings};
use crate::environments::{default_id, read_text};
use crate::failure::Failure;
use crate::state_dir;

/// `STATE/run/ENVIRONMENT_ID.sock`; with the process's number behind the id, where another command
/// of the same environment runs already.
pub(super) fn socket(settings: &Settings, environment: &Path) -> Result<BindAddress, Failure> {
    state_dir::open(&settings.state_dir).map_err(Failure::start)?;
    let folder = settings.state_dir.join("run");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|error| Failure::start(format_args!("{}: {error}", folder.display())))?;
    let id = id(environment)?;
    let socket = folder.join(format!("{id}.sock"));
    if UnixStream::connect(&socket).is_err() {
        return Ok(BindAddress::Unix(socket));
    }
    let number = std::process::id();
    Ok(BindAddress::Unix(folder.join(format!("{id}.{number}.sock"))))
}

/// What the file calls itself; whether that is a good name is told when it is loaded.
pub(crate) fn id(environment: &Path) -> Result<String, Failure> {
    let document: Value = serde_json::from_str(&read_text(environment)?).unwrap_or_default();
    let said = document.get("environment_id").and_then(Value::as_str);
    let id = said.map_or_else(|| default_id(environment), str::to_owned);
    Ok(id.replace('/', "_"))
}
