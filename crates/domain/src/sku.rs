//! SKU ids: the priced kind of a unit, and the names by which foreign systems know it.

use crate::geometry::{Geometry, ModelGeometry, profile_in};
use crate::ids::SkuId;
use crate::share::Share;
use num_rational::Ratio;
use std::collections::{BTreeMap, BTreeSet};

/// The slug of an NVML name without its vendor: `NVIDIA H100 80GB HBM3` is `h100-80gb-hbm3`.
pub fn model_slug(nvml_name: &str) -> String {
    let name = nvml_name.trim();
    let name = name.strip_prefix("NVIDIA ").unwrap_or(name).to_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// Names of products (`kind: Sku`): which id an NVML name, a Slurm gres or a node label stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkuBook {
    /// By NVML name.
    pub by_model: BTreeMap<String, SkuId>,
    /// By any name an unplaced unit may carry: gres type with and without `gpu:`, node label.
    pub by_name: BTreeMap<String, SkuId>,
}

impl SkuBook {
    /// The SKU of a placed unit: the model's id, `/profile` for a MIG instance, `/share` for a share.
    pub fn placed(&self, model: &str, profile: Option<&str>, shared: bool) -> SkuId {
        let mut id = match self.by_model.get(model) {
            Some(sku) => sku.as_str().to_owned(),
            None => model_slug(model),
        };
        if let Some(profile) = profile {
            id.push('/');
            id.push_str(profile);
        }
        if shared {
            id.push_str("/share");
        }
        SkuId::new(&id)
    }

    /// The SKU of an unplaced unit: what the grant says, or the product that name stands for.
    pub fn unplaced(&self, named: &SkuId) -> SkuId {
        self.by_name.get(named.as_str()).unwrap_or(named).clone()
    }

    /// Every name by which an unplaced unit of this SKU may be known, its own first.
    fn names_of<'b>(&'b self, sku: &'b SkuId) -> impl Iterator<Item = &'b str> {
        let foreign = self.by_name.iter().filter(move |(_, id)| *id == sku);
        std::iter::once(sku.as_str()).chain(foreign.map(|(name, _)| name.as_str()))
    }

    /// Whether whole GPUs of one of these models are this product, by its own id or the default one.
    fn is_model_of(&self, model: &ModelGeometry, product: &str) -> bool {
        let applied = |name: &String| self.by_model.get(name).is_some_and(|sku| sku.as_str() == product);
        model.models.iter().any(|name| applied(name) || model_slug(name) == product)
    }
}

/// GPU equivalents of one unplaced unit of this SKU (M-4): of a MIG profile its memory slices by the GPU's. The profile stands behind the
/// product, `h100-80gb-hbm3/1g.10gb`, where the product is a model or a `kind: Sku` that names one; or in a name that the SKU has, such as the gres
/// `gpu:a100_3g.20gb`. Everything else counts as a whole GPU, and so does a profile that is another part of another model that would do.
pub fn unplaced_weight(geometry: &Geometry, skus: &SkuBook, sku: &SkuId) -> Share {
    let (product, rest) = sku.as_str().split_once('/').unwrap_or((sku.as_str(), ""));
    let profile = rest.strip_suffix("share").map_or(rest, |rest| rest.trim_end_matches('/'));
    let mut parts = BTreeSet::new();
    if profile.is_empty() {
        for profile in skus.names_of(sku).filter_map(profile_in) {
            parts.extend(geometry.models.iter().filter_map(|model| part_of(model, &profile)));
        }
    } else {
        let models = geometry.models.iter().filter(|model| skus.is_model_of(model, product));
        parts.extend(models.filter_map(|model| part_of(model, profile)));
    }
    let mut parts = parts.into_iter();
    match (parts.next(), parts.next()) {
        (Some(part), None) => part,
        _ => Ratio::from_integer(1),
    }
}

/// What part of the model's memory the profile is, where the model has it.
fn part_of(model: &ModelGeometry, profile: &str) -> Option<Share> {
    let slices = model.profile(profile)?.memory_slices;
    Some(Ratio::new(i128::from(slices), i128::from(model.memory_slices)))
}

#[cfg(test)]
mod tests;
