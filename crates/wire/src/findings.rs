//! The kinds of findings, each with its severity and the threshold from which it is raised. `schemas/findings.json` is made of it.

use gpuledger_domain::finding::{Kind, Severity};

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindingKind {
    /// Its name in the contract.
    pub kind: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// From when on it is raised, in words.
    pub threshold: &'static str,
}

/// The kind of this name.
pub fn finding_kind(kind: &str) -> Option<&'static FindingKind> {
    FINDINGS.iter().find(|finding| finding.kind == kind)
}

/// A kind the ledger raises: name and severity are the domain's.
const fn raised(kind: Kind, threshold: &'static str) -> FindingKind {
    FindingKind { kind: kind.as_str(), severity: kind.severity(), threshold }
}

/// Every kind, in the order of the contract.
pub const FINDINGS: &[FindingKind] = &[
    raised(
        Kind::Conflict,
        "two contents under one (source, id), or two different grants of one allocation: from the second on",
    ),
    raised(Kind::Future, "an event later than the server's clock plus 5 minutes: at once, until it is due"),
    raised(Kind::NotEntitled, "an event whose source is not bound to its principal: at once"),
    raised(
        Kind::LateRefused,
        "a fact that would change a period closed longer ago than the seller's lateness limit (90 days): at once",
    ),
    raised(Kind::BadValue, "an event that cannot be read, or a field that cannot be taken: at once"),
    raised(
        Kind::Waiting,
        "a fact whose companion is missing (a grant on an unknown GPU, a MIG UUID no inventory names, a placement without its allocation): until it comes",
    ),
    raised(Kind::UnknownTenant, "usage of a tenant that no business object names: from the first fact"),
    raised(Kind::ReleaseWithoutGrant, "a release whose grant has not come: until it comes"),
    raised(Kind::TransferAfterEnd, "a transfer at or after its allocation's end: at once"),
    raised(Kind::ZeroLength, "an allocation that ends at the instant it starts: at once"),
    raised(
        Kind::EndBeforeStart,
        "an allocation with releases before its start only: until one at or after it comes",
    ),
    raised(
        Kind::OwnerMismatch,
        "processes of a job or pod, for 10 s in minutes that were held whole: on a unit that their own allocation does not hold while it is in force, or on a shared unit that none of those who hold it names: until the unit was measured without them",
    ),
    raised(
        Kind::Contested,
        "an allocation that touches slices another one holds: for as long as both would hold them",
    ),
    raised(
        Kind::PlacementMismatch,
        "a grant or placement that differs from the inventory, or devices beyond the granted count: from the first instant",
    ),
    raised(
        Kind::UnknownProfile,
        "a MIG profile, or a model with MIG on, that is in no table of geometry: for as long as inventories list it; of a grant that an inventory does not explain, from its start",
    ),
    raised(Kind::Oversubscribed, "shares of one unit that add up to more than 1: for as long as they do"),
    raised(
        Kind::Unconfirmed,
        "a hold without release on a node unheard of for longer than the observation gap (15 minutes): until proof of life or the lease (1 hour) ends it",
    ),
    raised(
        Kind::LostNode,
        "a node unheard of for longer than the lease (1 hour): from its last proof of life until the next",
    ),
    raised(
        Kind::Gap,
        "a hole in a telemetry stream's sequence: for the time between the windows around it, until it is filled; and a time in which a node says itself that it could not measure",
    ),
    raised(
        Kind::ClockSkew,
        "a source whose facts are dated more than 1 minute after they were received: until its next fact that is not; and a node of whose unit more than a minute was measured in one minute, so that its windows overlap. A clock that is late cannot be told from a delivery that is",
    ),
    raised(
        Kind::Unattributed,
        "a process for 10 s, or 10 s of SM-active time without one, on a unit in whole minutes in which no allocation held it and it was neither scrubbed nor broken: until the unit was measured without it",
    ),
    raised(
        Kind::ForeignProcess,
        "processes of a job or pod that is not the holder's on an exclusively held unit, for 10 s in minutes that were held whole: until the unit was measured without them",
    ),
    raised(
        Kind::HeldAfterRelease,
        "processes of a job or pod on a unit that its allocation held before its end, for 10 s in minutes that begin after it, while no allocation of that name is in force: until the unit was measured without them",
    ),
    raised(
        Kind::IdleAllocation,
        "a held unit with less than 1 % of SM-active time in each minute, for 1 hour of measured time in a row: until it is active or its hold ends",
    ),
    raised(Kind::ResidueUnknown, "a residue domain whose last holder is not known: once per GPU"),
    raised(
        Kind::ResidueViolation,
        "a grant to another tenant on a domain without passed, verified scrubs since the last holder's end: at the grant",
    ),
    raised(
        Kind::ScrubMissing,
        "two allocations of one tenant without a scrub or a record that it was skipped: at the second grant",
    ),
    raised(
        Kind::ScrubLate,
        "release to scrub start above 1 minute, or to passed above 10 minutes: once the limit is over",
    ),
    raised(Kind::ScrubFailed, "a scrub with the result failed: at its end"),
    raised(Kind::ScrubIncomplete, "a scrub that is incomplete, or passed without full proof: at its end"),
    raised(Kind::ScrubSkipped, "a scrub skipped on record: at its time"),
    raised(Kind::Unpriced, "charged usage of a SKU without a price: from the first microsecond"),
];
