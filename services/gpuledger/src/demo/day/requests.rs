//! What three tenants ask for over the day.

use super::at;
use super::fleet::Model;
use gpuledger_domain::time::{HOUR_US, Instant, MINUTE_US, SECOND_US};
use gpuledger_wire::bodies::Class;

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// The name of its allocation.
    pub(crate) id: &'static str,
    /// Who asks.
    pub(crate) tenant: &'static str,
    /// For which project.
    pub(crate) project: Option<&'static str>,
    /// How it is bought.
    pub(crate) class: Class,
    /// What is asked for.
    pub(crate) asks: Asks,
    /// When.
    pub(crate) at: Instant,
    /// How long the tenant needs it, in microseconds.
    pub(crate) lasts_us: i64,
    /// What runs it.
    pub(crate) runs_as: RunsAs,
    /// What its processes do.
    pub(crate) load: Load,
    /// When its release is heard of.
    pub(crate) release: Release,
}

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// So many whole GPUs.
    Whole(Model, usize),
    /// One MIG instance of a profile.
    Instance(Model, &'static str),
    /// One of so many parts of a shared GPU.
    Share(Model, i128),
}

/// What runs a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunsAs {
    /// A Kubernetes pod: the allocator names the devices.
    Pod,
    /// A Slurm job: the allocator knows how many devices, the node finds out which.
    Job,
}

/// What the processes of an allocation do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Busy but for a checkpoint every other hour.
    Training,
    /// As busy as its users are awake.
    Serving,
    /// Now and then.
    Notebook,
    /// No process at all.
    Nothing,
}

/// When a release is heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// As it happens.
    AtOnce,
    /// When the day is over.
    Late,
}

const fn pod(
    id: &'static str,
    tenant: &'static str,
    asks: Asks,
    load: Load,
    at: Instant,
    hours: i64,
) -> Request {
    Request {
        id,
        tenant,
        project: None,
        class: Class::OnDemand,
        asks,
        at,
        lasts_us: hours * HOUR_US,
        runs_as: RunsAs::Pod,
        load,
        release: Release::AtOnce,
    }
}

use Asks::{Instance, Share, Whole};
use Load::{Notebook, Nothing, Serving, Training};
use Model::{A100, H100};

/// The day's requests, in order of time.
pub(crate) const REQUESTS: [Request; 19] = [
    Request {
        runs_as: RunsAs::Job,
        class: Class::Reserved,
        ..pod("bolt-train", "bolt", Whole(A100, 4), Training, at(0, 15), 20)
    },
    // One of its four GPUs falls off the bus for twenty minutes, which are not charged.
    Request {
        project: Some("vision"),
        runs_as: RunsAs::Job,
        ..pod("acme-train", "acme", Whole(H100, 4), Training, at(0, 30), 11)
    },
    pod("bolt-index", "bolt", Instance(A100, "4g.40gb"), Serving, at(1, 0), 20),
    // Its release comes six hours late.
    Request { release: Release::Late, ..pod("bolt-serve", "bolt", Whole(H100, 1), Serving, at(2, 0), 18) },
    Request {
        project: Some("speech"),
        ..pod("acme-asr", "acme", Instance(A100, "3g.40gb"), Serving, at(3, 0), 6)
    },
    Request { project: Some("speech"), ..pod("acme-chat", "acme", Share(H100, 4), Serving, at(4, 0), 12) },
    pod("bolt-chat", "bolt", Share(H100, 2), Serving, at(4, 0), 14),
    pod("cora-rank", "cora", Instance(A100, "3g.40gb"), Serving, at(5, 0), 12),
    pod("bolt-embed", "bolt", Instance(H100, "3g.40gb"), Training, at(6, 0), 10),
    pod("cora-search", "cora", Share(H100, 4), Serving, at(8, 0), 8),
    pod("cora-notebook", "cora", Instance(A100, "1g.10gb"), Notebook, at(9, 0), 9),
    // Held for six hours, and nothing ever ran on it.
    pod("cora-parked", "cora", Whole(H100, 1), Nothing, at(10, 30), 6),
    Request {
        project: Some("speech"),
        ..pod("acme-tts", "acme", Instance(H100, "3g.40gb"), Serving, at(11, 0), 5)
    },
    // Spot: taken back when `bolt-burst` needs what is left.
    Request {
        project: Some("vision"),
        class: Class::Spot,
        ..pod("acme-sweep", "acme", Whole(H100, 1), Training, at(12, 30), 8)
    },
    Request { runs_as: RunsAs::Job, ..pod("bolt-burst", "bolt", Whole(H100, 4), Training, at(15, 0), 3) },
    // No such instance is free: what was another tenant's in the morning is cut anew.
    pod("cora-lab", "cora", Instance(A100, "4g.40gb"), Training, at(16, 0), 4),
    Request {
        project: Some("vision"),
        ..pod("acme-video", "acme", Instance(A100, "2g.20gb"), Notebook, at(17, 30), 5)
    },
    Request { project: Some("speech"), ..pod("acme-night", "acme", Share(A100, 2), Training, at(19, 0), 4) },
    // A pod that cannot start: held for half a minute, billed as the minimum of a minute.
    Request { lasts_us: 36 * SECOND_US, ..pod("cora-smoke", "cora", Whole(A100, 1), Nothing, at(21, 0), 0) },
];

/// A GPU that is lost: place on its node, when, for how long.
pub(crate) const LOST: (usize, u8, Instant, i64) = (0, 1, at(9, 0), 20 * MINUTE_US);
/// A GPU that the operator takes.
pub(crate) const MAINTENANCE: (usize, u8, Instant, i64) = (0, 5, at(8, 0), 2 * HOUR_US);
