//! One amount by minute of an hour.

/// Minutes of an hour.
pub const MINUTES: u8 = 60;

/// A number that series are made of.
pub trait Amount: Copy + Default + Eq + Into<u128> + TryFrom<u128> {
    /// The sum, held at the greatest value.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

impl Amount for u64 {
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Amount for u128 {
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

/// An amount for each minute, 0 to 59, that has one. A minute without a reading is absent, which is not zero (M-8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series<T> {
    present: u64,
    /// Empty until the first reading, then one for each minute.
    values: Vec<T>,
}

impl<T> Default for Series<T> {
    fn default() -> Self {
        Self { present: 0, values: Vec::new() }
    }
}

impl<T: Amount> Series<T> {
    /// Adds to a minute; one beyond the hour is left out.
    pub fn add(&mut self, minute: u8, amount: T) {
        if minute >= MINUTES {
            return;
        }
        if self.values.is_empty() {
            self.values = vec![T::default(); usize::from(MINUTES)];
        }
        self.present |= 1 << minute;
        if let Some(value) = self.values.get_mut(usize::from(minute)) {
            *value = value.plus(amount);
        }
    }

    /// Adds another series.
    pub fn merge(&mut self, other: &Self) {
        for (minute, amount) in other.iter() {
            self.add(minute, amount);
        }
    }

    /// The amount of a minute.
    pub fn get(&self, minute: u8) -> Option<T> {
        let is_there = minute < MINUTES && self.present & (1 << minute) != 0;
        self.values.get(usize::from(minute)).copied().filter(|_| is_there)
    }

    /// Minutes that have an amount, in order, with it.
    pub fn iter(&self) -> impl Iterator<Item = (u8, T)> {
        (0..MINUTES).filter_map(|minute| self.get(minute).map(|amount| (minute, amount)))
    }

    /// The sum of the hour; none where no minute has an amount.
    pub fn sum(&self) -> Option<u128> {
        (self.present != 0)
            .then(|| self.iter().fold(0, |sum: u128, (_, amount)| sum.saturating_add(amount.into())))
    }

    /// Whether no minute has an amount.
    pub fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// A bit for each minute that has an amount, the first lowest.
    pub(super) fn present(&self) -> u64 {
        self.present
    }
}
