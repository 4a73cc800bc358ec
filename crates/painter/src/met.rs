//! Which of the harder rules a painting met, so that a test of the two methods can tell how far its cases reach.

/// What was met on any of the GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// A live unit was not charged because others had its slices.
    pub contest: bool,
    /// A held unit went to `fault`.
    pub fault_overlap: bool,
    /// A unit was held by several, or in part.
    pub shares: bool,
    /// Reported work divided a unit's time.
    pub work: bool,
    /// Measured time above zero was a tenant's part.
    pub measured: bool,
    /// What a unit had left was handed to its holders.
    pub handed_out: bool,
    /// A unit was held in a billing state.
    pub state: bool,
    /// A hold ended by no release and no snapshot: by the last proof of life, a decommissioning or the horizon.
    pub missing_release: bool,
}

impl Met {
    pub(crate) fn add(&mut self, other: Self) {
        self.contest |= other.contest;
        self.fault_overlap |= other.fault_overlap;
        self.shares |= other.shares;
        self.work |= other.work;
        self.measured |= other.measured;
        self.handed_out |= other.handed_out;
        self.state |= other.state;
        self.missing_release |= other.missing_release;
    }
}
