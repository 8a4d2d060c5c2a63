//! Does an HTTP/2 peer that abuses the protocol cost more than itself?

#[path = "http2_attacks/by_client.rs"]
mod by_client;
#[path = "http2_attacks/by_origin.rs"]
mod by_origin;
#[path = "http2_attacks/crowd.rs"]
mod crowd;
#[path = "http2_attacks/faults.rs"]
mod faults;
#[path = "http2_attacks/scene.rs"]
mod scene;
