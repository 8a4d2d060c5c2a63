//! Do stored secrets reach the origins that they are for, and nobody else?

#[path = "credentials/api.rs"]
mod api;
#[path = "credentials/command.rs"]
mod command;
#[path = "credentials/oauth2.rs"]
mod oauth2;
#[path = "credentials/placeholders.rs"]
mod placeholders;
#[path = "credentials/scene.rs"]
mod scene;
#[path = "credentials/secrecy.rs"]
mod secrecy;
#[path = "credentials/wire.rs"]
mod wire;
