//! The recovery action: what the driver wants done to a GPU (field 230).

/// What the driver wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// Nothing: as far as the driver knows the GPU is sound.
    Nothing,
    /// A reset of the GPU before it can be used.
    Reset,
    /// A reboot of the node before it can be used.
    Reboot,
    /// An end of peer-to-peer traffic; work on the GPU itself goes on.
    DrainPeers,
    /// No new work, then a reset; work that runs goes on.
    DrainAndReset,
    /// One this version does not know.
    Other(u32),
}

impl From<u32> for Recovery {
    fn from(action: u32) -> Self {
        match action {
            0 => Self::Nothing,
            1 => Self::Reset,
            2 => Self::Reboot,
            3 => Self::DrainPeers,
            4 => Self::DrainAndReset,
            other => Self::Other(other),
        }
    }
}

impl Recovery {
    /// Whether the GPU cannot be used until it is done. A drain leaves running work alone, so its holder is charged on.
    pub const fn stops_work(self) -> bool {
        matches!(self, Self::Reset | Self::Reboot)
    }

    /// In words.
    pub fn words(self) -> String {
        match self {
            Self::Nothing => "the driver asks for nothing".to_owned(),
            Self::Reset => "the driver asks for a reset".to_owned(),
            Self::Reboot => "the driver asks for a reboot of the node".to_owned(),
            Self::DrainPeers => "the driver asks to end peer-to-peer traffic".to_owned(),
            Self::DrainAndReset => "the driver asks to drain and reset".to_owned(),
            Self::Other(action) => {
                format!("the driver asks for recovery action {action}, which is not known")
            }
        }
    }
}
