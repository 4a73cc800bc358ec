//! What a report may be asked for: keys of its rows, and the weight of whole-GPU equivalents.

/// What rows are grouped by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupKey {
    /// The owner.
    Tenant,
    /// The owner's project.
    Project,
    /// What is priced.
    Sku,
    /// How it was bought.
    Class,
    /// The allocation.
    Allocation,
    /// The node of a placed unit.
    Node,
    /// The calendar day in the tenant's zone.
    Day,
    /// The hour in the tenant's zone, with its offset.
    Hour,
    /// The month in the tenant's zone.
    Month,
    /// A label of the grant.
    Label(String),
}

impl GroupKey {
    /// Reads a word of `--group-by`.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "tenant" => Self::Tenant,
            "project" => Self::Project,
            "sku" => Self::Sku,
            "class" => Self::Class,
            "allocation" => Self::Allocation,
            "node" => Self::Node,
            "day" => Self::Day,
            "hour" => Self::Hour,
            "month" => Self::Month,
            _ => Self::Label(word.strip_prefix("label.").filter(|name| !name.is_empty())?.to_owned()),
        })
    }

    /// The member of a row.
    pub fn name(&self) -> String {
        match self {
            Self::Tenant => "tenant".into(),
            Self::Project => "project".into(),
            Self::Sku => "sku".into(),
            Self::Class => "class".into(),
            Self::Allocation => "allocation".into(),
            Self::Node => "node".into(),
            Self::Day => "day".into(),
            Self::Hour => "hour".into(),
            Self::Month => "month".into(),
            Self::Label(name) => format!("label.{name}"),
        }
    }
}

/// Whole-GPU equivalents by another weight than memory slices (M-4). Weights never feed back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Memory slices by the GPU's memory slices: conserved.
    #[default]
    Memory,
    /// Compute slices by the GPU's compute slices: conserved.
    Compute,
    /// The larger of both: not conserved.
    Dominant,
    /// SM-active time, by the compute slices of the unit: of what was measured, and no more.
    Sm,
}

impl Weight {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Compute, Self::Dominant, Self::Sm];

    /// The word of `--weight`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Compute => "compute",
            Self::Dominant => "dominant",
            Self::Sm => "sm",
        }
    }

    /// The weight with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|weight| weight.as_str() == word)
    }
}
