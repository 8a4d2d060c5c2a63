//! What is in force of one file, whatever has become of it since?

use outgate_policy::Problem;

use super::Change;
use super::memory::Remembered;
use super::reading::Found;
use crate::compile::{Compiled, compile};
use crate::hook_set::{HookFile, OnFailure};

/// One file through time.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// What the last look found; `None` before the first.
    seen: Option<Found>,
    state: InForce,
    /// Whether the first look is over, or was in an earlier process.
    started: bool,
    changed: bool,
    new_text: Option<Remembered>,
}

#[derive(Debug, Default)]
enum InForce {
    #[default]
    Nothing,
    Good(HookFile),
    /// Never good: fails on every event, also when it is gone, until it is mended.
    Broken(OnFailure),
}

/// What is wrong with a text, or worth a look.
type Problems = Vec<Problem>;

impl Known {
    /// What an earlier process knew.
    pub(super) fn recall(remembered: Option<&Remembered>) -> Known {
        let Some(remembered) = remembered else {
            return Known::default();
        };
        let seen = match remembered {
            Remembered::Absent => Found::Absent,
            Remembered::Refused(why) => Found::Refused(why.clone()),
            Remembered::Text(text) => Found::Text(text.clone()),
        };
        let state = match &seen {
            Found::Text(text) => compile(text).map_or_else(
                |unreadable| InForce::Broken(unreadable.on_failure),
                |compiled| InForce::Good(compiled.file),
            ),
            Found::Refused(_) => InForce::Broken(OnFailure::Allow),
            Found::Absent => InForce::Nothing,
        };
        Known { seen: Some(seen), state, started: true, ..Known::default() }
    }

    /// Takes in what is there now; says what is new about it.
    pub(super) fn update(&mut self, found: Found, pin: bool) -> Option<(Change, Problems)> {
        if self.seen.as_ref() == Some(&found) {
            return None;
        }
        let first = !std::mem::replace(&mut self.started, true);
        self.seen = Some(found.clone());
        if pin && !first {
            return Some((Change::Pinned, Vec::new()));
        }
        if pin {
            // Also what can't be read: the next process is to fail on it too.
            self.new_text = Some(match &found {
                Found::Absent => Remembered::Absent,
                Found::Text(text) => Remembered::Text(text.clone()),
                Found::Refused(why) => Remembered::Refused(why.clone()),
            });
        }
        match found {
            Found::Absent => match &self.state {
                InForce::Good(_) => Some((Change::KeptVanished, Vec::new())),
                InForce::Nothing | InForce::Broken(_) => None,
            },
            Found::Refused(why) => Some(self.spoilt(OnFailure::Allow, vec![Problem::new("", why)])),
            Found::Text(text) => Some(match compile(&text) {
                Ok(compiled) => self.loaded(text, compiled),
                Err(unreadable) => self.spoilt(unreadable.on_failure, unreadable.problems),
            }),
        }
    }

    /// Whether it was ever looked at.
    pub(super) fn is_seen(&self) -> bool {
        self.seen.is_some()
    }

    /// What is in force of it.
    pub(super) fn file(&self) -> Option<&HookFile> {
        match &self.state {
            InForce::Good(file) => Some(file),
            InForce::Nothing | InForce::Broken(_) => None,
        }
    }

    /// Whether it fails on every event.
    pub(super) fn broken(&self) -> Option<OnFailure> {
        match self.state {
            InForce::Broken(on_failure) => Some(on_failure),
            InForce::Nothing | InForce::Good(_) => None,
        }
    }

    /// Whether another thing is in force than before.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// What a later process should know.
    pub(super) fn take_new_text(&mut self) -> Option<Remembered> {
        self.new_text.take()
    }

    fn loaded(&mut self, text: String, compiled: Compiled) -> (Change, Problems) {
        self.state = InForce::Good(compiled.file);
        self.changed = true;
        self.new_text = Some(Remembered::Text(text));
        let problems = compiled.problems.into_iter().chain(compiled.warnings).collect();
        (Change::Loaded, problems)
    }

    fn spoilt(&mut self, on_failure: OnFailure, problems: Problems) -> (Change, Problems) {
        if self.file().is_some() {
            return (Change::KeptBroken, problems);
        }
        // Said once, `deny` stays until the file is mended: it would otherwise be lifted by
        // whoever can spoil the file a second time.
        let on_failure = match self.broken() {
            Some(OnFailure::Deny) => OnFailure::Deny,
            Some(OnFailure::Allow) | None => on_failure,
        };
        self.state = InForce::Broken(on_failure);
        self.changed = true;
        (Change::Broken, problems)
    }
}
