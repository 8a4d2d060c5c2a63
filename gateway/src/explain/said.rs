//! How is a verdict told, to a person and to a program?

use outgate_policy::{Denial, EnvironmentId};
use serde::Serialize;
use serde_json::{Value, json};

use super::Allowed;
use crate::console::Style;

pub(super) fn as_text(verdict: &Result<Allowed, Denial>, document: &Value, style: Style) -> String {
    match verdict {
        Ok(verdict) => {
            let mut text =
                format!("{}   {}", style.good("allow"), entry(verdict.entry(), document));
            let injected = verdict.injected();
            if !injected.is_empty() {
                text += &format!("\ninject  {}", injected.join(", "));
            }
            for id in verdict.credentials() {
                text += &format!("\ninject  the credential {id}");
            }
            let own = met_otherwise(verdict.entry(), document);
            if !own.is_empty() {
                text += &format!("\norigin  met by its own {}", own.join(", "));
            }
            if let Some(why) = verdict.not_looked_up() {
                text += &format!("\nstore   not known to have it: {why}");
            }
            if let Some(field) = verdict.unread() {
                text +=
                    &format!("\nunread  {field}: no request is seen, whatever its method and path");
            }
            text
        }
        Err(denial) => {
            let code = denial.reason.code();
            let mut text = format!("{}    {code}: {}", style.bad("deny"), denial.message);
            if let Some(fix) = &denial.fix {
                text += &format!("\nfix     add {fix} to network.allowlist");
            }
            text
        }
    }
}

pub(super) fn as_json<D: Serialize>(
    verdict: &Result<Allowed, Denial>,
    id: &EnvironmentId,
    domain: impl FnOnce(usize) -> Option<D>,
) -> Value {
    let id = id.as_str();
    match verdict {
        Ok(verdict) => json!({
            "verdict": "allow",
            "environment_id": id,
            "entry": verdict.entry(),
            "domain": domain(verdict.entry()),
            "injected": verdict.injected(),
            "credentials": verdict.credentials().iter().map(|id| id.as_str()).collect::<Vec<_>>(),
            "credentials_not_looked_up": verdict.not_looked_up(),
            "unread": verdict.unread(),
        }),
        Err(denial) => json!({
            "verdict": "deny",
            "environment_id": id,
            "reason": denial.reason.code(),
            "message": denial.message,
            "fix": denial.fix,
        }),
    }
}

fn entry(index: usize, document: &Value) -> String {
    match domain(index, document) {
        Some(domain) => format!("network.allowlist[{index}] {domain}"),
        None => "the file has no network: every public destination on ports 80 and 443".to_owned(),
    }
}

pub(super) fn domain(index: usize, document: &Value) -> Option<&str> {
    document.get("network")?.get("allowlist")?.get(index)?.get("domain")?.as_str()
}

/// The fields of the entry's `origin`.
fn met_otherwise(index: usize, document: &Value) -> Vec<&str> {
    let origin = document["network"]["allowlist"][index]["origin"].as_object();
    origin.into_iter().flat_map(|origin| origin.keys().map(String::as_str)).collect()
}
