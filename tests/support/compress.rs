//! How do origins compress what they answer?

use std::io::{Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The codings that clients ask for.
pub const CODINGS: [&str; 3] = ["gzip", "br", "zstd"];

/// `text` in this content coding.
///
/// # Panics
/// When it is none of [`CODINGS`].
pub fn compress(coding: &str, text: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text).expect("memory takes all");
            encoder.finish().expect("memory takes all")
        }
        "br" => {
            let mut compressed = Vec::new();
            let mut encoder = brotli::CompressorReader::new(text, 4096, 2, 22);
            encoder.read_to_end(&mut compressed).expect("memory gives all");
            compressed
        }
        "zstd" => {
            let mut compressed = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
            zstd_safe::compress(&mut compressed, text, 3).expect("there is room");
            compressed
        }
        other => panic!("{other} is no coding that is known here"),
    }
}
