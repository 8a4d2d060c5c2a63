//! Do values take the place of placeholders in bodies, with right framing, and nowhere else?

#[path = "bodies/content.rs"]
mod content;
#[path = "bodies/framing.rs"]
mod framing;
#[path = "bodies/hooks.rs"]
mod hooks;
#[path = "bodies/legs.rs"]
mod legs;
#[path = "bodies/refusals.rs"]
mod refusals;
#[path = "bodies/scene.rs"]
mod scene;
#[path = "bodies/slow_sources.rs"]
mod slow_sources;
#[path = "bodies/streams.rs"]
mod streams;
