//! How are header fields written, and read from a peer that may keep no table?
//!
//! RFC 7541, as much of it as a test needs: every field is written as a literal, so that nothing is
//! corrected on the way; what is read has no dynamic table, because the client announced a size of
//! 0, and no other characters than those of headers.

/// RFC 7541 appendix A, as far as answers use it.
const STATIC: [(usize, &str, &str); 22] = [
    (8, ":status", "200"),
    (9, ":status", "204"),
    (10, ":status", "206"),
    (11, ":status", "304"),
    (12, ":status", "400"),
    (13, ":status", "404"),
    (14, ":status", "500"),
    (22, "allow", ""),
    (24, "cache-control", ""),
    (26, "content-encoding", ""),
    (28, "content-length", ""),
    (31, "content-type", ""),
    (33, "date", ""),
    (34, "etag", ""),
    (44, "last-modified", ""),
    (46, "location", ""),
    (48, "proxy-authenticate", ""),
    (53, "retry-after", ""),
    (54, "server", ""),
    (55, "set-cookie", ""),
    (57, "transfer-encoding", ""),
    (61, "www-authenticate", ""),
];

/// RFC 7541 appendix B: a length, its first code, and the characters that have codes in order.
const CODES: [(u32, u32, &str); 5] = [
    (5, 0x0, "012aceiost"),
    (6, 0x14, " %-./3456789=A_bdfghlmnpru"),
    (7, 0x5c, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, 0xf8, "&*,;XZ"),
    (10, 0x3f8, "!\"()?"),
];

/// Fields as literals that are never indexed, in this order and spelling.
pub fn header_block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0x10);
        for text in [name, value] {
            integer(&mut block, text.len());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A length in 7 bits, continued as RFC 7541 §5.1 has it.
fn integer(to: &mut Vec<u8>, number: usize) {
    let Some(mut rest) = number.checked_sub(127) else {
        to.push(u8::try_from(number).expect("less than 127"));
        return;
    };
    to.push(127);
    while rest >= 128 {
        to.push(0x80 | u8::try_from(rest % 128).expect("less than 128"));
        rest /= 128;
    }
    to.push(u8::try_from(rest).expect("less than 128"));
}

/// Names and values of a block.
pub(super) fn read(block: &[u8]) -> Option<Vec<(String, String)>> {
    let mut reader = Reader(block);
    let mut fields = Vec::new();
    while let Some(first) = reader.0.first().copied() {
        match first {
            0x80.. => {
                let (name, value) = known(reader.integer(7)?)?;
                fields.push((name.to_owned(), value.to_owned()));
            }
            // A new size of the table, which stays empty.
            0x20..0x40 => drop(reader.integer(5)?),
            _ => {
                let bits = if first < 0x20 { 4 } else { 6 };
                let name = match reader.integer(bits)? {
                    0 => reader.text()?,
                    index => known(index)?.0.to_owned(),
                };
                fields.push((name, reader.text()?));
            }
        }
    }
    Some(fields)
}

fn known(index: usize) -> Option<(&'static str, &'static str)> {
    STATIC.iter().find(|(at, ..)| *at == index).map(|(_, name, value)| (*name, *value))
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn integer(&mut self, bits: u32) -> Option<usize> {
        let most = (1 << bits) - 1;
        let mut number = usize::from(self.byte()?) & most;
        let mut shift = 0;
        while number >= most {
            let more = usize::from(self.byte()?);
            number += (more & 127) << shift;
            shift += 7;
            if more < 128 {
                break;
            }
        }
        Some(number)
    }

    fn text(&mut self) -> Option<String> {
        let coded = *self.0.first()? >= 0x80;
        let length = self.integer(7)?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        if coded { decode(text) } else { Some(String::from_utf8_lossy(text).into_owned()) }
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
}

fn decode(coded: &[u8]) -> Option<String> {
    let bits = coded.iter().flat_map(|byte| (0..8).rev().map(move |at| u32::from(byte >> at & 1)));
    let (mut text, mut code, mut length) = (String::new(), 0, 0);
    for bit in bits {
        (code, length) = (code << 1 | bit, length + 1);
        let found = CODES.iter().find_map(|(of, first, characters)| {
            let at = usize::try_from(code.checked_sub(*first)?).ok()?;
            (*of == length).then(|| characters.chars().nth(at)).flatten()
        });
        if let Some(character) = found {
            text.push(character);
            (code, length) = (0, 0);
        }
    }
    // The rest of the last byte is ones (§5.2).
    (length < 8 && code == (1 << length) - 1).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let long = "v".repeat(70_000);
        let fields = [(":status", "403"), ("outgate-reason", "name_mismatch"), ("x", &long)];
        let read = read(&header_block(&fields)).expect("a block");
        let read: Vec<_> = read.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        assert_eq!(read, fields);
    }

    /// RFC 7541 C.4.1 and C.6.1.
    #[test]
    fn reads_the_examples_of_the_rfc() {
        let coded = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(decode(&coded).as_deref(), Some("www.example.com"));
        let status = [0x48, 0x82, 0x64, 0x02];
        assert_eq!(read(&status), Some(vec![(":status".to_owned(), "302".to_owned())]));
    }
}
