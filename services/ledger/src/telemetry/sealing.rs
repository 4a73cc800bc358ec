//! From windows to blocks: one UTC hour each, sorted by node, so that an hour is packed node by node.

use gpuledger_domain::time::HOUR_US;
use gpuledger_storage::blocks::NewBlock;
use gpuledger_wire::arrived::Arrived;
use gpuledger_wire::block::{BlockError, Sealer};

/// A block ends behind the window that brings it here, before compression. Larger ones compress hardly better; smaller ones are read with less
/// that is not asked for.
const FULL_BYTES: usize = 256 << 10;

/// A block, and the places of its windows among those it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    pub(crate) block: NewBlock,
    places: Vec<usize>,
}

impl Sealed {
    /// Whether every window in it is chosen.
    fn is_whole(&self, chosen: &[bool]) -> bool {
        self.places.iter().all(|place| chosen.get(*place) == Some(&true))
    }
}

/// Of blocks that were made ahead those that have chosen windows only, and the places of the chosen ones that are in none of them: they want a
/// block yet.
pub(crate) fn usable<'b>(blocks: &'b [Sealed], chosen: &[bool]) -> (Vec<&'b NewBlock>, Vec<usize>) {
    let mut missing = chosen.to_vec();
    let mut whole = Vec::with_capacity(blocks.len());
    for sealed in blocks.iter().filter(|sealed| sealed.is_whole(chosen)) {
        whole.push(&sealed.block);
        for place in &sealed.places {
            missing[*place] = false;
        }
    }
    let missing = missing.iter().enumerate().filter(|(_, is_missing)| **is_missing);
    (whole, missing.map(|(place, _)| place).collect())
}

/// The blocks of the windows at these places.
pub(crate) fn seal(windows: &[Arrived], places: Vec<usize>) -> Result<Vec<Sealed>, BlockError> {
    let mut chosen: Vec<(usize, &Arrived)> =
        places.into_iter().filter_map(|place| Some((place, windows.get(place)?))).collect();
    chosen.sort_by_key(|(_, window)| (hour_of(window), &window.node, &window.stream, window.sequence));
    let mut sealer = Sealer::new()?;
    let (mut blocks, mut begun) = (Vec::new(), 0);
    for (at, (_, window)) in chosen.iter().enumerate() {
        sealer.push(window);
        let is_last = chosen.get(at + 1).is_none_or(|(_, next)| hour_of(next) != hour_of(window));
        if is_last || sealer.raw_bytes() >= FULL_BYTES {
            let (places, of_block): (Vec<usize>, Vec<&Arrived>) =
                chosen.get(begun..=at).unwrap_or_default().iter().copied().unzip();
            begun = at + 1;
            let block = block(&of_block, &mut sealer)?;
            blocks.extend(block.map(|block| Sealed { block, places }));
        }
    }
    Ok(blocks)
}

fn hour_of(window: &Arrived) -> i64 {
    window.start.floor(HOUR_US).as_micros()
}

fn block(windows: &[&Arrived], sealer: &mut Sealer) -> Result<Option<NewBlock>, BlockError> {
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else { return Ok(None) };
    let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let rows = windows.iter().map(|window| usize::try_from(window.rows).unwrap_or(usize::MAX)).sum();
    Ok(Some(NewBlock {
        hour_us: hour_of(first),
        first_node: first.node.clone(),
        last_node: last.node.clone(),
        windows: number(windows.len()),
        rows: number(rows),
        raw_bytes: number(sealer.raw_bytes()),
        last_end_us: windows.iter().map(|window| window.end.as_micros()).max().unwrap_or_default(),
        body: sealer.seal()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_domain::time::Instant;
    use gpuledger_wire::arrived::Encoding;
    use gpuledger_wire::block::Opener;

    fn window(node: &str, sequence: i64, start_us: i64, bytes: usize) -> Arrived {
        Arrived {
            source: format!("/nodes/{node}"),
            id: format!("s-{sequence}"),
            time: Instant::from_micros(start_us),
            node: node.to_owned(),
            stream: "s".to_owned(),
            sequence,
            start: Instant::from_micros(start_us),
            end: Instant::from_micros(start_us + 10),
            rows: 3,
            encoding: Encoding::Protobuf,
            body: vec![7; bytes],
        }
    }

    #[test]
    fn a_block_has_one_hour_and_is_sorted_by_node_and_not_much_longer_than_a_quarter_of_a_mib() {
        let windows: Vec<Arrived> = (0..40)
            .map(|n| window(if n % 2 == 0 { "b" } else { "a" }, n, (n % 4 / 2) * HOUR_US, 40_000))
            .chain([window("c", 0, 5, 10)])
            .collect();
        let blocks = seal(&windows, (0..40).collect()).unwrap();
        let mut opener = Opener::new().unwrap();
        let mut seen = Vec::new();
        for Sealed { block, .. } in &blocks {
            let opened = opener.open(&block.body).unwrap();
            let inside: Vec<_> = opened.windows().map(|w| w.unwrap()).collect();
            assert_eq!(inside.len(), usize::try_from(block.windows).unwrap());
            assert_eq!(block.rows, block.windows * 3);
            assert_eq!(
                (inside[0].node, inside[inside.len() - 1].node),
                (&*block.first_node, &*block.last_node)
            );
            assert!(inside.is_sorted_by_key(|w| w.node));
            assert!(inside.iter().all(|w| w.time.floor(HOUR_US).as_micros() == block.hour_us));
            assert!(usize::try_from(block.raw_bytes).unwrap() < FULL_BYTES + 50_000);
            seen.extend(inside.iter().map(|w| (w.node.to_owned(), w.id.to_owned())));
        }
        seen.sort();
        let mut wanted: Vec<_> = windows[..40].iter().map(|w| (w.node.clone(), w.id.clone())).collect();
        wanted.sort();
        assert_eq!(seen, wanted);
        assert!(blocks.len() > 2, "{}", blocks.len());
    }

    #[test]
    fn of_blocks_made_ahead_those_with_a_window_that_counted_before_are_made_anew() {
        let windows: Vec<Arrived> = (0..40).map(|n| window("a", n, 0, 40_000)).collect();
        let ahead = seal(&windows, (0..40).collect()).unwrap();
        assert!(ahead.len() > 3, "{}", ahead.len());
        let mut is_new = vec![true; 40];
        let (whole, missing) = usable(&ahead, &is_new);
        assert_eq!((whole.len(), missing.len()), (ahead.len(), 0));
        is_new[8] = false;
        let (whole, missing) = usable(&ahead, &is_new);
        assert_eq!(whole.len(), ahead.len() - 1);
        let anew = seal(&windows, missing).unwrap();
        let count: i32 =
            whole.into_iter().chain(anew.iter().map(|sealed| &sealed.block)).map(|block| block.windows).sum();
        assert_eq!(count, 39, "each of the others once");
        assert_eq!(usable(&[], &[true, false]), (Vec::new(), vec![0]), "none was made ahead");
    }
}
