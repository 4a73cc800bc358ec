//! Reading records out of the bytes of a segment, past whatever is damaged.

use super::frame::{HEAD_BYTES, Head, next_magic};

/// What lies at an offset.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A sound record; its event lies behind the head and the next record at `next`.
    Record {
        /// Its head.
        head: Head,
        /// Offset after it.
        next: usize,
    },
    /// Bytes that are no sound record, up to one that is.
    Damage {
        /// Offset of the next sound record.
        next: usize,
    },
    /// Nothing: the bytes end here.
    End,
    /// The begin of a record that was never finished: writing it was interrupted, and nobody has seen it.
    Torn,
    /// Bytes that are no sound record, and none after them. Something complete may have stood here.
    Ruin,
    /// More bytes are needed to tell.
    More,
}

/// What lies at `at`. `whole` says that nothing follows `bytes` in the file.
pub(crate) fn step(bytes: &[u8], at: usize, whole: bool) -> Step {
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.is_empty() {
        return if whole { Step::End } else { Step::More };
    }
    if let Some((head, next)) = sound(bytes, at) {
        return Step::Record { head, next };
    }
    let unfinished =
        rest.len() < HEAD_BYTES || Head::read(rest).is_some_and(|h| h.record_bytes() > rest.len());
    if unfinished {
        return if whole { Step::Torn } else { Step::More };
    }
    match resume(bytes, at + 1) {
        Some(next) => Step::Damage { next },
        None if !whole => Step::More,
        // A file system that had not written the data yet when the power went shows zeros.
        None if rest.iter().all(|byte| *byte == 0) => Step::Torn,
        None => Step::Ruin,
    }
}

/// The record at `at`, where it is complete and both checksums fit.
fn sound(bytes: &[u8], at: usize) -> Option<(Head, usize)> {
    let head = Head::read(bytes.get(at..)?)?;
    let next = at.checked_add(head.record_bytes())?;
    head.fits(bytes.get(at + HEAD_BYTES..next)?).then_some((head, next))
}

/// Offset of the first sound record from `from` on.
fn resume(bytes: &[u8], from: usize) -> Option<usize> {
    let mut from = from;
    loop {
        let at = next_magic(bytes, from)?;
        if sound(bytes, at).is_some() {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::frame::{Kind, Place, record};
    use gpuledger_domain::time::Instant;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn place(position: u64) -> Place {
        Place { stream: Uuid::nil(), position, sequence: position, window_end_us: None }
    }

    /// Records with these events, and the offset of each and of the end.
    fn file(events: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
        for (position, event) in (0_u64..).zip(events) {
            let at = Instant::from_micros(0);
            bytes.extend(record(Kind::Window, place(position), at, at, event).unwrap().1);
            offsets.push(bytes.len());
        }
        (bytes, offsets)
    }

    /// Positions of the sound records, and what stands at the end.
    fn read(bytes: &[u8]) -> (Vec<u64>, bool, Step) {
        let (mut found, mut damaged, mut at) = (Vec::new(), false, 0);
        loop {
            match step(bytes, at, true) {
                Step::Record { head, next } => {
                    found.push(head.place.position);
                    at = next;
                }
                Step::Damage { next } => {
                    damaged = true;
                    at = next;
                }
                end => return (found, damaged, end),
            }
        }
    }

    fn events() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..6)
    }

    #[test]
    fn a_file_cut_at_any_byte_keeps_the_records_before_the_cut() {
        let (bytes, offsets) = file(&[b"{\"a\":1}".to_vec(), Vec::new(), vec![b'x'; 50]]);
        for cut in 0..=bytes.len() {
            let whole = offsets.iter().filter(|offset| **offset <= cut).count() - 1;
            let (found, damaged, end) = read(&bytes[..cut]);
            assert_eq!(found, (0..u64::try_from(whole).unwrap()).collect::<Vec<_>>(), "cut at {cut}");
            assert!(!damaged, "cut at {cut}");
            let expected = if offsets.contains(&cut) { Step::End } else { Step::Torn };
            assert_eq!(end, expected, "cut at {cut}");
        }
    }

    #[test]
    fn zeros_after_the_last_record_are_a_write_that_never_came() {
        let (mut bytes, _) = file(&[b"{}".to_vec()]);
        bytes.extend([0; 4096]);
        assert_eq!(read(&bytes), (vec![0], false, Step::Torn));
    }

    #[test]
    fn what_cannot_be_told_yet_asks_for_more() {
        let (bytes, offsets) = file(&[b"{\"a\":1}".to_vec(), b"{}".to_vec()]);
        for cut in 0..bytes.len() {
            let known = if cut >= offsets[1] { offsets[1] } else { 0 };
            assert_eq!(step(&bytes[..cut], known, false), Step::More, "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn a_flipped_bit_costs_one_record_and_is_seen(events in events(), bit in any::<prop::sample::Index>()) {
            let (mut bytes, offsets) = file(&events);
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let hit = offsets.iter().filter(|offset| **offset <= bit / 8).count() - 1;
            let (found, damaged, end) = read(&bytes);
            let left: Vec<u64> = (0..events.len()).filter(|n| *n != hit).map(|n| u64::try_from(n).unwrap()).collect();
            prop_assert_eq!(found, left);
            // The last record's damage stands at the end, and is no torn write unless it looks like one.
            prop_assert!(damaged != (hit == events.len() - 1));
            prop_assert!(damaged || end != Step::End);
        }

        #[test]
        fn no_bytes_stop_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..400), whole in any::<bool>()) {
            let mut at = 0;
            while let Step::Record { next, .. } | Step::Damage { next } = step(&bytes, at, whole) {
                prop_assert!(next > at);
                at = next;
            }
        }
    }
}
