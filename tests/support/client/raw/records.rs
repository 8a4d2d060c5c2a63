//! What does the gateway do with TLS that no library would send?

use std::io::Write;

use super::{Carrier, RawClient};

impl RawClient {
    /// Sends bytes below the TLS that it speaks, as they are. Whether they were still taken.
    ///
    /// # Panics
    /// Outside TLS.
    pub fn send_below_tls(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let Carrier::Tls(stream) = &mut self.carrier else { panic!("there is no TLS yet") };
        stream.sock.write_all(bytes.as_ref()).is_ok()
    }

    /// Sends KeyUpdate (RFC 8446 §4.6.3), and goes on with new keys. Whether it was still taken.
    ///
    /// # Panics
    /// Outside TLS 1.3.
    pub fn update_keys(&mut self) -> bool {
        let Carrier::Tls(stream) = &mut self.carrier else { panic!("there is no TLS yet") };
        stream.conn.refresh_traffic_keys().expect("TLS 1.3 has it");
        stream.flush().is_ok()
    }
}
