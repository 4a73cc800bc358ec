//! Sums by which the two methods are compared.

use crate::Painting;
use gpuledger_domain::fact::{Account, Posting};
use gpuledger_domain::ids::{AllocationId, GpuId, TenantId};
use gpuledger_domain::time::{HOUR_US, Instant, Window};
use std::collections::BTreeMap;

/// GPU, start of the UTC hour, account, tenant, allocation.
pub type TotalsKey = (GpuId, Instant, Account, Option<TenantId>, Option<AllocationId>);

/// Compute-slice-microseconds and memory-slice-microseconds of each key; none where both are zero.
pub type Totals = BTreeMap<TotalsKey, (i128, i128)>;

impl Painting {
    /// The sums of the postings per GPU, UTC hour, account, tenant and allocation.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::new();
        for (gpu, postings) in &self.postings {
            add(&mut totals, gpu, postings);
        }
        totals
    }
}

/// Adds each posting to the hour it lies in. The painter cuts every posting at full hours.
fn add(totals: &mut Totals, gpu: &GpuId, postings: &[Posting]) {
    for posting in postings {
        let hour = hour(posting.window);
        let key = (gpu.clone(), hour, posting.account, posting.tenant.clone(), posting.allocation.clone());
        let sum = totals.entry(key).or_default();
        sum.0 += posting.compute_slice_us;
        sum.1 += posting.memory_slice_us;
    }
    totals.retain(|_, sum| *sum != (0, 0));
}

fn hour(window: Window) -> Instant {
    Instant::from_micros(window.start().as_micros().div_euclid(HOUR_US) * HOUR_US)
}
