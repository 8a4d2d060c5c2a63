//! What else is odd, that nobody has thought of?

/// What is put in at a random place.
const PIECES: [&[u8]; 34] = [
    b"\0",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b"\r\n\r\n",
    b"\x0b",
    b"\x7f",
    b"\x80",
    b"\xff",
    b" ",
    b"!",
    b"\"",
    b"#",
    b"%",
    b"%0d%0a",
    b"+",
    b",",
    b"-",
    b"/",
    b"0",
    b"1",
    b":",
    b";",
    b"?",
    b"@",
    b"\\",
    b"_",
    b"a",
    b"x",
    b"0\r\n\r\n",
    b" HTTP/1.1",
    b"..",
    b"chunked",
];

/// What is put in as a line of its own.
const LINES: [&[u8]; 26] = [
    b"Connection: close",
    b"Connection: keep-alive, X-Injected, Content-Length",
    b"Connection: upgrade",
    b"Content-Length: 0",
    b"Content-Length: 5",
    b"Content-Length: 46",
    b"Content-Length : 0",
    b"Content_Length: 5",
    b"Expect: 100-continue",
    b"GET /inner HTTP/1.1",
    b"Host: api.example.com",
    b"Host: evil.example.test",
    b"TE: trailers, chunked",
    b"Trailer: X-Injected",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: identity",
    b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding:chunked ",
    b"Transfer_Encoding: chunked",
    b"Upgrade: websocket",
    b"X-Injected: mine",
    b"X_Injected: mine",
    b" folded",
    b"0",
    b"5",
    b"",
];

/// Random changes, the same again for the same seed.
pub(crate) struct Mutations(u64);

impl Mutations {
    pub(crate) fn of(seed: u64) -> Mutations {
        Mutations(seed)
    }

    /// One of `bases` with one or two changes.
    pub(crate) fn next(&mut self, bases: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.pick(bases).clone();
        for _ in 0..=self.below(2) {
            match self.below(2) {
                0 => self.change_bytes(&mut bytes),
                _ => self.change_lines(&mut bytes),
            }
        }
        bytes
    }

    fn change_bytes(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        let end = bytes.len().min(at + self.below(3));
        let piece = self.pick(&PIECES).to_vec();
        match self.below(3) {
            0 => drop(bytes.splice(at..at, piece)),
            1 => drop(bytes.drain(at..end)),
            _ => drop(bytes.splice(at..end, piece)),
        }
    }

    fn change_lines(&mut self, bytes: &mut Vec<u8>) {
        let mut lines: Vec<Vec<u8>> =
            bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let line = [*self.pick(&LINES), b"\r\n"].concat();
        let (one, other) = (self.below(lines.len() + 1), self.below(lines.len() + 1));
        match (self.below(6), one < lines.len(), other < lines.len()) {
            (0, true, true) => lines.swap(one, other),
            (1, true, _) => drop(lines.remove(one)),
            (2, true, _) => lines.insert(one, lines[one].clone()),
            (3, true, _) => {
                let ending = *self.pick(&[&b"\n"[..], b"\r", b"\r\r\n", b"\n\r\n", b""]);
                let length = lines[one].trim_ascii_end().len();
                lines[one].truncate(length);
                lines[one].extend_from_slice(ending);
            }
            _ => lines.insert(one, line),
        }
        *bytes = lines.concat();
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("small");
        usize::try_from(self.number() % end).expect("small")
    }

    /// SplitMix64.
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
