//! What do the `--set` flags say of a credential?

use serde_json::{Map, Value};

use super::value::SECRETS;
use crate::failure::Failure;

/// Fields and their values, without the secrets. No message repeats a value.
pub(super) fn read(flags: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut said = Map::new();
    for flag in flags {
        let (field, text) =
            flag.split_once('=').ok_or_else(|| Failure::usage("write --set FIELD=VALUE"))?;
        let value = value(field, text)?;
        let is_place = value.is_object();
        if SECRETS.iter().any(|(_, secrets)| secrets.contains(&field)) && !is_place {
            return Err(Failure::usage(format_args!(
                "{field} is secret: give it on stdin, with --value-file or at the prompt"
            )));
        }
        if said.insert(field.to_owned(), value).is_some() {
            return Err(Failure::usage(format_args!("--set {field} is given twice")));
        }
    }
    Ok(said)
}

fn value(field: &str, text: &str) -> Result<Value, Failure> {
    if text.starts_with(['[', '{']) {
        return serde_json::from_str(text)
            .map_err(|_| Failure::usage(format_args!("--set {field}: not valid JSON")));
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(flags: &[&str]) -> Result<Map<String, Value>, Failure> {
        read(&flags.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn reads_texts_lists_and_places_of_values() {
        let read =
            said(&["header_name=X-Key", r#"trusted_domains=["a.test"]"#, "prefix="]).unwrap();
        assert_eq!(read["header_name"], "X-Key");
        assert_eq!(read["trusted_domains"][0], "a.test");
        assert_eq!(read["prefix"], "");
        let place = said(&[r#"token={"from_file": "/run/token"}"#]).unwrap();
        assert_eq!(place["token"]["from_file"], "/run/token");
    }

    #[test]
    fn takes_no_secret_from_the_command_line_and_repeats_none() {
        for flags in [&["token=hunter2"][..], &["password=hunter2"], &["key=hunter2"], &["hunter2"]]
        {
            let refused = said(flags).unwrap_err();
            assert_eq!(refused.code(), 64);
            assert!(!refused.message().unwrap().contains("hunter2"));
        }
        assert!(said(&["prefix=a", "prefix=b"]).is_err());
        assert!(said(&["scopes=[1"]).is_err());
    }
}
