//! Faults and maintenance of one GPU, per scope.

use gpuledger_domain::fact::{Account, Cause, Placement, State};
use gpuledger_domain::time::Instant;
use std::collections::BTreeSet;

/// One `unit.state` of the GPU.
pub(crate) struct StateFact<'a> {
    pub(crate) at: Instant,
    /// None: the whole GPU.
    pub(crate) scope: Option<Placement>,
    pub(crate) state: &'a State,
}

/// What one scope is in, over time.
pub(crate) struct Track {
    /// None: the whole GPU.
    pub(crate) scope: Option<Placement>,
    /// From when on, and in which account (none: working, or the tenant's own program), each until the next.
    said: Vec<(Instant, Option<Account>)>,
}

impl Track {
    /// The account at `at`: `fault`, `maintenance`, or none.
    pub(crate) fn at(&self, at: Instant) -> Option<Account> {
        self.said.iter().rev().find(|(from, _)| *from <= at).and_then(|(_, account)| *account)
    }

    /// Instants at which it can change.
    pub(crate) fn instants(&self) -> impl Iterator<Item = Instant> + '_ {
        self.said.iter().map(|(from, _)| *from)
    }
}

/// One track for each scope that `said`, in order of A-18, speaks of; the whole GPU first.
pub(crate) fn tracks(said: &[StateFact<'_>]) -> Vec<Track> {
    let scopes: BTreeSet<Option<Placement>> = said.iter().map(|f| f.scope).collect();
    scopes.into_iter().map(|scope| track(scope, said)).collect()
}

fn track(scope: Option<Placement>, said: &[StateFact<'_>]) -> Track {
    // An `ok` of the whole GPU clears every placement.
    let heard: Vec<&StateFact<'_>> =
        said.iter().filter(|f| f.scope == scope || (f.scope.is_none() && *f.state == State::Ok)).collect();
    let said =
        heard.iter().enumerate().map(|(n, fact)| (fact.at, account(fact, &heard[..n], &heard[n + 1..])));
    Track { scope, said: said.collect() }
}

/// The account from `fact` until the next one, given what was said of the scope before and after it. An unknown cause is what a
/// definite one says at its instant, or after it without an `ok` between.
fn account(fact: &StateFact<'_>, before: &[&StateFact<'_>], after: &[&StateFact<'_>]) -> Option<Account> {
    match fact.state {
        State::Ok => None,
        State::Maintenance => Some(Account::Maintenance),
        State::Fault(Cause::Unknown) => {
            let at_once = before.iter().rev().take_while(|f| f.at == fact.at && *f.state != State::Ok);
            let later = after.iter().take_while(|f| *f.state != State::Ok);
            at_once.chain(later).find_map(|f| definite(f.state)).unwrap_or(Some(Account::Fault))
        }
        State::Fault(cause) => of_cause(cause),
    }
}

fn definite(state: &State) -> Option<Option<Account>> {
    match state {
        State::Fault(cause) if *cause != Cause::Unknown => Some(of_cause(cause)),
        State::Fault(_) | State::Ok | State::Maintenance => None,
    }
}

/// The tenant's own program breaks nothing of the device.
fn of_cause(cause: &Cause) -> Option<Account> {
    (*cause != Cause::Application).then_some(Account::Fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(track: &[Track], seconds: i64) -> Vec<Option<Account>> {
        track.iter().map(|t| t.at(Instant::from_micros(seconds))).collect()
    }

    fn said<'a>(at: i64, scope: Option<Placement>, state: &'a State) -> StateFact<'a> {
        StateFact { at: Instant::from_micros(at), scope, state }
    }

    #[test]
    fn a_definite_cause_holds_from_the_start_of_the_unknown() {
        let (unknown, application) = (State::Fault(Cause::Unknown), State::Fault(Cause::Application));
        let before = tracks(&[said(10, None, &unknown)]);
        let after = tracks(&[said(10, None, &unknown), said(30, None, &application)]);
        assert_eq!(at(&before, 20), [Some(Account::Fault)]);
        assert_eq!(at(&after, 20), [None]);
    }

    #[test]
    fn an_ok_between_leaves_the_unknown_a_fault() {
        let (unknown, ok, application) =
            (State::Fault(Cause::Unknown), State::Ok, State::Fault(Cause::Application));
        let heard = [said(10, None, &unknown), said(20, None, &ok), said(30, None, &application)];
        assert_eq!(at(&tracks(&heard), 15), [Some(Account::Fault)]);
    }

    #[test]
    fn an_ok_of_the_gpu_clears_its_placements_and_a_state_of_the_gpu_does_not() {
        let place = Some(Placement { start: 0, size: 4 });
        let (hardware, ok) = (State::Fault(Cause::Hardware), State::Ok);
        let heard = [said(10, place, &hardware), said(20, None, &State::Maintenance), said(30, None, &ok)];
        let tracks = tracks(&heard);
        assert_eq!(at(&tracks, 25), [Some(Account::Maintenance), Some(Account::Fault)]);
        assert_eq!(at(&tracks, 30), [None, None]);
    }

    #[test]
    fn a_cause_at_the_time_of_an_unknown_holds_whichever_sorts_first() {
        let (unknown, application) = (State::Fault(Cause::Unknown), State::Fault(Cause::Application));
        for heard in [
            [said(10, None, &unknown), said(10, None, &application)],
            [said(10, None, &application), said(10, None, &unknown)],
        ] {
            assert_eq!(at(&tracks(&heard), 10), [None]);
        }
    }
}
