//! How is one coding read?

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::Unreadable;
use crate::limits::{BROTLI_WINDOW_LOG, ZSTD_WINDOW_LOG};

/// One coding, in the middle of a body.
pub(super) enum Coding {
    Gzip(Decompress),
    Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Zstd(Box<DCtx<'static>>),
}

/// What one step did.
pub(super) struct Step {
    pub(super) read: usize,
    pub(super) made: usize,
    pub(super) whole: bool,
}

impl Coding {
    /// That of this name.
    pub(super) fn named(name: &[u8]) -> Option<Coding> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("gzip") || is("x-gzip") {
            Some(Coding::gzip())
        } else if is("br") {
            // Strict: no windows beyond those of RFC 7932.
            let alloc = StandardAlloc::default;
            Some(Coding::Brotli(Box::new(BrotliState::new_strict(alloc(), alloc(), alloc()))))
        } else if is("zstd") {
            let mut context = DCtx::create();
            context.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG)).ok()?;
            Some(Coding::Zstd(Box::new(context)))
        } else {
            None
        }
    }

    /// The largest that it may have; gzip's are too small to count.
    pub(super) fn window(&self) -> u32 {
        match self {
            Coding::Gzip(_) => 0,
            Coding::Brotli(_) => 1 << BROTLI_WINDOW_LOG,
            Coding::Zstd(_) => 1 << ZSTD_WINDOW_LOG,
        }
    }

    fn gzip() -> Coding {
        const WINDOW_BITS: u8 = 15;
        Coding::Gzip(Decompress::new_gzip(WINDOW_BITS))
    }

    /// Something follows what was whole: another member (RFC 1952 §2.2), another frame.
    pub(super) fn begin_again(&mut self) -> Result<(), Unreadable> {
        match self {
            Coding::Gzip(_) => *self = Coding::gzip(),
            // Its streams have no successors.
            Coding::Brotli(_) => return Err(Unreadable::Corrupt),
            Coding::Zstd(_) => {}
        }
        Ok(())
    }

    /// Reads some of `input`, and writes what it comes to.
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Unreadable> {
        match self {
            Coding::Gzip(state) => gzip(state, input, output),
            Coding::Brotli(state) => brotli(state, input, output),
            Coding::Zstd(context) => zstd(context, input, output),
        }
    }
}

fn gzip(state: &mut Decompress, input: &[u8], output: &mut [u8]) -> Result<Step, Unreadable> {
    let (taken, made) = (state.total_in(), state.total_out());
    let status = state.decompress(input, output, FlushDecompress::None);
    let whole = match status.map_err(|_| Unreadable::Corrupt)? {
        Status::StreamEnd => true,
        Status::Ok | Status::BufError => false,
    };
    let count = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
    Ok(Step { read: count(state.total_in(), taken), made: count(state.total_out(), made), whole })
}

fn brotli(
    state: &mut BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    input: &[u8],
    output: &mut [u8],
) -> Result<Step, Unreadable> {
    let (mut left, mut read) = (input.len(), 0);
    let (mut room, mut made, mut total) = (output.len(), 0, 0);
    let result = BrotliDecompressStream(
        &mut left, &mut read, input, &mut room, &mut made, output, &mut total, state,
    );
    match result {
        BrotliResult::ResultFailure => Err(Unreadable::Corrupt),
        BrotliResult::ResultSuccess => Ok(Step { read, made, whole: true }),
        BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {
            Ok(Step { read, made, whole: false })
        }
    }
}

fn zstd(context: &mut DCtx<'static>, input: &[u8], output: &mut [u8]) -> Result<Step, Unreadable> {
    let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(output));
    // What the frame needs next; nothing, where it is whole.
    let needs = context.decompress_stream(&mut to, &mut from).map_err(|_| Unreadable::Corrupt)?;
    Ok(Step { read: from.pos(), made: to.pos(), whole: needs == 0 })
}
