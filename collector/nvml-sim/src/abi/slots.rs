//! Things that C holds by a number.

use super::code::Code;

/// A table of things, each at the lowest place that was free.
#[derive(Debug)]
pub(super) struct Slots<T>(Vec<Option<T>>);

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Slots<T> {
    /// Puts a thing in.
    pub(super) fn put(&mut self, thing: T) -> Result<u16, Code> {
        let place = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        let slot = u16::try_from(place).map_err(|_| Code::UNKNOWN)?;
        match self.0.get_mut(place) {
            Some(cell) => *cell = Some(thing),
            None => self.0.push(Some(thing)),
        }
        Ok(slot)
    }

    /// The thing at a place.
    pub(super) fn get(&mut self, slot: u16) -> Result<&mut T, Code> {
        self.0.get_mut(usize::from(slot)).and_then(Option::as_mut).ok_or(Code::INVALID_ARGUMENT)
    }

    /// Takes a thing out.
    pub(super) fn take(&mut self, slot: u16) -> Result<T, Code> {
        self.0.get_mut(usize::from(slot)).and_then(Option::take).ok_or(Code::INVALID_ARGUMENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_place_is_used_again() {
        let mut slots = Slots::default();
        assert_eq!((slots.put('a'), slots.put('b')), (Ok(0), Ok(1)));
        assert_eq!(slots.take(0), Ok('a'));
        assert_eq!(slots.get(0), Err(Code::INVALID_ARGUMENT));
        assert_eq!(slots.put('c'), Ok(0));
        assert_eq!(slots.get(1), Ok(&mut 'b'));
    }
}
