//! Where do logs go, and how much of them?

use std::io;

use tracing_subscriber::EnvFilter;

use crate::console::Style;
use crate::failure::Failure;
use crate::surroundings::Surroundings;

/// Sends logs to stderr: level from `OUTGATE_LOG`, else `RUST_LOG`, else `level`.
///
/// Every line is formatted first and written with one call under stderr's lock, so it never mixes
/// with an audit line.
pub(crate) fn start(surroundings: &Surroundings, level: &str) -> Result<(), Failure> {
    let directives = surroundings.log.as_deref().unwrap_or(level);
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        Failure::usage(format_args!("OUTGATE_LOG `{directives}`: {error}; try `info` or `debug`"))
    })?;
    let colours = Style::of(&io::stderr(), surroundings.no_color.as_deref()) == Style::Coloured;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(colours)
        .try_init()
        .map_err(|error| Failure::start(format_args!("logs can't be set up: {error}")))
}
