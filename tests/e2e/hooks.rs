//! Are tool calls asked about where, how and as whom they must be?

#[path = "hooks/door.rs"]
mod door;
#[path = "hooks/examples.rs"]
mod examples;
#[path = "hooks/fresh.rs"]
mod fresh;
#[path = "hooks/running.rs"]
mod running;
#[path = "hooks/scene.rs"]
mod scene;
#[path = "hooks/urls.rs"]
mod urls;
