//! SKU ids: the priced kind of a unit, and the names by which foreign systems know it.

use crate::geometry::Geometry;
use crate::ids::SkuId;
use crate::share::Share;
use num_rational::Ratio;
use std::collections::BTreeMap;

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
}

/// GPU equivalents of one unplaced unit of this SKU (M-4): a MIG profile of a model the geometry knows counts its memory slices,
/// everything else counts as a whole GPU.
pub fn unplaced_weight(geometry: &Geometry, sku: &SkuId) -> Share {
    let whole = Ratio::from_integer(1);
    let mut parts = sku.as_str().split('/');
    let (Some(model), Some(profile)) = (parts.next(), parts.next()) else { return whole };
    let known = geometry.models.iter().find(|m| m.models.iter().any(|name| model_slug(name) == model));
    let Some((model, profile)) = known.and_then(|m| m.profile(profile).map(|p| (m, p))) else { return whole };
    Ratio::new(i128::from(profile.memory_slices), i128::from(model.memory_slices))
}
