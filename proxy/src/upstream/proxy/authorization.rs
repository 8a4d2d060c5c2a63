//! What does the upstream proxy want to know of us?

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// A user and a password, as `Basic` has them (RFC 7617). For the proxy alone, never for an origin.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAuthorization(Arc<Zeroizing<String>>);

impl ProxyAuthorization {
    /// Of `user:password`.
    pub fn basic(user_and_password: &[u8]) -> ProxyAuthorization {
        ProxyAuthorization(Arc::new(Zeroizing::new(STANDARD.encode(user_and_password))))
    }

    /// The header, with its line end. All the room at once: a text that grows leaves copies behind.
    pub(super) fn write(&self, head: &mut Zeroizing<String>) {
        const NAME: &str = "Proxy-Authorization: Basic ";
        let mut whole =
            Zeroizing::new(String::with_capacity(head.len() + NAME.len() + self.0.len() + 4));
        for part in [head.as_str(), NAME, &self.0, "\r\n"] {
            whole.push_str(part);
        }
        *head = whole;
    }
}

impl fmt::Debug for ProxyAuthorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxyAuthorization(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_once_and_never_shown() {
        let authorization = ProxyAuthorization::basic(b"user:secret");
        let mut head = Zeroizing::new("CONNECT a:1 HTTP/1.1\r\n".to_owned());
        authorization.write(&mut head);
        let wanted = "CONNECT a:1 HTTP/1.1\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n";
        assert_eq!(head.as_str(), wanted);
        assert_eq!(format!("{authorization:?}"), "ProxyAuthorization(…)");
    }
}
