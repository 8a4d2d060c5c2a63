//! What stands in the head of a message, line by line?

use std::fmt;

use super::Malformed;

/// Far beyond what any test sends; a peer that never ends its head is stopped here.
const LONGEST: usize = 1024 * 1024;

/// One header or trailer line. Bytes above 0x7F stand as the characters U+0080 to U+00FF, so that
/// none is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// In the spelling of the wire.
    pub name: String,
    /// Without blanks around it.
    pub value: String,
}

/// The first line and the fields of a message.
#[derive(Clone, PartialEq, Eq)]
pub struct Head {
    /// Without its line end.
    pub start_line: String,
    /// In the order of the wire.
    pub fields: Vec<Field>,
    /// As received, to the empty line included.
    pub raw: Vec<u8>,
}

impl Head {
    /// The value of the one field of this name.
    ///
    /// # Panics
    /// When there are several: a test that expects one value must not miss the second.
    pub fn value(&self, name: &str) -> Option<&str> {
        let values = self.values(name);
        assert!(values.len() < 2, "{name} stands there {} times: {values:?}", values.len());
        values.first().copied()
    }

    /// The values of all fields of this name, in order.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let named = |field: &&Field| field.name.eq_ignore_ascii_case(name);
        self.fields.iter().filter(named).map(|field| field.value.as_str()).collect()
    }

    /// The head at the start of `bytes` and its length, once it is complete.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
        let seen = &bytes[..end.unwrap_or(bytes.len())];
        // Also before the end has come: after a bare LF it may never come.
        refuse_other_line_ends(seen)?;
        if seen.starts_with(b"\r\n") {
            return Err(Malformed("an empty line before the first line".to_owned()));
        }
        let Some(end) = end else {
            let short = bytes.len() <= LONGEST;
            return short.then_some(None).ok_or_else(|| Malformed("an endless head".to_owned()));
        };
        let text = latin1(&bytes[..end - 4]);
        let mut lines = text.split("\r\n");
        let start_line = lines.next().unwrap_or_default().to_owned();
        let fields = lines.map(Field::parse).collect::<Result<_, _>>()?;
        Ok(Some((Self { start_line, fields, raw: bytes[..end].to_vec() }, end)))
    }

    /// Method and target.
    pub fn request_line(&self) -> Result<(String, String), Malformed> {
        let fault = || Malformed(format!("request line {:?}", self.start_line));
        let [method, target, "HTTP/1.1"] = *self.start_line.split(' ').collect::<Vec<_>>() else {
            return Err(fault());
        };
        let is_target = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
        if !is_token(method) || target.is_empty() || !target.bytes().all(is_target) {
            return Err(fault());
        }
        match *self.values("host") {
            [host] if !host.is_empty() => Ok((method.to_owned(), target.to_owned())),
            ref hosts => Err(Malformed(format!("not one Host but {hosts:?}"))),
        }
    }

    /// Status and reason.
    pub(crate) fn status_line(&self) -> Result<(u16, String), Malformed> {
        let fault = || Malformed(format!("status line {:?}", self.start_line));
        let rest = self.start_line.strip_prefix("HTTP/1.1 ").ok_or_else(fault)?;
        let (digits, reason) = rest.split_once(' ').ok_or_else(fault)?;
        let status: u16 = digits.parse().map_err(|_| fault())?;
        if digits.len() != 3 || !(100..600).contains(&status) || !reason.bytes().all(is_text) {
            return Err(fault());
        }
        Ok((status, reason.to_owned()))
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.raw.escape_ascii())
    }
}

impl Field {
    pub(crate) fn parse(line: &str) -> Result<Self, Malformed> {
        let fault = || Malformed(format!("field line {line:?}"));
        // A folded line begins with a blank, which no token holds.
        let (name, value) = line.split_once(':').ok_or_else(fault)?;
        let value = value.trim_matches([' ', '\t']);
        if !is_token(name) || !value.chars().all(|character| is_text(character as u8)) {
            return Err(fault());
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

pub(crate) fn refuse_other_line_ends(bytes: &[u8]) -> Result<(), Malformed> {
    for (at, byte) in bytes.iter().enumerate() {
        let alone = match byte {
            b'\n' => at == 0 || bytes[at - 1] != b'\r',
            b'\r' => bytes.get(at + 1).is_some_and(|next| *next != b'\n'),
            _ => false,
        };
        if alone {
            return Err(Malformed(format!("a bare {} at byte {at}", (*byte).escape_ascii())));
        }
    }
    Ok(())
}

/// Each byte as the character of the same number.
pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// RFC 9110 5.6.2.
fn is_token(text: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// RFC 9110 5.5: visible, blank, tab, and the obsolete bytes above 0x7F.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7F)
}
