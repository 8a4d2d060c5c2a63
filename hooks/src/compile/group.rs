//! Is this group right: rules for events?

use outgate_policy::{Document, Object, Place, Report, did_you_mean, one_of, quoted};

use super::{handler, items, on_failure, readable_on_failure};
use crate::hook_set::{GroupState, OnFailure, Phase, Rule, Rules, ToolKind};
use crate::matcher::Matcher;

/// Each rule may hold a compiled expression, and the file may come from the sandbox.
const MAX_RULES: usize = 256;

/// Each handler may hold a URL and headers.
const MAX_HANDLERS: usize = 1024;

const EVENTS: [Phase; 2] = [Phase::PreToolExecution, Phase::PostToolExecution];
const FIELDS: [&str; 5] =
    ["enabled", "pre_tool_execution", "post_tool_execution", "on_failure", "applies_to"];
const RULE_FIELDS: [&str; 2] = ["matcher", "hooks"];

/// What the groups of one file have together.
#[derive(Default)]
pub(super) struct Read {
    rules: usize,
    handlers: usize,
}

/// Reads it, after what was `read` of the same file.
pub(super) fn read(
    group: &Document,
    place: &Place<'_>,
    read: &mut Read,
    report: &mut Report,
) -> GroupState {
    let mut findings = Findings::default();
    let rules = read_fields(group, place, read, &mut findings);
    let disabled = findings.disabling.has_problems();
    report.append(findings.disabling);
    report.append(findings.other);
    match rules {
        // Its author switched it off, whatever else is wrong with it.
        _ if is_switched_off(group) => GroupState::Off,
        Some(rules) if !disabled => GroupState::Active(rules),
        _ => GroupState::Invalid {
            on_failure: readable_on_failure(group),
            kinds: readable_kinds(group),
        },
    }
}

/// What disables the group, and what leaves it working.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) disabling: Report,
    pub(super) other: Report,
}

fn is_switched_off(group: &Document) -> bool {
    field(group, "enabled") == Some(&Document::Bool(false))
}

fn read_fields(
    group: &Document,
    place: &Place<'_>,
    read: &mut Read,
    findings: &mut Findings,
) -> Option<Rules> {
    let object = Object::read(group, place, &mut findings.disabling)?;
    check_unknown(&object, findings);
    if object.get("enabled").is_some() {
        object.flag("enabled", &mut findings.disabling);
    }
    let failing = on_failure(&object, &mut findings.disabling).unwrap_or_default();
    let kinds = read_kinds(&object, findings);
    // Before any of them costs the time of a compilation.
    if let Err(message) = read.make_room(&object) {
        findings.disabling.problem(place, message);
        return None;
    }
    let [pre, post] = EVENTS.map(|phase| read_event(&object, phase, failing, findings));
    let own = pre.len() + post.len();
    if own == 0 && !findings.disabling.has_problems() {
        findings.other.warning(place, "has no rule for any event, so it never runs");
    }
    Some(Rules { kinds, pre, post })
}

impl Read {
    /// Counts the rules and handlers of a group; refuses those that are one too many.
    fn make_room(&mut self, group: &Object<'_>) -> Result<(), String> {
        let list = |document: Option<&'_ Document>| match document {
            Some(Document::Array(items)) => items.len(),
            _ => 0,
        };
        let (rules, handlers) = (self.rules, self.handlers);
        for event in EVENTS.map(|phase| group.get(phase.as_str())) {
            self.rules += list(event);
            let Some(Document::Array(rules)) = event else {
                continue;
            };
            self.handlers += rules.iter().map(|rule| list(field(rule, "hooks"))).sum::<usize>();
        }
        if self.rules > rules && self.rules > MAX_RULES {
            let message = "rules; make one matcher of several";
            return Err(format!("the file has more than {MAX_RULES} {message}"));
        }
        if self.handlers > handlers && self.handlers > MAX_HANDLERS {
            let message = "handlers; let one command do the work of several";
            return Err(format!("the file has more than {MAX_HANDLERS} {message}"));
        }
        Ok(())
    }
}

fn field<'d>(document: &'d Document, key: &str) -> Option<&'d Document> {
    match document {
        Document::Object(fields) => {
            fields.iter().find(|(name, _)| name == key).map(|(_, value)| value)
        }
        _ => None,
    }
}

/// An unknown field is only warned of. One that was meant to be an event is a gate that would
/// never close: a misspelt name, or rules under another name.
fn check_unknown(object: &Object<'_>, findings: &mut Findings) {
    let events = EVENTS.map(Phase::as_str);
    for key in object.unknown(&FIELDS) {
        let place = object.place.key(key);
        let near = did_you_mean(key, &FIELDS);
        if let Some(event) = near.filter(|near| events.contains(near)) {
            findings.disabling.problem(&place, format!("unknown event, did you mean {event}?"));
        } else if object.get(key).is_some_and(looks_like_rules) {
            let message = format!("unknown event; there are {}", one_of(&events));
            findings.disabling.problem(&place, message);
        } else if let Some(field) = near {
            findings.other.warning(&place, format!("unknown field, did you mean {field}?"));
        } else {
            findings.other.warning(&place, "unknown field");
        }
    }
}

fn looks_like_rules(document: &Document) -> bool {
    let is_rule = |item| RULE_FIELDS.iter().any(|key| field(item, key).is_some());
    matches!(document, Document::Array(items) if items.iter().any(is_rule))
}

fn read_kinds(object: &Object<'_>, findings: &mut Findings) -> Vec<ToolKind> {
    if object.get("applies_to").is_none() {
        return vec![ToolKind::Builtin];
    }
    object.strings("applies_to", &mut findings.disabling, |text| {
        let known = ToolKind::NAMES.iter().find(|(word, _)| *word == text);
        known
            .map(|(_, kind)| *kind)
            .ok_or_else(|| format!("write {}", one_of(&ToolKind::NAMES.map(|(word, _)| word))))
    })
}

fn readable_kinds(group: &Document) -> Vec<ToolKind> {
    let mut unused = Findings::default();
    let read = Object::read(group, &Place::Root, &mut unused.disabling)
        .map(|object| read_kinds(&object, &mut unused));
    read.filter(|kinds| !kinds.is_empty()).unwrap_or_else(|| vec![ToolKind::Builtin])
}

fn read_event(
    object: &Object<'_>,
    phase: Phase,
    failing: OnFailure,
    findings: &mut Findings,
) -> Vec<Rule> {
    let key = phase.as_str();
    let place = object.place.key(key);
    let rules = items(object, key, &mut findings.disabling).unwrap_or_default();
    let read = |(index, rule)| {
        let at = format!("{key}[{index}]");
        read_rule(rule, &at, &place.index(index), failing, findings)
    };
    rules.iter().enumerate().filter_map(read).collect()
}

/// `at` is its place within the group, for outcomes.
fn read_rule(
    rule: &Document,
    at: &str,
    place: &Place<'_>,
    failing: OnFailure,
    findings: &mut Findings,
) -> Option<Rule> {
    let object = Object::read(rule, place, &mut findings.disabling)?;
    object.warn_of_unknown(&RULE_FIELDS, &mut findings.other);
    let text = object.string("matcher", &mut findings.disabling).unwrap_or_default();
    let matcher = Matcher::parse(text).unwrap_or_else(|error| {
        let message = format!("{}: matches no tool: {error}", quoted(text));
        findings.other.problem(&place.key("matcher"), message);
        Matcher::Nothing
    });
    let place = place.key("hooks");
    if object.get("hooks").is_none() {
        findings.disabling.problem(&place, "required: a list of handlers");
    }
    let hooks = items(&object, "hooks", &mut findings.disabling)?;
    let handlers = hooks.iter().enumerate().filter_map(|(index, handler)| {
        let at = format!("{at}.hooks[{index}]");
        handler::read(handler, at, &place.index(index), failing, findings)
    });
    Some(Rule { matcher, handlers: handlers.collect() })
}
