//! Where instances stand that NVML, for lack of privilege, says nothing of: by exclusion, where only one arrangement is possible.
//!
//! No two instances share a memory slice, and each stands where its profile may. An instance that is in the same place in every arrangement
//! of those that are seen stands there. One that is not seen takes room from them and so only leaves fewer arrangements: what holds for
//! all of them holds for the true one.

use super::Profiles;
use crate::absent::Absent;
use crate::values::{MigInstance, Placement};
use std::collections::{BTreeMap, BTreeSet};

/// Gives each instance whose place was refused the only one it can have. The others keep their refusal.
pub(super) fn exclude(instances: &mut [MigInstance], profiles: &Profiles) {
    if instances.iter().all(|instance| instance.placement != Err(Absent::NoPermission)) {
        return;
    }
    let known: BTreeMap<u32, Vec<Placement>> =
        instances.iter().map(|instance| (instance.gpu_instance, possible(instance, profiles))).collect();
    let found = only_places(known);
    for instance in instances.iter_mut().filter(|it| it.placement == Err(Absent::NoPermission)) {
        if let Some(place) = found.get(&instance.gpu_instance) {
            instance.placement = Ok(*place);
        }
    }
}

/// Where an instance may stand; empty where that is not known.
fn possible(instance: &MigInstance, profiles: &Profiles) -> Vec<Placement> {
    match (instance.placement, &instance.profile) {
        (Ok(place), _) => vec![place],
        (Err(Absent::NoPermission), Ok(profile)) => profiles.places_of(profile).to_vec(),
        (Err(_), _) => Vec::new(),
    }
}

/// The instances that stand in one place in every arrangement, by their ids.
fn only_places(known: BTreeMap<u32, Vec<Placement>>) -> BTreeMap<u32, Placement> {
    let mut instances: Vec<(u32, Vec<Placement>)> = known.into_iter().collect();
    for (_, places) in &mut instances {
        places.sort_unstable();
    }
    instances.retain(|(_, places)| !places.is_empty());
    instances.sort_by(|(_, one), (_, other)| one.cmp(other));
    let lists: Vec<&[Placement]> = instances.iter().map(|(_, places)| &places[..]).collect();
    let mut seen = vec![BTreeSet::new(); lists.len()];
    arrange(&lists, &mut Vec::new(), &mut |arrangement| {
        seen.iter_mut().zip(arrangement).for_each(|(places, place)| {
            places.insert(*place);
        });
    });
    let alone = |at: usize| lists.iter().filter(|list| **list == lists[at]).count() == 1;
    instances
        .iter()
        .enumerate()
        .filter(|(at, _)| alone(*at))
        .filter_map(|(at, (id, _))| Some((*id, *seen[at].first().filter(|_| seen[at].len() == 1)?)))
        .collect()
}

/// Every arrangement without a slice in two instances. Those with the same places are interchangeable and looked at in one order only: that
/// keeps the number small, and says nothing of which of them is where.
fn arrange(lists: &[&[Placement]], chosen: &mut Vec<Placement>, found: &mut impl FnMut(&[Placement])) {
    let at = chosen.len();
    let Some(list) = lists.get(at) else { return found(chosen) };
    let after = at.checked_sub(1).filter(|before| lists[*before] == *list).map(|before| chosen[before]);
    for place in list.iter().filter(|place| after.is_none_or(|after| after < **place)) {
        if chosen.iter().all(|taken| is_apart(*taken, *place)) {
            chosen.push(*place);
            arrange(lists, chosen, found);
            chosen.pop();
        }
    }
}

fn is_apart(one: Placement, other: Placement) -> bool {
    let end = |place: Placement| place.start.saturating_add(place.size);
    end(one) <= other.start || end(other) <= one.start
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places of the profiles of boards with eight memory slices.
    fn places(profile: &str) -> Vec<Placement> {
        let (starts, size): (&[u32], u32) = match profile {
            "1g" => (&[0, 1, 2, 3, 4, 5, 6], 1),
            "1g double" => (&[0, 2, 4, 6], 2),
            "2g" => (&[0, 2, 4], 2),
            "3g" => (&[0, 4], 4),
            "4g" => (&[0], 4),
            _ => (&[], 0),
        };
        starts.iter().map(|start| Placement { start: *start, size }).collect()
    }

    /// The starts of instances of these profiles, and of one whose place was read; none: not to be told.
    fn starts(profiles: &[&str], read: Option<Placement>) -> Vec<Option<u32>> {
        let of = profiles.iter().map(|profile| places(profile)).chain(read.map(|place| vec![place]));
        let known: BTreeMap<u32, Vec<Placement>> = (0..).zip(of).collect();
        let found = only_places(known);
        (0..).zip(profiles).map(|(id, _)| found.get(&id).map(|place| place.start)).collect()
    }

    #[test]
    fn what_one_leaves_is_where_the_other_is() {
        assert_eq!(starts(&["3g", "4g"], None), [Some(4), Some(0)]);
        assert_eq!(starts(&["1g", "4g", "2g"], None), [Some(6), Some(0), Some(4)]);
        assert_eq!(starts(&["4g"], None), [Some(0)]);
    }

    #[test]
    fn more_than_one_arrangement_tells_only_what_they_share() {
        assert_eq!(starts(&["3g"], None), [None]);
        assert_eq!(starts(&["3g", "2g"], None), [None, None]);
        assert_eq!(starts(&["4g", "1g double"], None), [Some(0), None], "4:2 or 6:2");
        assert_eq!(starts(&["4g", "2g", "1g double"], None), [Some(0), Some(4), Some(6)]);
    }

    #[test]
    fn alike_ones_cannot_be_told_apart_though_only_one_picture_is_possible() {
        assert_eq!(starts(&["3g", "3g"], None), [None, None]);
        assert_eq!(starts(&["1g"; 7], None), [None; 7]);
        assert_eq!(starts(&["4g", "1g", "1g", "1g"], None), [Some(0), None, None, None]);
    }

    #[test]
    fn a_place_that_was_read_takes_room() {
        let read = Placement { start: 0, size: 4 };
        assert_eq!(starts(&["3g"], Some(read)), [Some(4)]);
    }

    #[test]
    fn an_unknown_profile_takes_no_room_and_what_cannot_be_tells_nothing() {
        assert_eq!(starts(&["other", "4g"], None), [None, Some(0)]);
        assert_eq!(starts(&["4g", "4g"], None), [None, None]);
        assert_eq!(starts(&["3g", "3g", "1g"], None), [None, None, None], "no arrangement at all");
    }
}
