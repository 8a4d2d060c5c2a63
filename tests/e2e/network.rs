//! Does a network's gateway, set up as `docs/network-gateway.md` says, hold what is behind it?
//!
//! The page's own commands build the gateway's machine and the sandboxes, with the rule files of
//! `deploy/nft` as they stand; what leaves is judged at the far end of the gateway's cable.

/// The same promise for each kind of sandbox.
macro_rules! for_every_kind {
    ($($promise:ident),* $(,)?) => {
        $(mod $promise {
            use super::*;

            #[test]
            fn veth() {
                isolated(|| super::$promise(Kind::Veth));
            }

            #[test]
            fn container() {
                isolated(|| super::$promise(Kind::Container));
            }

            #[test]
            fn vm() {
                isolated(|| super::$promise(Kind::Vm));
            }
        })*
    };
}

#[path = "network/attacks.rs"]
mod attacks;
#[path = "network/governed.rs"]
mod governed;
#[path = "network/held.rs"]
mod held;
#[path = "network/scene.rs"]
mod scene;

use outgate_tests::prelude::*;

use scene::{Kind, Scene};

const API: &str = "api.example.com";
const API4: &str = "11.22.33.44";
const API6: &str = "2a00:1122:3344::44";
const EVIL: &str = "evil.example.test";
const EVIL4: &str = "11.22.33.66";
const EVIL6: &str = "2a00:1122:3344::66";
