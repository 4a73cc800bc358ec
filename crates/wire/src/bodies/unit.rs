//! Units: devices, MIG instances, shares, and so many of a SKU.

use super::from_parts;
use crate::number::{SliceIndex, Slices, UnitCount};
use crate::share::ShareText;
use crate::text::Name;
use gpuledger_domain::fact;
use gpuledger_domain::ids::{GpuId, SkuId};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// A run of memory slices of one GPU, within slices 0 to 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
pub struct Placement {
    /// First memory slice.
    pub start: SliceIndex,
    /// Number of memory slices; `start + size` is at most 16.
    pub size: Slices,
}

#[derive(Deserialize)]
struct PlacementParts {
    start: SliceIndex,
    size: Slices,
}

impl TryFrom<PlacementParts> for Placement {
    type Error = &'static str;

    fn try_from(parts: PlacementParts) -> Result<Self, &'static str> {
        if parts.start.get() + parts.size.get() > 16 {
            return Err("reaches past the 16th memory slice, expected start + size <= 16");
        }
        Ok(Self { start: parts.start, size: parts.size })
    }
}

impl<'de> Deserialize<'de> for Placement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_parts::<PlacementParts, _, _>(deserializer)
    }
}

impl From<Placement> for fact::Placement {
    fn from(placement: Placement) -> Self {
        Self { start: placement.start.get(), size: placement.size.get() }
    }
}

/// A MIG instance: by its UUID, or by profile and placement, or by all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(extend("anyOf" = [{"required": ["uuid"]}, {"required": ["profile", "placement"]}]))]
pub struct MigUnit {
    /// The vendor's MIG UUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<Name>,
    /// Such as `3g.40gb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Name>,
    /// Which memory slices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
}

#[derive(Deserialize)]
struct MigParts {
    uuid: Option<Name>,
    profile: Option<Name>,
    placement: Option<Placement>,
}

impl TryFrom<MigParts> for MigUnit {
    type Error = &'static str;

    fn try_from(parts: MigParts) -> Result<Self, &'static str> {
        if parts.uuid.is_none() && (parts.profile.is_none() || parts.placement.is_none()) {
            return Err("names no instance, expected `uuid`, or `profile` and `placement`");
        }
        Ok(Self { uuid: parts.uuid, profile: parts.profile, placement: parts.placement })
    }
}

impl<'de> Deserialize<'de> for MigUnit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_parts::<MigParts, _, _>(deserializer)
    }
}

/// A device, or a MIG instance or share of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedUnit {
    /// The vendor's UUID of the GPU.
    pub gpu: Name,
    /// None: the whole GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mig: Option<MigUnit>,
    /// None: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareText>,
}

/// So many of a SKU, on devices not (yet) known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnplacedUnit {
    /// Which.
    pub sku: Name,
    /// How many.
    pub count: UnitCount,
    /// Share of each; none: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareText>,
}

/// One entry of a grant's `units`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("not" = {"anyOf": [{"required": ["gpu", "sku"]}, {"required": ["gpu", "count"]}, {"required": ["sku", "mig"]}]}))]
pub enum GrantUnit {
    /// `{gpu, mig?, share?}`.
    Placed(PlacedUnit),
    /// `{sku, count, share?}`.
    Unplaced(UnplacedUnit),
}

#[derive(Deserialize)]
struct UnitParts {
    gpu: Option<Name>,
    mig: Option<MigUnit>,
    sku: Option<Name>,
    count: Option<UnitCount>,
    share: Option<ShareText>,
}

impl TryFrom<UnitParts> for GrantUnit {
    type Error = &'static str;

    fn try_from(parts: UnitParts) -> Result<Self, &'static str> {
        match parts {
            UnitParts { gpu: Some(gpu), mig, sku: None, count: None, share } => {
                Ok(Self::Placed(PlacedUnit { gpu, mig, share }))
            }
            UnitParts { gpu: None, mig: None, sku: Some(sku), count: Some(count), share } => {
                Ok(Self::Unplaced(UnplacedUnit { sku, count, share }))
            }
            UnitParts { gpu: Some(_), .. } => {
                Err("names a `gpu` and a `sku` or `count`, expected one form of unit")
            }
            _ => Err("is no unit, expected `gpu` (with `mig`, `share`), or `sku` and `count` (with `share`)"),
        }
    }
}

impl<'de> Deserialize<'de> for GrantUnit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_parts::<UnitParts, _, _>(deserializer)
    }
}

/// One entry of a signal's `units`: a unit as a grant names it, or memory slices of a GPU, whatever instances lie there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SignalUnit {
    /// As in a grant.
    Unit(GrantUnit),
    /// `{gpu, mig: {placement}}`.
    Slices(SlicesOfGpu),
}

/// Memory slices of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SlicesOfGpu {
    /// The vendor's UUID of the GPU.
    pub gpu: Name,
    /// Which of its slices.
    pub mig: SlicesPlace,
}

/// Where slices lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SlicesPlace {
    /// Which memory slices.
    pub placement: Placement,
}

#[derive(Deserialize)]
struct SignalUnitParts {
    gpu: Option<Name>,
    mig: Option<MigParts>,
    sku: Option<Name>,
    count: Option<UnitCount>,
    share: Option<ShareText>,
}

impl TryFrom<SignalUnitParts> for SignalUnit {
    type Error = &'static str;

    fn try_from(parts: SignalUnitParts) -> Result<Self, &'static str> {
        match parts {
            SignalUnitParts {
                gpu: Some(gpu),
                mig: Some(MigParts { uuid: None, profile: None, placement: Some(placement) }),
                sku: None,
                count: None,
                share: None,
            } => Ok(Self::Slices(SlicesOfGpu { gpu, mig: SlicesPlace { placement } })),
            SignalUnitParts { gpu, mig, sku, count, share } => {
                let mig = mig.map(MigUnit::try_from).transpose()?;
                GrantUnit::try_from(UnitParts { gpu, mig, sku, count, share }).map(Self::Unit)
            }
        }
    }
}

impl<'de> Deserialize<'de> for SignalUnit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_parts::<SignalUnitParts, _, _>(deserializer)
    }
}

/// Names by which a node knows an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runtime {
    /// Slurm job number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slurm_job: Option<Name>,
    /// Kubernetes pod UID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<Name>,
}

impl From<&Runtime> for fact::Runtime {
    fn from(runtime: &Runtime) -> Self {
        let text = |name: &Option<Name>| name.as_ref().map(ToString::to_string);
        Self { slurm_job: text(&runtime.slurm_job), pod_uid: text(&runtime.pod_uid) }
    }
}

impl From<&PlacedUnit> for fact::PlacedUnit {
    fn from(unit: &PlacedUnit) -> Self {
        Self {
            gpu: GpuId::new(&unit.gpu),
            mig: unit.mig.as_ref().map(fact::MigUnit::from),
            share: unit.share.map(|share| share.0),
        }
    }
}

impl From<&MigUnit> for fact::MigUnit {
    fn from(unit: &MigUnit) -> Self {
        Self {
            uuid: unit.uuid.as_ref().map(ToString::to_string),
            profile: unit.profile.as_ref().map(ToString::to_string),
            placement: unit.placement.map(Into::into),
        }
    }
}

impl From<&GrantUnit> for fact::GrantUnit {
    fn from(unit: &GrantUnit) -> Self {
        match unit {
            GrantUnit::Placed(unit) => Self::Placed(unit.into()),
            GrantUnit::Unplaced(unit) => Self::Unplaced {
                sku: SkuId::new(&unit.sku),
                count: unit.count.get(),
                share: unit.share.map(|share| share.0),
            },
        }
    }
}
