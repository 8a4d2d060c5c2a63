//! Does an origin read in our frames what a client has said in its own, values aside?

use crate::exchange::websocket::{Decoder, Said, text};

/// More than any fuzzed message.
const MOST: usize = 1 << 20;

/// What is said over a WebSocket.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    /// Of each text message.
    texts: Vec<Vec<u8>>,
    /// Of everything else, as it stands.
    passed: Vec<u8>,
    /// Its client broke the rules then.
    broken: bool,
}

/// Reads `input` as a client's frames, in pieces of these lengths and whole, and what is made of
/// them for the origin, where every `A` of a text is replaced by something longer.
pub fn websocket(input: &[u8], pieces: &[usize]) {
    let (said, _) = heard(input, &[]);
    let (cut, written) = heard(input, pieces);
    assert_eq!(cut, said, "the cut decides");
    let (mut due, ..) = heard(input, &[]);
    due.texts = due.texts.iter().map(|text| replaced(text)).collect();
    let (arrived, _) = heard(&written, &[]);
    assert!(!arrived.broken, "we broke the rules ourselves");
    // What is broken off with a fault was passed on up to there.
    assert_eq!((arrived.texts, arrived.passed), (due.texts, due.passed));
}

/// What is heard in `input`, and what is written for the origin.
fn heard(input: &[u8], pieces: &[usize]) -> (Heard, Vec<u8>) {
    let mut heard = Heard { texts: Vec::new(), passed: Vec::new(), broken: false };
    let mut written = Vec::new();
    let mut decoder = Decoder::new(MOST);
    let mut lengths = pieces.iter().map(|length| (*length).max(1));
    let mut rest = input;
    while !rest.is_empty() {
        let length = lengths.next().unwrap_or(rest.len()).min(rest.len());
        let (piece, later) = rest.split_at(length);
        rest = later;
        decoder.push(piece);
        loop {
            match decoder.next() {
                Ok(Said::Bytes(bytes)) => {
                    heard.passed.extend_from_slice(&bytes);
                    written.extend_from_slice(&bytes);
                }
                Ok(Said::Text(said)) => {
                    written.extend_from_slice(&text(&replaced(&said)).expect("random bytes"));
                    heard.texts.push(said);
                }
                Ok(Said::Nothing) => break,
                Err(_) => {
                    heard.broken = true;
                    return (heard, written);
                }
            }
        }
    }
    (heard, written)
}

fn replaced(text: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::new();
    for byte in text {
        match byte {
            b'A' => replaced.extend_from_slice(&[b'B'; 200]),
            other => replaced.push(*other),
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_hold_of_any_frames_holds_of_these() {
        let one = text(b"an A").expect("random bytes");
        let two = text(&[b'A'; 700]).expect("random bytes");
        let ping = [0x89, 0x81, 1, 2, 3, 4, 5];
        let pieces = [&[0x01, 0x81, 0, 0, 0, 0, b'A'][..], &ping, &[0x80, 0x80, 0, 0, 0, 0]];
        let all = [&one[..], &two, &ping, &pieces.concat(), &[0x81, 0x01, b'x']].concat();
        for size in [1, 2, 3, 50, all.len()] {
            websocket(&all, &vec![size; all.len()]);
        }
    }
}
