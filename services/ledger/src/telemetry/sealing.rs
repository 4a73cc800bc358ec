//! From windows to blocks: one UTC hour each, sorted by node, so that an hour is packed node by node.

use gpuledger_domain::time::HOUR_US;
use gpuledger_storage::blocks::NewBlock;
use gpuledger_wire::arrived::Arrived;
use gpuledger_wire::block::{BlockError, Sealer};

/// A block ends behind the window that brings it here, before compression. Larger ones compress hardly better; smaller ones are read with less
/// that is not asked for.
const FULL_BYTES: usize = 256 << 10;

/// The blocks of the windows at these places.
pub(crate) fn seal(windows: &[Arrived], places: &[usize]) -> Result<Vec<NewBlock>, BlockError> {
    let mut chosen: Vec<&Arrived> = places.iter().filter_map(|place| windows.get(*place)).collect();
    chosen.sort_by_key(|window| (hour_of(window), &window.node, &window.stream, window.sequence));
    let mut sealer = Sealer::new()?;
    let (mut blocks, mut begun) = (Vec::new(), 0);
    for (place, window) in chosen.iter().enumerate() {
        sealer.push(window);
        let is_last = chosen.get(place + 1).is_none_or(|next| hour_of(next) != hour_of(window));
        if is_last || sealer.raw_bytes() >= FULL_BYTES {
            let of_block = chosen.get(begun..=place).unwrap_or_default();
            begun = place + 1;
            blocks.extend(block(of_block, &mut sealer)?);
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
        let places: Vec<usize> = (0..40).collect();
        let blocks = seal(&windows, &places).unwrap();
        let mut opener = Opener::new().unwrap();
        let mut seen = Vec::new();
        for block in &blocks {
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
}
