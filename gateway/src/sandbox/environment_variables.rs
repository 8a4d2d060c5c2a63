//! Which variables does the command get?
//!
//! Few of the caller's: an environment is where people keep tokens. What the environment file says
//! counts more than the variables that make clients trust the CA, and these more than what is kept
//! by name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use outgate_policy::EnvValue;
use thiserror::Error;

use crate::surroundings::Variables;
use crate::trust_files::TrustPaths;
use crate::trust_variables::TRUST_VARIABLES;

/// What every program counts on, and what says how a person reads; `LC_*` beside them.
const KEPT: [&str; 7] = ["PATH", "HOME", "USER", "SHELL", "TERM", "LANG", "TZ"];

/// Why a command can't have the variables that were asked for.
#[derive(Debug, PartialEq, Error)]
pub(crate) enum VariableError {
    #[error(
        "--keep-env {0}: no proxy leads out of the sandbox; the gateway is reached without one, so \
         leave it out"
    )]
    Proxy(String),
}

/// All of them, each name once. Of those that the environment file gives, the ones that would name
/// a proxy are left out: [`proxies_in`] tells of them.
pub(crate) fn variables(
    caller: &Variables,
    kept: &[String],
    env: &[(String, EnvValue)],
    trust: &TrustPaths,
) -> Result<Vec<(OsString, OsString)>, VariableError> {
    if let Some(proxy) = kept.iter().find(|name| is_proxy(name)) {
        return Err(VariableError::Proxy(proxy.clone()));
    }
    let passes = |name: &OsStr| {
        let name = name.to_string_lossy();
        KEPT.contains(&&*name) || name.starts_with("LC_") || kept.iter().any(|it| *it == name)
    };
    let mut all: BTreeMap<OsString, OsString> =
        caller.iter().filter(|(name, _)| passes(name)).cloned().collect();
    for variable in TRUST_VARIABLES {
        all.insert(variable.name.into(), variable.value.text(trust).into());
    }
    for (name, value) in env.iter().filter(|(name, _)| !is_proxy(name)) {
        match value {
            EnvValue::Plain(text) => all.insert(name.into(), text.into()),
            // Until it stands for something, the variable is better absent than wrong.
            EnvValue::Credential(_) => all.remove(OsStr::new(name)),
        };
    }
    Ok(all.into_iter().collect())
}

/// The names in `env` that no sandbox gets.
pub(crate) fn proxies_in(env: &[(String, EnvValue)]) -> impl Iterator<Item = &str> {
    env.iter().map(|(name, _)| name.as_str()).filter(|name| is_proxy(name))
}

/// `http_proxy`, `NO_PROXY`, `npm_config_https_proxy`, `npm_config_noproxy` and their like.
fn is_proxy(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("_proxy") || name.ends_with("noproxy")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn caller(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    fn paths() -> TrustPaths {
        TrustPaths::in_folder(Path::new("/run/outgate"))
    }

    fn given(
        caller: &Variables,
        kept: &[&str],
        env: &[(&str, &str)],
    ) -> Result<BTreeMap<String, String>, VariableError> {
        let kept: Vec<String> = kept.iter().map(|name| (*name).to_owned()).collect();
        let plain = |text: &str| EnvValue::Plain(text.to_owned());
        let env: Vec<_> =
            env.iter().map(|(name, value)| ((*name).to_owned(), plain(value))).collect();
        let text = |text: OsString| text.into_string().unwrap();
        let all = variables(caller, &kept, &env, &paths())?;
        Ok(all.into_iter().map(|(name, value)| (text(name), text(value))).collect())
    }

    #[test]
    fn passes_what_every_program_counts_on_and_nothing_else() {
        let caller = caller(&[
            ("PATH", "/bin"),
            ("HOME", "/home/u"),
            ("USER", "u"),
            ("SHELL", "/bin/sh"),
            ("TERM", "xterm"),
            ("LANG", "C"),
            ("LC_ALL", "C"),
            ("TZ", "UTC"),
            ("AWS_SECRET_ACCESS_KEY", "hunter2"),
            ("SSH_AUTH_SOCK", "/tmp/x"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
            ("LD_PRELOAD", "/x.so"),
            ("OUTGATE_STORE_KEY", "hunter2"),
        ]);
        let all = given(&caller, &[], &[]).unwrap();
        let trust = |name: &&String| TRUST_VARIABLES.iter().any(|it| it.name == name.as_str());
        let own: Vec<_> = all.keys().filter(|name| !trust(name)).collect();
        assert_eq!(own, ["HOME", "LANG", "LC_ALL", "PATH", "SHELL", "TERM", "TZ", "USER"]);
    }

    #[test]
    fn keeps_what_is_named() {
        let caller = caller(&[("MODE", "x"), ("MODE2", "y")]);
        let all = given(&caller, &["MODE", "ABSENT"], &[]).unwrap();
        assert_eq!(all.get("MODE").map(String::as_str), Some("x"));
        assert!(!all.contains_key("MODE2") && !all.contains_key("ABSENT"));
    }

    #[test]
    fn no_proxy_variable_passes() {
        let names = ["http_proxy", "HTTPS_PROXY", "All_Proxy", "no_proxy", "npm_config_noproxy"];
        for name in names {
            let caller = caller(&[(name, "http://127.0.0.1:3128")]);
            assert!(!given(&caller, &[], &[]).unwrap().contains_key(name), "{name}");
            assert_eq!(
                given(&caller, &[name], &[]).unwrap_err(),
                VariableError::Proxy(name.to_owned())
            );
            assert!(!given(&caller, &[], &[(name, "x")]).unwrap().contains_key(name), "{name}");
        }
        let env = [("FTP_PROXY", "x"), ("A", "y")]
            .map(|(name, text)| (name.to_owned(), EnvValue::Plain(text.to_owned())));
        assert_eq!(proxies_in(&env).collect::<Vec<_>>(), ["FTP_PROXY"]);
    }

    #[test]
    fn the_environment_file_has_the_last_word() {
        let caller = caller(&[("PATH", "/bin"), ("SSL_CERT_FILE", "/caller.pem")]);
        let all = given(&caller, &["SSL_CERT_FILE"], &[]).unwrap();
        assert_eq!(all["SSL_CERT_FILE"], "/run/outgate/ca-bundle.pem");
        let own = [("PATH", "/own"), ("SSL_CERT_FILE", "/own.pem")];
        let all = given(&caller, &["SSL_CERT_FILE"], &own).unwrap();
        assert_eq!((&*all["PATH"], &*all["SSL_CERT_FILE"]), ("/own", "/own.pem"));
    }

    #[test]
    fn has_every_trust_variable() {
        let all = given(&caller(&[]), &[], &[]).unwrap();
        for variable in TRUST_VARIABLES {
            assert_eq!(all[variable.name], variable.value.text(&paths()), "{}", variable.name);
        }
    }
}
