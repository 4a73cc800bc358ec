//! Sets of memory slices of one GPU.

use crate::fact::Placement;
use std::fmt;

/// Some memory slices of one GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slices(u32);

impl Slices {
    /// The slices of a placement; none: all of a GPU with so many. Slices beyond the 32nd are no slices.
    pub fn of(placement: Option<Placement>, memory_slices: u8) -> Self {
        let Placement { start, size } = placement.unwrap_or(Placement { start: 0, size: memory_slices });
        (start..start.saturating_add(size)).fold(Self(0), Self::with)
    }

    /// These and one more.
    #[must_use]
    pub fn with(self, slice: u8) -> Self {
        Self(self.0 | bit(slice))
    }

    /// Whether the slice is one of them.
    pub fn has(self, slice: u8) -> bool {
        self.0 & bit(slice) != 0
    }

    /// Those in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them, lowest first.
    pub fn each(self) -> impl Iterator<Item = u8> {
        (0..32).filter(move |slice| self.has(*slice))
    }

    /// As runs, first and last slice of each.
    fn runs(self) -> Vec<(u8, u8)> {
        let mut runs: Vec<(u8, u8)> = Vec::new();
        for slice in self.each() {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == slice => *last = slice,
                _ => runs.push((slice, slice)),
            }
        }
        runs
    }
}

fn bit(slice: u8) -> u32 {
    1_u32.checked_shl(u32::from(slice)).unwrap_or_default()
}

impl FromIterator<u8> for Slices {
    fn from_iter<T: IntoIterator<Item = u8>>(slices: T) -> Self {
        slices.into_iter().fold(Self(0), Self::with)
    }
}

impl fmt::Display for Slices {
    /// Such as `0-1,4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.runs().into_iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if first == last { write!(f, "{comma}{first}")? } else { write!(f, "{comma}{first}-{last}")? }
        }
        Ok(())
    }
}
