//! Health: is the process alive, can it take work, and which part says no.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Health of a process, made of its parts. Cheap to clone; clones are the same health.
///
/// Alive means that a restart would not help. Ready means that every part that was named has reported ready since;
/// a process that shuts down is never ready.
#[derive(Clone, Debug, Default)]
pub struct Health {
    state: Arc<RwLock<State>>,
}

#[derive(Debug, Default)]
struct State {
    parts: BTreeMap<&'static str, Condition>,
    ending: bool,
}

/// What a part says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Not yet: connecting, catching up.
    Starting,
    /// Doing its work.
    Ready,
    /// Out of service for now and trying; the text says why.
    Waiting(String),
    /// Broken for good: only a restart helps; the text says why.
    Dead(String),
}

/// The answer to a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The answer.
    pub ok: bool,
    /// Why not: part and reason, sorted by part; empty when `ok`.
    pub faults: Vec<(String, String)>,
}

impl Health {
    /// Names a part that must become ready, and hands out the handle by which it reports.
    pub fn part(&self, name: &'static str) -> Part {
        let part = Part { name, health: self.clone() };
        part.set(Condition::Starting);
        part
    }

    /// The process is about to end: send it no more work.
    pub fn ending(&self) {
        self.write().ending = true;
    }

    /// Whether the process lives.
    pub fn live(&self) -> Report {
        self.report(|condition| match condition {
            Condition::Dead(why) => Some(why.clone()),
            Condition::Starting | Condition::Ready | Condition::Waiting(_) => None,
        })
    }

    /// Whether the process can take work.
    pub fn ready(&self) -> Report {
        let mut report = self.report(|condition| match condition {
            Condition::Ready => None,
            Condition::Starting => Some("starting".to_owned()),
            Condition::Waiting(why) | Condition::Dead(why) => Some(why.clone()),
        });
        if self.state.read().unwrap_or_else(PoisonError::into_inner).ending {
            report.ok = false;
            report.faults.push(("process".to_owned(), "shutting down".to_owned()));
        }
        report
    }

    fn report(&self, fault: impl Fn(&Condition) -> Option<String>) -> Report {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let named = |(name, condition): (&&str, &Condition)| Some(((*name).to_owned(), fault(condition)?));
        let faults: Vec<_> = state.parts.iter().filter_map(named).collect();
        Report { ok: faults.is_empty(), faults }
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handle of one part.
#[derive(Clone, Debug)]
pub struct Part {
    name: &'static str,
    health: Health,
}

impl Part {
    /// Reports the part's condition.
    pub fn set(&self, condition: Condition) {
        self.health.write().parts.insert(self.name, condition);
    }

    /// Reports that the part does its work.
    pub fn ready(&self) {
        self.set(Condition::Ready);
    }

    /// Reports that the part is out of service for now.
    pub fn waiting(&self, why: impl ToString) {
        self.set(Condition::Waiting(why.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_needs_every_part_and_names_those_that_are_not() {
        let health = Health::default();
        let (kafka, postgres) = (health.part("kafka"), health.part("postgres"));
        postgres.ready();
        kafka.waiting("no broker");
        let expected = vec![("kafka".to_owned(), "no broker".to_owned())];
        assert_eq!(health.ready(), Report { ok: false, faults: expected });
        assert!(health.live().ok, "a part that waits is alive");
        kafka.ready();
        assert!(health.ready().ok);
    }

    #[test]
    fn a_new_part_is_not_ready() {
        let health = Health::default();
        let _part = health.part("ledger");
        assert_eq!(health.ready().faults, [("ledger".to_owned(), "starting".to_owned())]);
    }

    #[test]
    fn a_dead_part_asks_for_a_restart() {
        let health = Health::default();
        health.part("kafka").set(Condition::Dead("fenced".to_owned()));
        assert!(!health.live().ok);
    }

    #[test]
    fn a_process_that_ends_lives_but_takes_no_work() {
        let health = Health::default();
        health.ending();
        assert!(health.live().ok && !health.ready().ok);
    }
}
