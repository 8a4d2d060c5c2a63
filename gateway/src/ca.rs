//! Who is the CA that clients have to trust, and how do they come to trust it?

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use outgate_certs::{Authority, OriginRoots};

use crate::cli::{CaCommand, OperatorArgs, ServeArgs};
use crate::config::{CaFiles, Settings};
use crate::console::{complain, say};
use crate::failure::Failure;
use crate::state_dir;
use crate::surroundings::Surroundings;
use crate::trust_files::{TrustFiles, TrustPaths};
use crate::trust_variables::TRUST_VARIABLES;

/// `outgate ca …`
pub(crate) fn run(command: CaCommand, surroundings: &Surroundings) -> Result<(), Failure> {
    match command {
        CaCommand::Show(operator) => show(&settings(operator, surroundings)?),
        CaCommand::Export(operator) => export(&settings(operator, surroundings)?),
        CaCommand::New(operator) => new(&settings(operator, surroundings)?),
        CaCommand::Env(operator) => env(&settings(operator, surroundings)?),
    }
}

/// The CA that `settings` name: the operator's, or the state folder's, made now if there is none.
pub(crate) fn authority(settings: &Settings) -> Result<Authority, Failure> {
    match &settings.ca {
        // What the operator brought is input; what we keep ourselves is not.
        Some(CaFiles { certificate, key }) => {
            Authority::load(certificate, key).map_err(Failure::input)
        }
        None => Authority::open_or_create(&settings.state_dir).map_err(Failure::start),
    }
}

/// The file with the CA's certificate; it is used from other folders too.
pub(crate) fn certificate_path(settings: &Settings) -> Result<PathBuf, Failure> {
    match &settings.ca {
        Some(CaFiles { certificate, .. }) => absolute(certificate),
        None => absolute(&settings.state_dir.join("ca.pem")),
    }
}

/// What origins are verified with: the system's roots and the operator's.
pub(crate) fn origin_roots(settings: &Settings) -> Result<OriginRoots, Failure> {
    let mut roots = match OriginRoots::system() {
        Ok(roots) => roots,
        // A machine without roots of its own is fine where the operator names some.
        Err(_) if !settings.origin_roots.is_empty() => OriginRoots::none(),
        Err(error) => return Err(Failure::start(error)),
    };
    for problem in roots.problems() {
        tracing::warn!(%problem, "a trusted root of the system can't be used");
    }
    for path in &settings.origin_roots {
        roots.add_pem(path).map_err(Failure::input)?;
    }
    Ok(roots)
}

fn settings(operator: OperatorArgs, surroundings: &Surroundings) -> Result<Settings, Failure> {
    let args = ServeArgs { operator, ..ServeArgs::default() };
    let settings = Settings::resolve(&args, surroundings).map_err(Failure::input)?;
    state_dir::open(&settings.state_dir).map_err(Failure::start)?;
    Ok(settings)
}

fn show(settings: &Settings) -> Result<(), Failure> {
    let authority = authority(settings)?;
    say(format_args!("certificate  {}", certificate_path(settings)?.display()))?;
    say(format_args!("SHA-256      {}", authority.fingerprint()))?;
    say(format_args!("valid until  {}", date(authority.not_after())))
}

fn export(settings: &Settings) -> Result<(), Failure> {
    say(authority(settings)?.certificate_pem().trim_end())
}

fn new(settings: &Settings) -> Result<(), Failure> {
    if settings.ca.is_some() {
        return Err(Failure::input(
            "the CA is your own ([ca] in the operator's file): replace its files",
        ));
    }
    let authority = Authority::replace(&settings.state_dir).map_err(Failure::start)?;
    say(format_args!("SHA-256      {}", authority.fingerprint()))?;
    say(format_args!("valid until  {}", date(authority.not_after())))?;
    complain("next: restart `outgate serve`, which still issues from the old CA;");
    complain("then give clients the new one: `outgate ca export`, or `outgate ca env`");
    Ok(())
}

fn env(settings: &Settings) -> Result<(), Failure> {
    let files = TrustFiles::new(&authority(settings)?, &origin_roots(settings)?);
    let folder = absolute(&settings.state_dir)?;
    let written = files.replace_in(&folder);
    written.map_err(|error| Failure::start(format_args!("{}: {error}", folder.display())))?;
    // The operator's own certificate is already a file that clients can be pointed at.
    let paths = TrustPaths { ca: certificate_path(settings)?, ..TrustPaths::in_folder(&folder) };
    // A person sees who reads what; a shell gets lines that survive `eval $(…)` without quotes.
    let explain = io::stdout().is_terminal();
    for variable in TRUST_VARIABLES {
        let line = format!("export {}={}", variable.name, quoted(&variable.value.text(&paths)));
        match explain {
            true => say(format_args!("{line}  # {}", variable.readers))?,
            false => say(line)?,
        }
    }
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::start(format_args!("{}: {error}", path.display())))
}

fn date(time: SystemTime) -> String {
    match jiff::Timestamp::try_from(time) {
        Ok(time) => time.strftime("%Y-%m-%d").to_string(),
        // Beyond the year 9999.
        Err(_) => "for ever".to_owned(),
    }
}

/// A word that every POSIX shell reads as `text`.
fn quoted(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-,+:@%".contains(&byte);
    match text.bytes().all(plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("'{}'", text.replace('\'', r"'\''"))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn quotes_what_a_shell_would_read_otherwise() {
        assert_eq!(quoted("/var/lib/outgate/ca.pem"), "/var/lib/outgate/ca.pem");
        assert_eq!(quoted("/a b/$c"), "'/a b/$c'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn says_a_date_as_a_date() {
        let day = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * 365);
        assert_eq!(date(day), "1971-01-01");
    }

    #[test]
    fn the_state_folder_s_ca_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let operator =
            OperatorArgs { state_dir: Some(folder.path().into()), ..OperatorArgs::default() };
        let settings = settings(operator, &Surroundings::default()).unwrap();
        let first = authority(&settings).unwrap().fingerprint();
        assert_eq!(authority(&settings).unwrap().fingerprint(), first);
        new(&settings).unwrap();
        assert_ne!(authority(&settings).unwrap().fingerprint(), first);
    }

    #[test]
    fn an_operator_s_ca_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let operator =
            OperatorArgs { state_dir: Some(folder.path().into()), ..OperatorArgs::default() };
        let mut settings = settings(operator, &Surroundings::default()).unwrap();
        settings.ca = Some(CaFiles { certificate: "c.pem".into(), key: "k.pem".into() });
        assert_eq!(new(&settings).unwrap_err().code(), 1);
        assert!(!folder.path().join("ca.pem").exists());
    }

    #[test]
    fn the_bundle_holds_more_than_the_ca() {
        let folder = tempfile::tempdir().unwrap();
        let operator =
            OperatorArgs { state_dir: Some(folder.path().into()), ..OperatorArgs::default() };
        let mut settings = settings(operator, &Surroundings::default()).unwrap();
        let ca = authority(&settings).unwrap().certificate_pem().to_owned();
        // Any certificate serves as a root here; this one needs no network and no system.
        settings.origin_roots = vec![folder.path().join("ca.pem")];
        env(&settings).unwrap();
        let bundle = std::fs::read_to_string(folder.path().join("ca-bundle.pem")).unwrap();
        assert!(bundle.starts_with(ca.trim_end()));
        assert!(bundle.matches("BEGIN CERTIFICATE").count() > 1);
    }
}
