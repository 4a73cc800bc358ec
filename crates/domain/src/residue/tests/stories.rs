//! Random histories: both evaluators say the same of every grant and slice, and everything hard occurs often enough.

use super::naive::verdicts;
use super::*;
use std::collections::BTreeSet;

/// How many stories: a second or two in a build with checks.
const STORIES: u64 = 8_000;
/// The last second of a story.
const LAST: i64 = 24;

/// A small generator with a fixed seed, so that a failure comes back.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn second(&mut self) -> i64 {
        i64::try_from(self.roll(u64::try_from(LAST).unwrap())).unwrap()
    }

    fn placement(&mut self) -> Option<Placement> {
        let places = [None, place(0, 4), place(0, 2), place(1, 1), place(2, 2), place(3, 1)];
        places[usize::try_from(self.roll(6)).unwrap()]
    }

    fn tenant(&mut self) -> TenantId {
        TenantId::new(["acme", "bolt", "cora", "dyne"][usize::try_from(self.roll(4)).unwrap()])
    }

    fn hold(&mut self, n: u64) -> Hold {
        let (start, length) = (self.second(), 1 + self.second() / 3);
        let tenant = self.tenant();
        let mut hold =
            hold(&format!("a-{n}"), tenant.as_str(), self.placement(), start, (start + length).min(LAST));
        hold.shared = self.roll(4) == 0;
        if self.roll(5) == 0 && hold.end > at(start + 1) {
            hold.owners.push((at(start + 1), self.tenant()));
        }
        hold
    }

    fn scrub(&mut self, n: u64) -> Scrub {
        let start = self.second();
        let mut scrub = scrub(&format!("s-{n}"), None, start, start + self.second() / 6);
        scrub.slices = Slices::of(self.placement(), 4);
        scrub.evidence = match self.roll(10) {
            0 => evidence(ScrubResult::Failed, true),
            1 => evidence(ScrubResult::Incomplete, true),
            2 => evidence(ScrubResult::Passed, false),
            3 => ScrubEvidence { bytes_covered: 5, ..scrub.evidence },
            4 | 5 => evidence(ScrubResult::Skipped, false),
            _ => scrub.evidence,
        };
        scrub
    }

    fn story(&mut self) -> (History, Rules) {
        let mut history = bare(4);
        history.holds = (0..2 + self.roll(4)).map(|n| self.hold(n)).collect();
        history.holds.retain(|hold| hold.end > hold.start);
        history.scrubs = (0..self.roll(6)).map(|n| self.scrub(n)).collect();
        let causes = [Cause::Boot, Cause::Moved, Cause::Returned];
        let unknown = |dice: &mut Self| Unknown {
            at: at(dice.second()),
            cause: causes[usize::try_from(dice.roll(3)).unwrap()],
        };
        history.unknowns = (0..self.roll(6) / 4).map(|_| unknown(self)).collect();
        history.lifted = (0..self.roll(4) / 2)
            .map(|_| Lifted { at: at(self.second()), slices: Slices::of(self.placement(), 4) })
            .collect();
        let group = BTreeSet::from([TenantId::new("acme"), TenantId::new("dyne")]);
        let trust_groups = if self.roll(2) == 0 { vec![group] } else { Vec::new() };
        (in_order(history), Rules { trust_groups, ..Rules::default() })
    }
}

#[test]
fn two_evaluators_agree_on_random_histories_r_1_r_2_r_3_r_4() {
    let mut dice = Dice(7);
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for story in 0..STORIES {
        let (history, rules) = dice.story();
        let naive = verdicts(&history, &rules, LAST);
        let mut ours = BTreeMap::new();
        for judged in history.judge(&rules, Instant::MIN) {
            assert!(judged.not_known.is_empty(), "story {story}");
            for (slice, verdict) in &judged.slices {
                ours.insert((judged.hold.allocation.clone(), *slice), word(verdict));
            }
        }
        assert_eq!(ours, naive, "story {story}: {history:#?} {rules:?}");
        for word in ours.into_values() {
            let kind = if word.ends_with("still there") { "still there".to_owned() } else { word };
            *seen.entry(kind).or_default() += 1;
        }
    }
    let hard = [
        "baseline",
        "clean",
        "beside",
        "trusted",
        "skipped",
        "missing",
        "violation of acme",
        "violation of bolt",
        "violation of a scrub",
        "violation of unknown",
        "still there",
    ];
    for kind in hard {
        assert!(seen.get(kind).copied().unwrap_or_default() >= 100, "{kind} is too rare: {seen:?}");
    }
}

#[test]
fn a_verdict_does_not_depend_on_what_lies_before_what_is_known_r_2() {
    let mut dice = Dice(11);
    let (mut same, mut unknown) = (0, 0);
    for _ in 0..STORIES / 4 {
        let (history, rules) = dice.story();
        let from = at(dice.second());
        let mut later = history.clone();
        later.known_from = from;
        later.holds.retain(|hold| hold.end >= from);
        later.scrubs.retain(|scrub| scrub.finished_at >= from);
        later.unknowns.retain(|unknown| unknown.at >= from);
        later.lifted.retain(|lifted| lifted.at >= from);
        let whole = history.judge(&rules, from);
        let part = later.judge(&rules, from);
        assert_eq!(whole.len(), part.len());
        for (whole, part) in whole.iter().zip(&part) {
            for (slice, verdict) in &part.slices {
                assert_eq!(
                    Some(word(verdict)),
                    whole.slices.get(slice).map(word),
                    "{history:#?} from {from}"
                );
                same += 1;
            }
            unknown += part.not_known.each().count();
        }
    }
    assert!(same >= 500 && unknown >= 500, "{same} {unknown}");
}
