//! Where does an object belong, by its name alone?

/// An object, and where below the target it belongs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Object {
    /// As the bucket has it.
    pub(super) name: String,
    /// Relative, of ordinary parts only.
    path: String,
    /// It stands for a folder: its name ends in a slash.
    pub(super) is_folder: bool,
}

/// Why a name is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameError {
    #[error("a part of the name is empty")]
    Empty,
    #[error("a part of the name is `.` or `..`, which leads elsewhere")]
    Dots,
    #[error("the name has a NUL")]
    Nul,
}

impl Object {
    /// The object of this name below `prefix`; none where it only begins with the same letters
    /// (`data2/x` is not below `data`), or stands for the prefix itself as a folder.
    pub(super) fn of(name: &str, prefix: &str) -> Result<Option<Object>, NameError> {
        let below = match name.strip_prefix(prefix) {
            None => return Ok(None),
            Some("") => name.rsplit('/').next().unwrap_or(name),
            Some("/") if !prefix.is_empty() => return Ok(None),
            Some(rest) if prefix.is_empty() => rest,
            Some(rest) => match rest.strip_prefix('/') {
                Some(below) => below,
                None => return Ok(None),
            },
        };
        let (path, is_folder) = match below.strip_suffix('/') {
            Some(path) => (path, true),
            None => (below, false),
        };
        for part in path.split('/') {
            match part {
                "" => return Err(NameError::Empty),
                "." | ".." => return Err(NameError::Dots),
                _ if part.contains('\0') => return Err(NameError::Nul),
                _ => {}
            }
        }
        Ok(Some(Object { name: name.to_owned(), path: path.to_owned(), is_folder }))
    }
    /// The parts of its path.
    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        self.path.split('/')
    }

    /// Its last part, and the folders that lead there.
    pub(super) fn place(&self) -> (&str, impl Iterator<Item = &str>) {
        let (folders, name) = match self.path.rsplit_once('/') {
            Some((folders, name)) => (Some(folders), name),
            None => (None, self.path.as_str()),
        };
        (name, folders.into_iter().flat_map(|folders| folders.split('/')))
    }
}

/// As one segment of a path, or one value of a query: what RFC 3986 §2.3 leaves as it is, and
/// everything else as its bytes.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded += &format!("%{other:02X}"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str, prefix: &str) -> Option<String> {
        let object = Object::of(name, prefix).expect("a path")?;
        let end = if object.is_folder { "/" } else { "" };
        Some(format!("{}{end}", object.path))
    }

    #[test]
    fn is_put_below_the_target_as_it_lies_below_the_prefix() {
        for (name, prefix, expected) in [
            ("data/a.txt", "data", Some("a.txt")),
            ("data/sub/a.txt", "data", Some("sub/a.txt")),
            ("data/sub/a.txt", "data/sub", Some("a.txt")),
            ("data/sub/", "data", Some("sub/")),
            ("data/", "data", None),
            ("data2/a.txt", "data", None),
            ("database", "data", None),
            ("other", "data", None),
            ("models/one.bin", "models/one.bin", Some("one.bin")),
            ("a.txt", "", Some("a.txt")),
            ("sub/a b é.txt", "", Some("sub/a b é.txt")),
            ("...", "", Some("...")),
            ("..a/b..", "", Some("..a/b..")),
        ] {
            assert_eq!(path(name, prefix).as_deref(), expected, "{name} below {prefix}");
        }
    }

    #[test]
    fn has_a_name_in_a_folder() {
        let object = |name| Object::of(name, "").expect("a path").expect("an object");
        let (deep, top) = (object("a/b/c.txt"), object("c.txt"));
        let (name, folders) = deep.place();
        assert_eq!((name, folders.collect::<Vec<_>>()), ("c.txt", vec!["a", "b"]));
        let (name, folders) = top.place();
        assert_eq!((name, folders.count()), ("c.txt", 0));
        assert_eq!(deep.parts().collect::<Vec<_>>(), ["a", "b", "c.txt"]);
    }

    #[test]
    fn is_refused_where_it_would_lead_elsewhere() {
        for (name, prefix, error) in [
            ("../etc/passwd", "", NameError::Dots),
            ("data/../../etc/passwd", "data", NameError::Dots),
            ("data/..", "data", NameError::Dots),
            ("data/../", "data", NameError::Dots),
            ("data/./a", "data", NameError::Dots),
            ("data/..", "data/..", NameError::Dots),
            ("/etc/passwd", "", NameError::Empty),
            ("data//a", "data", NameError::Empty),
            ("data/a//", "data", NameError::Empty),
            ("data/a//b", "data", NameError::Empty),
            ("/", "", NameError::Empty),
            ("data/a\0b", "data", NameError::Nul),
        ] {
            assert_eq!(Object::of(name, prefix), Err(error), "{name} below {prefix}");
        }
    }

    #[test]
    fn is_named_in_a_url_by_one_segment() {
        assert_eq!(encoded("a/b c?é#%&.txt"), "a%2Fb%20c%3F%C3%A9%23%25%26.txt");
        assert_eq!(encoded("..-_~"), "..-_~");
    }
}
