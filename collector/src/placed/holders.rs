//! Who holds what, and what of it was said.

use super::Placement;
use super::unit::Unit;
use crate::clock::Stamp;
use gpuledger_domain::share::Share;
use gpuledger_wire::bodies::{AllocationPlaced, Runtime};
use gpuledger_wire::text::Name;
use std::collections::BTreeMap;

/// A holder unseen for so long is forgotten: a day, in microseconds. One that comes back is said again, which counts once.
const FORGET_US: u64 = 24 * 3600 * 1_000_000;

/// By what an allocation is addressed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// A pod, by UID.
    Pod(Name),
    /// A Slurm job, by number.
    Job(Name),
}

/// A unit in a holder's hand.
#[derive(Clone, Debug)]
struct Hold {
    share: Option<Share>,
    first_us: u64,
    last_us: u64,
    is_said: bool,
}

#[derive(Clone, Debug)]
struct Hand {
    holds: BTreeMap<Unit, Hold>,
    last: Stamp,
}

/// All holders of the node.
#[derive(Debug, Default)]
pub(super) struct Holders {
    hands: BTreeMap<Holder, Hand>,
}

impl Holders {
    pub(super) fn hold(&mut self, now: Stamp, holder: Holder, unit: Unit, share: Option<Share>) {
        let hand = self.hands.entry(holder).or_insert_with(|| Hand { holds: BTreeMap::new(), last: now });
        hand.last = now;
        let us = now.monotonic_us;
        let hold =
            hand.holds.entry(unit).or_insert(Hold { share, first_us: us, last_us: us, is_said: false });
        hold.last_us = us;
        hold.share = share.or(hold.share);
    }

    /// The facts that are due: of each holder with a unit that was not said and has been held for long enough, and of each that left before.
    pub(super) fn due(&mut self, now: Stamp, settle_us: u64) -> Vec<Placement> {
        self.hands.retain(|_, hand| now.monotonic_us.saturating_sub(hand.last.monotonic_us) < FORGET_US);
        self.hands.iter_mut().filter_map(|(holder, hand)| hand.say(holder, now, settle_us)).collect()
    }
}

impl Hand {
    fn say(&mut self, holder: &Holder, now: Stamp, settle_us: u64) -> Option<Placement> {
        let is_gone = self.last.monotonic_us < now.monotonic_us;
        let is_due =
            |hold: &Hold| !hold.is_said && (is_gone || now.monotonic_us - hold.first_us >= settle_us);
        if !self.holds.values().any(is_due) {
            return None;
        }
        let last_us = self.last.monotonic_us;
        // What it holds now, and what it let go before it could be said.
        self.holds.retain(|_, hold| hold.last_us == last_us || !hold.is_said);
        let units = self.holds.iter().map(|(unit, hold)| unit.placed(hold.share)).collect();
        self.holds.values_mut().for_each(|hold| hold.is_said = true);
        Some(Placement {
            at: self.last.real,
            body: AllocationPlaced { allocation: None, runtime: Some(holder.runtime()), units },
        })
    }
}

impl Holder {
    fn runtime(&self) -> Runtime {
        match self {
            Self::Pod(uid) => Runtime { pod_uid: Some(uid.clone()), slurm_job: None },
            Self::Job(number) => Runtime { pod_uid: None, slurm_job: Some(number.clone()) },
        }
    }
}
