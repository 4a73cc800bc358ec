//! Numbers from a seed: splitmix64, the same on every machine.

/// A stream of numbers.
#[derive(Clone, Debug)]
pub struct Draw {
    state: u64,
}

impl Draw {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number of `[from, to]`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        let width = to.saturating_sub(from).saturating_add(1);
        from + self.number() % width.max(1)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.number() % 100 < percent
    }

    /// One of them; none where there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let last = from.len().checked_sub(1)?;
        let index = self.between(0, u64::try_from(last).ok()?);
        from.get(usize::try_from(index).ok()?)
    }
}
