//! The only pod on each unit, as far as there is one.

use super::unit::{NodeDevice, Unit, Unresolved, resolve};
use crate::metrics::Holder;
use crate::pods::{Life, Listing};
use std::collections::{BTreeMap, BTreeSet};

/// A unit as metrics name it: UUID of the GPU, and GPU instance.
type Place = (String, Option<u32>);

/// Who was given something of a unit.
#[derive(Debug, Default)]
struct Takers<'l> {
    /// `NAMESPACE/NAME`.
    pods: BTreeSet<&'l str>,
    /// Containers that were given the unit itself; none where only parts of it were given.
    containers: BTreeSet<&'l str>,
}

/// Who alone was given each unit, among the pods that live: exactly one pod, and its container where exactly one was given it. Units of
/// several pods have none, since a value stands once and cannot be told apart among them.
///
/// A GPU that was given whole covers its instances, and one of which an instance was given away belongs to nobody as a whole. The compute
/// instances of a GPU instance share its values. While some device is named in a way that could mean any, there are no holders at all.
pub fn sole_holders(listing: &Listing, node: &[NodeDevice<'_>]) -> BTreeMap<(String, Option<u32>), Holder> {
    let mut takers: BTreeMap<Place, Takers<'_>> = BTreeMap::new();
    for pod in listing.pods.iter().filter(|pod| pod.life != Life::Ended) {
        for given in &pod.given {
            let unit = given.id.as_ref().ok_or(Unresolved::Form).and_then(|id| resolve(&id.device, node));
            let unit = match unit {
                Ok(unit) => unit,
                Err(Unresolved::Missing) => continue,
                Err(Unresolved::Form | Unresolved::Ambiguous) => return BTreeMap::new(),
            };
            for (place, is_itself) in places(&unit, node) {
                let takers = takers.entry(place).or_default();
                takers.pods.insert(&pod.name);
                takers.containers.extend(is_itself.then_some(given.container.as_str()));
            }
        }
    }
    takers.into_iter().filter_map(|(place, takers)| Some((place, takers.sole()?))).collect()
}

/// The unit, all units in it, and the one around it, which it only is a part of.
fn places(unit: &Unit, node: &[NodeDevice<'_>]) -> Vec<(Place, bool)> {
    let gpu = unit.gpu.to_string();
    let instances = node.iter().find(|device| device.identity.uuid == gpu).map_or(&[][..], |it| it.instances);
    let covered = instances
        .iter()
        .filter(|mig| unit.instance.as_ref().is_none_or(|instance| instance.uuid.as_str() == mig.uuid));
    let covered = covered.map(|mig| ((gpu.clone(), Some(mig.gpu_instance)), true));
    covered.chain([((gpu.clone(), None), unit.instance.is_none())]).collect()
}

impl Takers<'_> {
    fn sole(&self) -> Option<Holder> {
        let (namespace, pod) = only(&self.pods)?.split_once('/')?;
        let is_given = !self.containers.is_empty();
        let container = only(&self.containers).unwrap_or_default();
        let [namespace, pod, container] = [namespace, pod, container].map(str::to_owned);
        is_given.then_some(Holder { namespace, pod, container })
    }
}

fn only<'l>(set: &BTreeSet<&'l str>) -> Option<&'l str> {
    set.first().copied().filter(|_| set.len() == 1)
}
