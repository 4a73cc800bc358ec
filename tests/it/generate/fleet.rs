//! Nodes, GPUs and what they can be cut into.

use super::Facts;
use gpuledger_domain::fact::{FactBody, Instance, Inventory, InventoryGpu, MigUnit, Placement};
use gpuledger_domain::geometry::{Geometry, ModelGeometry, Profile};
use gpuledger_domain::ids::{GpuId, NodeId};
use gpuledger_wire::geometry::geometry;
use proptest::prelude::*;

/// Models in use: three with MIG, one without.
const MODELS: [&str; 4] = ["NVIDIA A30", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "Tesla T4"];

/// One or two nodes with up to three GPUs.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    gpus: Vec<Gpu>,
    /// When each of the two nodes reports for the first time; none: never by itself.
    first: [Option<i64>; 2],
    geometry: Geometry,
}

#[derive(Clone, Debug)]
struct Gpu {
    model: usize,
    node: usize,
    layout: Layout,
}

/// How a GPU is cut: none for MIG off, else wishes for instances; what does not fit beside the earlier ones is left out.
pub(crate) type Layout = Option<Vec<usize>>;

pub(crate) fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![1 => Just(None), 4 => prop::collection::vec(0_usize..24, 0..6).prop_map(Some)]
}

pub(crate) fn fleet() -> impl Strategy<Value = Fleet> {
    let gpu =
        (0_usize..4, 0_usize..2, layout()).prop_map(|(model, node, layout)| Gpu { model, node, layout });
    let first = prop_oneof![8 => Just(Some(0)), 2 => super::time().prop_map(Some), 1 => Just(None)];
    (prop::collection::vec(gpu, 1..=3), [first.clone(), first]).prop_map(|(gpus, first)| Fleet {
        gpus,
        first,
        geometry: geometry(),
    })
}

impl Fleet {
    /// The id of the GPU meant by `wish`.
    pub(crate) fn gpu(&self, wish: usize) -> GpuId {
        GpuId::new(&format!("GPU-{}", wish % self.gpus.len()))
    }

    /// A legal placement of the GPU with the instance that would lie there; none on a model without MIG.
    pub(crate) fn instance(&self, gpu: usize, wish: usize) -> Option<Instance> {
        let n = gpu % self.gpus.len();
        let model = self.geometry.of(MODELS[self.gpus[n].model])?;
        let legal: Vec<(&Profile, u8)> =
            model.profiles.iter().flat_map(|p| p.starts.iter().map(move |start| (p, *start))).collect();
        let (profile, start) = legal[wish % legal.len()];
        let placement = Placement { start, size: profile.memory_slices };
        Some(Instance {
            uuid: format!("MIG-{n}-{}-{start}", profile.name),
            profile: profile.name.clone(),
            compute_slices: (!wish.is_multiple_of(3)).then_some(profile.compute_slices),
            placement: Some(placement),
        })
    }

    /// The unit of a grant for that instance: with all it takes, or by its UUID alone.
    pub(crate) fn mig_unit(&self, gpu: usize, wish: usize, uuid_only: bool) -> Option<MigUnit> {
        let instance = self.instance(gpu, wish)?;
        Some(MigUnit {
            uuid: (uuid_only || wish.is_multiple_of(2)).then_some(instance.uuid),
            profile: (!uuid_only).then_some(instance.profile),
            placement: instance.placement.filter(|_| !uuid_only),
        })
    }

    pub(crate) fn say_first_inventories(&self, facts: &mut Facts) {
        for (node, at) in self.first.iter().enumerate() {
            if let (Some(at), true) = (at, self.gpus.iter().any(|gpu| gpu.node == node)) {
                self.say_inventory(facts, node, *at, &[], None, None);
            }
        }
    }

    /// The node's inventory. `layouts`: new ones for the first GPUs, the rest as at the beginning; `lost`: a GPU it lacks;
    /// `found`: a GPU that has come to it from wherever it was.
    pub(crate) fn say_inventory(
        &self,
        facts: &mut Facts,
        node: usize,
        at: i64,
        layouts: &[Layout],
        lost: Option<usize>,
        found: Option<usize>,
    ) {
        let here = |n: &usize| (self.gpus[*n].node == node || found == Some(*n)) && lost != Some(*n);
        let listed = |n: usize| {
            let gpu = &self.gpus[n];
            let layout = layouts.get(n).unwrap_or(&gpu.layout);
            let model = self.geometry.of(MODELS[gpu.model]);
            InventoryGpu {
                gpu: self.gpu(n),
                model: MODELS[gpu.model].to_owned(),
                compute_slices: model.map_or(1, |m| m.compute_slices),
                memory_slices: model.map_or(1, |m| m.memory_slices),
                mig: model.is_some() && layout.is_some(),
                instances: model
                    .map_or_else(Vec::new, |m| self.cut(n, m, layout.as_deref().unwrap_or_default())),
            }
        };
        let gpus = (0..self.gpus.len()).filter(here).map(listed).collect();
        let inventory = Inventory { node: NodeId::new(&format!("n{node}")), boot_id: "b1".to_owned(), gpus };
        facts.say(&format!("/nodes/n{node}/collector"), at, FactBody::Inventory(inventory));
    }

    /// The instances wished for that fit beside each other.
    fn cut(&self, gpu: usize, model: &ModelGeometry, wishes: &[usize]) -> Vec<Instance> {
        let mut instances: Vec<Instance> = Vec::new();
        let mut compute = model.compute_slices;
        for instance in wishes.iter().filter_map(|wish| self.instance(gpu, *wish)) {
            let Some(place) = instance.placement else { continue };
            let slices = model.profile(&instance.profile).map_or(0, |p| p.compute_slices);
            let free = instances.iter().filter_map(|i| i.placement).all(|other| {
                place.start + place.size <= other.start || other.start + other.size <= place.start
            });
            if free && slices <= compute {
                compute -= slices;
                instances.push(instance);
            }
        }
        instances
    }
}
