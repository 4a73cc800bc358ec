//! Leaves read in order, as anybody can: each says its own index, the log's clock never goes back, and the chains of slices have no gap (L-4, L-5).

use crate::leaf::{Outline, VERSION};
use crate::links::{Ends, SLICES};
use gpuledger_domain::time::Instant;
use gpuledger_wire::time::parse_time;
use std::collections::BTreeMap;

/// What is wrong with a leaf.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeafFault {
    /// Not of this form.
    #[error("it is no leaf of {VERSION}: {0}")]
    Form(String),
    /// Its own index is another one.
    #[error("it says that it is leaf {0}")]
    Index(String),
    /// Sequenced before the leaf before it.
    #[error("it was sequenced at {0}, before the leaf before it")]
    Clock(String),
    /// A chain has a gap or a fork.
    #[error(
        "its link to slice {slice} of {gpu} is not the next of that chain: want seq {want_seq}, prev {want_prev:?}"
    )]
    Chain {
        /// Which GPU.
        gpu: String,
        /// Which slice.
        slice: u8,
        /// What would be right.
        want_seq: i64,
        /// What would be right.
        want_prev: Option<i64>,
    },
}

/// What is known after some leaves from the first on.
#[derive(Clone, Debug, Default)]
pub struct Review {
    last: Option<Instant>,
    chains: BTreeMap<String, Ends>,
}

impl Review {
    /// Takes the next leaf.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn take(&mut self, index: u64, bytes: &[u8]) -> Result<(), LeafFault> {
        let Outline(version, _, frame) =
            serde_json::from_slice(bytes).map_err(|error| LeafFault::Form(error.to_string()))?;
        if version != VERSION {
            return Err(LeafFault::Form(format!("its version is {version}")));
        }
        if frame.index.parse() != Ok(index) {
            return Err(LeafFault::Index(frame.index.into_owned()));
        }
        let time = |text: &str| parse_time(text).map_err(|why| LeafFault::Form(format!("{text} {why}")));
        time(&frame.recorded_at)?;
        let sequenced = time(&frame.sequenced_at)?;
        if self.last.is_some_and(|last| sequenced < last) {
            return Err(LeafFault::Clock(frame.sequenced_at.into_owned()));
        }
        self.last = Some(sequenced);
        for link in &frame.links {
            let number =
                |text: &str| text.parse::<i64>().map_err(|_| LeafFault::Form(format!("link {link:?}")));
            let prev = link.prev.as_deref().map(number).transpose()?;
            let (start, size) = (number(&link.start)?, number(&link.size)?);
            self.follow(index, &link.gpu, (start, size), number(&link.seq)?, prev)?;
        }
        Ok(())
    }

    fn follow(
        &mut self,
        index: u64,
        gpu: &str,
        (start, size): (i64, i64),
        seq: i64,
        prev: Option<i64>,
    ) -> Result<(), LeafFault> {
        if start < 0 || size < 1 || size > i64::from(SLICES) || start > i64::from(SLICES) - size {
            return Err(LeafFault::Form(format!(
                "a link has slices {start} to {}",
                start.saturating_add(size)
            )));
        }
        if !self.chains.contains_key(gpu) {
            self.chains.insert(gpu.to_owned(), Ends::default());
        }
        let Some(ends) = self.chains.get_mut(gpu) else { return Ok(()) };
        let slices = (0..SLICES).zip(ends.counts.iter_mut().zip(&mut ends.lasts));
        for (slice, (count, last)) in slices {
            if i64::from(slice) < start || i64::from(slice) >= start + size {
                continue;
            }
            let want_prev = (*count > 0).then_some(*last);
            if seq != *count || prev != want_prev {
                return Err(LeafFault::Chain { gpu: gpu.to_owned(), slice, want_seq: *count, want_prev });
            }
            (*count, *last) = (*count + 1, i64::try_from(index).unwrap_or(i64::MAX));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::tests::{GRANT, composed};
    use crate::links::{Places, link};

    fn log() -> Vec<Vec<u8>> {
        let mut chains = BTreeMap::new();
        let places = [Places::from([("g".to_owned(), 0xff)]), Places::from([("g".to_owned(), 0x0f)])];
        let leaf = |index: u64| {
            let touched = &places[usize::try_from(index % 2).unwrap()];
            let links = link(i64::try_from(index).unwrap(), touched, &mut chains);
            composed(index, GRANT, links)
        };
        (0..6).map(leaf).collect()
    }

    fn first_fault(log: &[Vec<u8>]) -> Option<(u64, LeafFault)> {
        let mut review = Review::default();
        (0..).zip(log).find_map(|(index, leaf)| review.take(index, leaf).err().map(|fault| (index, fault)))
    }

    #[test]
    fn an_untouched_log_has_no_fault_l_5() {
        assert_eq!(first_fault(&log()), None);
    }

    #[test]
    fn a_left_out_or_exchanged_leaf_is_found_where_it_stands_l_4() {
        let mut cut = log();
        cut.remove(2);
        assert!(matches!(first_fault(&cut), Some((2, LeafFault::Index(_)))));
        let mut swapped = log();
        swapped.swap(1, 4);
        assert!(matches!(first_fault(&swapped), Some((1, LeafFault::Index(_)))));
    }

    #[test]
    fn a_chain_that_skips_a_leaf_is_found_l_5() {
        let mut chains = BTreeMap::new();
        let whole = Places::from([("g".to_owned(), 0xff)]);
        let first = composed(0, GRANT, link(0, &whole, &mut chains));
        link(1, &whole, &mut chains);
        let third = composed(1, GRANT, link(2, &whole, &mut chains));
        assert!(matches!(first_fault(&[first, third]), Some((1, LeafFault::Chain { want_seq: 1, .. }))));
    }

    #[test]
    fn what_is_no_leaf_is_an_error_and_never_a_panic() {
        let mut review = Review::default();
        for odd in ["", "[]", "[1,2,3]", r#"["gpuledger.audit.leaf.v1","t",{}]"#, "\u{0}"] {
            assert!(matches!(review.take(0, odd.as_bytes()), Err(LeafFault::Form(_))), "{odd}");
        }
    }
}
