//! Whose everybody is who comes in by a listener?

use outgate_policy::EnvironmentId;
use outgate_proxy::{Environments, Ownership};

use crate::config::{ClientListener, EnvironmentSource, Way};
use crate::failure::Failure;

/// Whose a listener is, or why it may not start (SPEC 2).
///
/// A listener that other machines reach proves nothing: it starts only where its clients can be
/// known by their address, their interface or a token, and these are asked.
pub(crate) fn ownership(
    listener: &ClientListener,
    environments: &Environments,
    sources: &[EnvironmentSource],
) -> Result<Ownership, Failure> {
    let named = match &listener.environment {
        Some(id) => Some(named(id, environments, sources)?),
        None => None,
    };
    if listener.bind.is_local() {
        return Ok(match named {
            Some(id) => Ownership::Named(id),
            None if listener.implied => Ownership::Only,
            None => Ownership::OnlyIfUnprovable,
        });
    }
    // No client says a token there.
    let asked = matches!(listener.way, Way::Explicit | Way::Socks);
    if environments.are_clients_provable(named.as_ref(), asked) {
        return Ok(named.map_or(Ownership::Nobody, Ownership::Named));
    }
    let ways = if asked { ", an interface or a token_file" } else { " or an interface" };
    Err(Failure::start(format_args!(
        "listener {}: anybody could come in: give its environment source_addresses{ways}, or \
         listen on 127.0.0.1",
        listener.bind
    )))
}

/// A folder may bring it later; who comes before is refused.
fn named(
    id: &str,
    environments: &Environments,
    sources: &[EnvironmentSource],
) -> Result<EnvironmentId, Failure> {
    let comes = sources.iter().any(|source| matches!(source, EnvironmentSource::Directory(_)));
    let parsed = EnvironmentId::parse(id).ok();
    parsed.filter(|id| comes || environments.get(id).is_some()).ok_or_else(|| {
        Failure::input(format_args!("[[listener]] environment `{id}`: there is none of this id"))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::tests::{no_credentials, roots};
    use super::super::{InForce, address_rules};
    use super::*;
    use crate::cli::{OperatorArgs, ServeArgs};
    use crate::config::Settings;
    use crate::reload::any_may_be_named;
    use crate::surroundings::Surroundings;

    /// Whose the listeners of `text` are, an operator's file beside `one.json` and `two.json`.
    fn owners(text: &str, flags: ServeArgs) -> Result<Vec<Ownership>, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, text) in [("one.json", "{}"), ("two.json", "{}"), ("token", "0123456789")] {
            fs::write(path(name), text).unwrap();
        }
        fs::write(path("outgate.toml"), text).unwrap();
        let (config, state_dir) = (Some(path("outgate.toml")), Some(path("state")));
        let args = ServeArgs {
            operator: OperatorArgs { config, state_dir, ..OperatorArgs::default() },
            ..flags
        };
        let settings = Settings::resolve(&args, &Surroundings::default()).unwrap();
        let rules = address_rules(&settings.addresses, &settings.environments, &[])?;
        let (_, loaded) =
            InForce::load(&settings, &rules, roots(), no_credentials(), any_may_be_named())?;
        let whose = |one| ownership(one, &loaded.environments, &settings.environments);
        settings.listeners.iter().map(whose).collect()
    }

    fn listener(bind: &str, more: &str) -> String {
        format!("[[listener]]\nkind = \"explicit\"\nbind = \"{bind}\"\n{more}\n")
    }

    fn environment(file: &str, more: &str) -> String {
        format!("[[environment]]\nfile = \"{file}\"\n{more}\n")
    }

    fn of_file(parts: &[String]) -> Result<Vec<Ownership>, Failure> {
        owners(&parts.concat(), ServeArgs::default())
    }

    fn named(id: &str) -> Ownership {
        Ownership::Named(EnvironmentId::parse(id).unwrap())
    }

    #[test]
    fn a_local_listener_is_whose_it_says_or_the_only_one_s() {
        let one = environment("one.json", "");
        assert_eq!(of_file(std::slice::from_ref(&one)).unwrap(), [Ownership::Only]);
        for bind in ["127.0.0.1:0", "[::1]:0", "unix:one.sock"] {
            let unnamed = of_file(&[one.clone(), listener(bind, "")]);
            assert_eq!(unnamed.unwrap(), [Ownership::OnlyIfUnprovable]);
            let said = of_file(&[one.clone(), listener(bind, "environment = \"one\"")]);
            assert_eq!(said.unwrap(), [named("one")]);
        }
        let flag = ServeArgs { listen: Some("127.0.0.1:0".parse().unwrap()), ..Default::default() };
        assert_eq!(owners(&one, flag).unwrap(), [Ownership::Only]);
    }

    #[test]
    fn a_listener_names_an_environment_that_is_there_or_that_a_folder_may_bring() {
        let three = listener("127.0.0.1:0", "environment = \"three\"");
        let missing = of_file(&[environment("one.json", ""), three.clone()]);
        assert_eq!(missing.unwrap_err().code(), 1);
        let folder = "[[environment]]\ndirectory = \".\"\n".to_owned();
        assert_eq!(of_file(&[folder, three]).unwrap(), [named("three")]);
    }

    #[test]
    fn a_listener_that_others_reach_needs_a_way_to_know_its_clients() {
        for bind in ["0.0.0.0:0", "[::]:0", "10.0.0.1:3128", "[::ffff:10.0.0.1]:3128"] {
            let open = listener(bind, "environment = \"one\"");
            let refused = of_file(&[environment("one.json", ""), open.clone()]).unwrap_err();
            assert_eq!(refused.code(), 70, "{bind}");
            assert!(refused.message().unwrap().contains(bind), "{refused:?}");
            for known in [
                "token_file = \"token\"",
                "source_addresses = [\"10.0.0.2\"]",
                "interface = \"veth-one\"",
            ] {
                let environment = environment("one.json", known);
                assert_eq!(of_file(&[environment.clone(), open.clone()]).unwrap(), [named("one")]);
                let unnamed = of_file(&[environment, listener(bind, "")]);
                assert_eq!(unnamed.unwrap(), [Ownership::Nobody]);
            }
            // Who is led there, or asks for a name, says no token.
            for kind in ["transparent", "dns"] {
                let open = open.replace("explicit", kind);
                let by_token = environment("one.json", "token_file = \"token\"");
                assert_eq!(of_file(&[by_token, open.clone()]).unwrap_err().code(), 70);
                let seen = environment("one.json", "interface = \"veth-one\"");
                assert_eq!(of_file(&[seen, open]).unwrap(), [named("one")]);
            }
            // The other one's token lets nobody in as this one.
            let two = environment("two.json", "token_file = \"token\"");
            assert!(of_file(&[environment("one.json", ""), two, open]).is_err());
        }
    }
}
