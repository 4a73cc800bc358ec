//! Every slice of one GPU painted anew in each interval between neighbouring instants at which anything can change.

use crate::gpu::{Gpu, Sight};
use crate::holds::{Hold, MigSlices};
use crate::life::Life;
use crate::met::Met;
use crate::pools::{Due, Pools};
use crate::{Owned, Painting, Rules, packing, shares};
use gpuledger_domain::fact::{Account, Placement, Posting, Settings};
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::ids::{AllocationId, GpuId, NodeId, ProjectId, TenantId};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::{Instant, Window};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// One GPU and all that bears on it.
pub(crate) struct Studio<'a, 's> {
    pub(crate) id: &'a GpuId,
    pub(crate) gpu: &'s Gpu<'a>,
    pub(crate) holds: &'s [Hold<'a>],
    pub(crate) life: &'s Life,
    pub(crate) pools: &'s Pools<'a>,
    pub(crate) rules: &'s Rules<'a>,
    pub(crate) as_of: Instant,
}

impl<'a> Studio<'a, '_> {
    /// Adds the GPU to the painting, from its first fact to the horizon.
    pub(crate) fn paint(&self, painting: &mut Painting) {
        let (gpu, holds) = (self.gpu, self.holds);
        let silences = silences(gpu, self.life, &self.rules.settings);
        let scene =
            Scene { gpu, holds, silences: &silences, geometry: self.rules.geometry, pools: self.pools };
        let instants: Vec<Instant> = scene.instants(self.as_of).into_iter().collect();
        let mut postings = Vec::new();
        let mut met = Met { missing_release: holds.iter().any(|h| !h.ends_in_words), ..Met::default() };
        let mut stretches: Vec<(Window, Held<'_>)> = Vec::new();
        let mut running: BTreeMap<Held<'_>, Window> = BTreeMap::new();
        for pair in instants.windows(2) {
            let Some(window) = Window::new(pair[0], pair[1]) else { continue };
            let mut held = Vec::new();
            if gpu.has_capacity(window.start()) {
                let canvas = scene.paint(window.start());
                met.add(canvas.met);
                postings.extend(canvas.areas.iter().flat_map(|area| area.postings(window)));
                held = canvas.held;
            }
            held.iter().flat_map(|unit| &unit.holders).for_each(|h| self.note_held(h, window, painting));
            // A stretch with the same holders, owners, shares and slices goes on: nothing else cuts the split of shares (M-3).
            let mut going_on = BTreeMap::new();
            for unit in held {
                let start = running.remove(&unit).map_or(window.start(), Window::start);
                going_on.extend(Window::new(start, window.end()).map(|longer| (unit, longer)));
            }
            stretches.extend(running.into_iter().map(|(unit, window)| (window, unit)));
            running = going_on;
        }
        stretches.extend(running.into_iter().map(|(unit, window)| (window, unit)));
        for (window, unit) in &stretches {
            met.shares |=
                unit.holders.iter().any(|h| h.share != Share::from_integer(1)) || unit.holders.len() > 1;
            for cell in self.pools.cells(&unit.holders, *window) {
                postings.extend(self.divide(unit, cell, &mut met, &mut painting.parts));
            }
        }
        painting.postings.insert(self.id.clone(), postings);
        painting.met.add(met);
    }

    fn note_held(&self, holder: &Holder<'_>, window: Window, painting: &mut Painting) {
        let owner = (holder.allocation.clone(), holder.tenant.clone(), holder.project.cloned());
        let state = self.pools.state(holder.allocation, window.start()).map(str::to_owned);
        painting.met.state |= state.is_some();
        *painting.held.entry((owner, state)).or_default() += i128::from(window.micros());
    }

    /// The parts of one cell of a unit, and the idle part.
    fn divide(
        &self,
        unit: &Held<'_>,
        cell: Window,
        met: &mut Met,
        parts: &mut BTreeMap<Owned, i128>,
    ) -> Vec<Posting> {
        let place = (self.id, unit.mig.map(|mig| mig.placement));
        let dues = self.pools.dues(&unit.holders, Some(place), cell);
        met.add(dues.met);
        let mut postings = vec![unit.posting(cell, Account::Idle, None, dues.idle)];
        for due in &dues.of {
            let owner = (due.allocation.clone(), due.tenant.clone(), due.project.cloned());
            *parts.entry(owner).or_default() += due.part;
            postings.push(unit.posting(cell, Account::Tenant, Some(due), due.part));
        }
        postings.retain(|posting| posting.memory_slice_us > 0);
        postings
    }
}

/// For each node the GPU is ever on, its silences.
fn silences<'a>(gpu: &Gpu<'a>, life: &Life, settings: &Settings) -> BTreeMap<&'a NodeId, Vec<Window>> {
    let nodes: BTreeSet<&NodeId> = gpu.seen.iter().map(|s| s.node).collect();
    nodes.into_iter().map(|node| (node, life.silences(node, settings.observation_gap_us))).collect()
}

/// All that bears on one GPU.
struct Scene<'a, 's> {
    gpu: &'s Gpu<'a>,
    holds: &'s [Hold<'a>],
    silences: &'s BTreeMap<&'a NodeId, Vec<Window>>,
    geometry: &'s Geometry,
    pools: &'s Pools<'a>,
}

/// Slices of one kind that are in one account and need no further split.
struct Area {
    account: Account,
    compute: u8,
    memory: usize,
}

impl Area {
    /// One posting for each quarter of an hour of the window.
    fn postings(&self, window: Window) -> Vec<Posting> {
        let memory = i128::try_from(self.memory).unwrap_or(i128::MAX);
        let cells = shares::cells(window).into_iter();
        let posting = |cell: Window| Posting {
            window: cell,
            account: self.account,
            tenant: None,
            allocation: None,
            compute_slice_us: i128::from(cell.micros()) * i128::from(self.compute),
            memory_slice_us: i128::from(cell.micros()) * memory,
        };
        cells.map(posting).collect()
    }
}

/// A unit that tenants hold, with everything that cuts the split of its time.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Held<'a> {
    mig: Option<MigSlices>,
    compute: u8,
    memory: usize,
    /// In order of allocation id, then place in it: the order in which ties go.
    holders: Vec<Holder<'a>>,
}

/// One holder of a unit.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holder<'a> {
    pub(crate) allocation: &'a AllocationId,
    pub(crate) index: usize,
    pub(crate) tenant: &'a TenantId,
    pub(crate) project: Option<&'a ProjectId>,
    pub(crate) share: Share,
}

impl Held<'_> {
    fn posting(&self, cell: Window, account: Account, due: Option<&Due<'_>>, part: i128) -> Posting {
        let memory = i128::try_from(self.memory).unwrap_or(i128::MAX);
        Posting {
            window: cell,
            account,
            tenant: due.map(|due| due.tenant.clone()),
            allocation: due.map(|due| due.allocation.clone()),
            compute_slice_us: part * i128::from(self.compute),
            memory_slice_us: part * memory,
        }
    }
}

/// One instant of one GPU.
struct Canvas<'a> {
    /// Which memory slices nobody has yet.
    free: Vec<bool>,
    /// How many compute slices nobody has yet.
    compute: u8,
    /// Placements whose compute slices are taken.
    placed: BTreeSet<Placement>,
    areas: Vec<Area>,
    held: Vec<Held<'a>>,
    met: Met,
}

/// Holds that got the same unit.
struct Taken<'a, 's> {
    slices: Range<usize>,
    compute: u8,
    holds: Vec<&'s Hold<'a>>,
}

impl<'a> Scene<'a, '_> {
    /// Every instant at which anything can change, from the first fact to the horizon.
    fn instants(&self, as_of: Instant) -> BTreeSet<Instant> {
        let mut all: BTreeSet<Instant> = BTreeSet::from([self.gpu.first, as_of]);
        all.extend(self.gpu.seen.iter().map(|s| s.at));
        all.extend(&self.gpu.closes);
        all.extend(self.gpu.states.iter().flat_map(|track| track.instants()));
        let windows = self.gpu.scrubs.iter().map(|(window, _)| window).chain(&self.gpu.missing);
        all.extend(windows.chain(self.silences.values().flatten()).flat_map(|w| [w.start(), w.end()]));
        all.extend(self.holds.iter().flat_map(|h| [h.start, h.end]));
        all.extend(self.holds.iter().flat_map(|h| h.owners.iter().map(|o| o.from)));
        all.extend(self.holds.iter().flat_map(|h| self.pools.state_changes(h.unit.allocation)));
        all.retain(|at| *at >= self.gpu.first && *at <= as_of);
        all
    }

    fn paint(&self, at: Instant) -> Canvas<'a> {
        let sight = self.gpu.sight(at);
        let mut canvas = Canvas {
            free: vec![true; usize::from(sight.gpu.memory_slices)],
            compute: sight.gpu.compute_slices,
            placed: BTreeSet::new(),
            areas: Vec::new(),
            held: Vec::new(),
            met: Met::default(),
        };
        self.paint_holds(&mut canvas, at);
        for account in [Account::Fault, Account::Maintenance] {
            let scopes = self.gpu.states.iter().filter(|track| track.at(at) == Some(account));
            scopes.for_each(|track| self.take_scope(&mut canvas, track.scope, account, sight));
        }
        let scrubbed = self.gpu.scrubs.iter().filter(|(window, _)| window.contains(at));
        let scrubbed: BTreeSet<Option<Placement>> = scrubbed.map(|(_, scope)| *scope).collect();
        scrubbed.into_iter().for_each(|scope| self.take_scope(&mut canvas, scope, Account::Scrub, sight));
        if self.is_unobserved(sight.node, at) {
            canvas.take_rest(Account::Unobserved);
        } else if sight.gpu.mig {
            self.paint_free_mig(&mut canvas, at);
        } else {
            canvas.take_rest(Account::Idle);
        }
        canvas
    }

    /// Live units in order of (start, allocation, place in it); what touches a held slice is not charged, unless both are shared and
    /// the unit is the same.
    fn paint_holds(&self, canvas: &mut Canvas<'a>, at: Instant) {
        let mut live: Vec<&Hold<'a>> = self.holds.iter().filter(|h| h.start <= at && at < h.end).collect();
        live.sort_by_key(|h| (h.start, h.unit.allocation, h.unit.index));
        let mut taken: Vec<Taken<'a, '_>> = Vec::new();
        for hold in live {
            let slices = hold.unit.mig.map_or(0..canvas.free.len(), |m| range(m.placement));
            let compute = hold.unit.mig.map_or(self.gpu.sight(at).gpu.compute_slices, |m| m.compute);
            if slices.end > canvas.free.len() {
                continue;
            }
            let same = |t: &Taken<'_, '_>| {
                t.holds.iter().all(|h| h.unit.mig == hold.unit.mig && h.unit.shared && hold.unit.shared)
            };
            if let Some(unit) = taken.iter_mut().find(|t| touch(&t.slices, &slices) && same(t)) {
                unit.holds.push(hold);
            } else if canvas.free[slices.clone()].iter().all(|free| *free) && compute <= canvas.compute {
                canvas.free[slices.clone()].fill(false);
                canvas.compute -= compute;
                canvas.placed.extend(hold.unit.mig.map(|m| m.placement));
                taken.push(Taken { slices, compute, holds: vec![hold] });
            } else {
                canvas.met.contest = true;
            }
        }
        for unit in taken {
            let memory = unit.slices.len();
            match self.account_of(&unit.slices, at) {
                Some(account) => {
                    canvas.met.fault_overlap |= account == Account::Fault;
                    canvas.areas.push(Area { account, compute: unit.compute, memory });
                }
                None => canvas.held.push(held(&unit, at, memory)),
            }
        }
    }

    /// The account to which a unit on these slices goes whole, if any of them is broken or taken by the operator.
    fn account_of(&self, slices: &Range<usize>, at: Instant) -> Option<Account> {
        let touching = |track: &&crate::states::Track| track.scope.is_none_or(|p| touch(&range(p), slices));
        let accounts: Vec<Account> =
            self.gpu.states.iter().filter(touching).filter_map(|track| track.at(at)).collect();
        [Account::Fault, Account::Maintenance].into_iter().find(|account| accounts.contains(account))
    }

    /// The free slices of a scope: all of them, or a placement's memory slices and the compute slices of the instance that lies
    /// exactly there, unless somebody has them.
    fn take_scope(
        &self,
        canvas: &mut Canvas<'a>,
        scope: Option<Placement>,
        account: Account,
        sight: &Sight<'_>,
    ) {
        let Some(placement) = scope else {
            canvas.take_rest(account);
            return;
        };
        let mut compute = 0;
        if canvas.placed.insert(placement) {
            let there = sight.gpu.instances.iter().find(|i| i.placement == Some(placement));
            let slices =
                there.map(|i| self.gpu.compute_of(&i.profile, i.compute_slices, sight.at, self.geometry));
            compute = slices.unwrap_or(0).min(canvas.compute);
        }
        canvas.take(account, range(placement), compute);
    }

    fn is_unobserved(&self, node: &NodeId, at: Instant) -> bool {
        let silent = self.silences.get(node).into_iter().flatten();
        self.gpu.missing.iter().chain(silent).any(|window| window.contains(at))
    }

    /// Free slices with MIG on: instances are idle as they stand, of the rest the best packing is, and what remains is stranded
    ///
    fn paint_free_mig(&self, canvas: &mut Canvas<'a>, at: Instant) {
        let sight = self.gpu.sight(at);
        let Some(model) = self.geometry.of(&sight.gpu.model) else {
            canvas.take_rest(Account::Idle);
            return;
        };
        let mut instances: Vec<(Placement, u8)> = Vec::new();
        for instance in &sight.gpu.instances {
            let compute = self.gpu.compute_of(&instance.profile, instance.compute_slices, at, self.geometry);
            instances.extend(instance.placement.map(|placement| (placement, compute)));
        }
        instances.sort();
        for (placement, compute) in instances {
            let slices = range(placement);
            let whole =
                slices.end <= canvas.free.len() && canvas.free[slices.clone()].iter().all(|free| *free);
            if whole && compute <= canvas.compute {
                canvas.take(Account::Idle, slices, compute);
            }
        }
        let (compute, memory) = packing::best(model, &canvas.free, canvas.compute);
        canvas.areas.push(Area { account: Account::Idle, compute, memory: usize::from(memory) });
        let left = canvas.free.iter().filter(|free| **free).count() - usize::from(memory);
        let stranded = Area { account: Account::Stranded, compute: canvas.compute - compute, memory: left };
        canvas.areas.push(stranded);
    }
}

fn held<'a>(unit: &Taken<'a, '_>, at: Instant, memory: usize) -> Held<'a> {
    let holder = |hold: &&Hold<'a>| {
        let owner = hold.owners.iter().rev().find(|o| o.from <= at).or_else(|| hold.owners.first());
        owner.map(|owner| Holder {
            allocation: hold.unit.allocation,
            index: hold.unit.index,
            tenant: owner.tenant,
            project: owner.project,
            share: hold.unit.share,
        })
    };
    let mut holders: Vec<Holder<'a>> = unit.holds.iter().filter_map(holder).collect();
    holders.sort();
    let mig = unit.holds.first().and_then(|h| h.unit.mig);
    Held { mig, compute: unit.compute, memory, holders }
}

impl Canvas<'_> {
    /// Paints those of the memory slices that are free, and this many free compute slices.
    fn take(&mut self, account: Account, slices: Range<usize>, compute: u8) {
        let mut memory = 0;
        for free in self.free.iter_mut().take(slices.end).skip(slices.start) {
            memory += usize::from(*free);
            *free = false;
        }
        self.compute -= compute;
        self.areas.push(Area { account, compute, memory });
    }

    /// Paints all that is free.
    fn take_rest(&mut self, account: Account) {
        self.take(account, 0..self.free.len(), self.compute);
    }
}

fn range(placement: Placement) -> Range<usize> {
    let start = usize::from(placement.start);
    start..start + usize::from(placement.size)
}

fn touch(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}
