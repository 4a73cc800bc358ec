//! Billing states: a span of a unit that is held is cut where its allocation's state changes. Parts of its time stay what they are.

use super::super::allocations::Allocation;
use crate::ids::AllocationId;
use crate::time::{Instant, Window};
use crate::usage::UsageSpan;
use std::collections::BTreeMap;

/// The spans, those of holders each with the state that was said last at or before its start. Whom a pool serves has no state.
pub(super) fn cut(spans: Vec<UsageSpan>, allocations: &[Allocation<'_>]) -> Vec<UsageSpan> {
    let said = allocations.iter().filter(|allocation| !allocation.states.is_empty());
    let changes: BTreeMap<&AllocationId, Vec<(Instant, &str)>> =
        said.map(|a| (a.id, changes(&a.states))).collect();
    let parts = |span: UsageSpan| match changes.get(&span.allocation).filter(|_| span.held) {
        Some(changes) => with_states(&span, changes),
        None => vec![span],
    };
    spans.into_iter().flat_map(parts).collect()
}

/// Of several states at one instant the last counts; one that goes on changes nothing.
fn changes<'a>(said: &[(Instant, &'a str)]) -> Vec<(Instant, &'a str)> {
    let mut changes: Vec<(Instant, &str)> = Vec::new();
    for (at, state) in said {
        changes.pop_if(|(before, _)| before == at);
        if changes.last().is_none_or(|(_, before)| before != state) {
            changes.push((*at, state));
        }
    }
    changes
}

fn with_states(span: &UsageSpan, changes: &[(Instant, &str)]) -> Vec<UsageSpan> {
    let ends = changes.iter().map(|(at, _)| *at).chain([Instant::MAX]);
    let starts =
        [(Instant::MIN, None)].into_iter().chain(changes.iter().map(|(at, state)| (*at, Some(*state))));
    let part = |((from, state), until): ((Instant, Option<&str>), Instant)| {
        let part = span.cut(Window::new(from, until)?)?;
        Some(UsageSpan { state: state.map(str::to_owned), ..part })
    };
    starts.zip(ends).filter_map(part).collect()
}
