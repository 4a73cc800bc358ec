//! What stands in no table of geometry: taken from what the inventory says, and flagged.

use super::devices::{Device, Devices};
use super::free::compute_slices_of;
use crate::finding::{Finding, Findings, Kind};
use crate::geometry::Geometry;
use crate::time::Instant;
use std::collections::BTreeMap;

/// Until when something was seen; none: it still is.
type Seen = (Instant, Option<Instant>);

/// Flags GPUs with MIG on whose model, or one of whose profiles, is in no table, for as long as inventories show it.
pub(super) fn note_unknown(devices: &Devices<'_>, geometry: &Geometry, findings: &mut Findings) {
    for (gpu, device) in devices.iter() {
        for (detail, (since, until)) in unknown(device, geometry) {
            findings.add(Finding {
                kind: Kind::UnknownProfile,
                subject: gpu.to_string(),
                since,
                until,
                detail,
            });
        }
    }
}

/// What is unknown of one GPU, in words, with its times.
fn unknown(device: &Device<'_>, geometry: &Geometry) -> BTreeMap<String, Seen> {
    let sightings = device.sightings();
    let ends = sightings.iter().skip(1).map(|next| Some(next.at)).chain([None]);
    // An inventory comes each minute: each thing is put in words once.
    let mut models: BTreeMap<&str, Seen> = BTreeMap::new();
    let mut profiles: BTreeMap<(&str, &str, Option<u8>), Seen> = BTreeMap::new();
    for (sighting, until) in sightings.iter().zip(ends).filter(|(s, _)| s.listed.mig) {
        let model = sighting.listed.model.as_str();
        let since = sighting.at;
        match geometry.of(model) {
            None => widen(models.entry(model), since, until),
            Some(known) => {
                for instance in &sighting.listed.instances {
                    if known.profile(&instance.profile).is_none() {
                        let entry = profiles.entry((model, &instance.profile, instance.compute_slices));
                        widen(entry, since, until);
                    }
                }
            }
        }
    }
    let models = models.into_iter().map(|(model, seen)| {
        let detail = format!(
            "{model} is in no table of MIG geometry: its slices and instances are those of the inventory, and free slices \
             beside them are idle, since nobody can say that nothing fits there"
        );
        (detail, seen)
    });
    let profiles = profiles.into_iter().map(|((model, profile, listed), seen)| {
        let slices = compute_slices_of(geometry, model, profile, listed);
        let by = if listed.is_some() { "the inventory" } else { "its name" };
        (
            format!(
                "{model} has no profile {profile} in the table: by {by} it takes {slices} compute slices"
            ),
            seen,
        )
    });
    models.chain(profiles).collect()
}

fn widen<K: Ord>(
    entry: std::collections::btree_map::Entry<'_, K, Seen>,
    since: Instant,
    until: Option<Instant>,
) {
    entry.and_modify(|(_, end)| *end = until).or_insert((since, until));
}
