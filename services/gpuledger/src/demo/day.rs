//! A day of a small fleet, planned: two nodes of eight GPUs, three tenants, and what goes wrong on any day. The same plan every time.
//!
//! One plan makes both sides: what the allocator says ([`events`]) and what the devices do ([`scenario`]). Nothing of the bill comes from
//! anywhere else.
//!
//! 2026-10-31, UTC: the last day of its month, so that the month can be closed right after it.

pub(crate) mod allocator;
pub(crate) mod events;
pub(crate) mod fleet;
pub(crate) mod requests;
pub(crate) mod scenario;
pub(crate) mod work;

#[cfg(test)]
mod tests;

use fleet::Gpu;
use gpuledger_domain::time::{HOUR_US, Instant, MINUTE_US, Window};

/// 2026-10-31T00:00:00Z.
pub(crate) const MIDNIGHT: Instant = Instant::from_micros(1_793_404_800_000_000);
/// When the day is over and every hour of it can be posted: an hour and five minutes after it.
pub(crate) const OVER: Instant = at(25, 5);

/// The instant of a time of that day.
const fn at(hours: i64, minutes: i64) -> Instant {
    MIDNIGHT.plus(hours * HOUR_US + minutes * MINUTE_US)
}

/// The day.
pub(crate) fn window() -> Window {
    lasting(MIDNIGHT, 24 * HOUR_US)
}

/// The GPU that is lost, and for how long.
pub(crate) fn lost() -> (Gpu, Window) {
    let (node, index, from, lasts_us) = requests::LOST;
    (Gpu::at(node, index), lasting(from, lasts_us))
}

/// The GPU that the operator takes, and for how long.
pub(crate) fn maintenance() -> (Gpu, Window) {
    let (node, index, from, lasts_us) = requests::MAINTENANCE;
    (Gpu::at(node, index), lasting(from, lasts_us))
}

fn lasting(from: Instant, us: i64) -> Window {
    Window::new(from, from.plus(us.max(1))).unwrap_or_else(|| Window::hour_of(from))
}
