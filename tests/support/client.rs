//! How does a client speak to the gateway: as a person does, or byte by byte?

mod curl;
mod fault;
mod hello;
mod raw;

pub use curl::{Answer, Curl, CurlHead, RunningCurl};
pub use fault::TlsFault;
pub use hello::{ClientHello, Hello, PendingTls};
pub use raw::RawClient;
