//! Paths of tiles as C2SP writes them: the index in groups of three digits, all but the last marked with `x`, and the width of a partial one.

use gpuledger_tlog::tile::Tile;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Hashes.
    Tile(Tile),
    /// Entries: index and width.
    Entries(u64, u16),
}

/// Reads `LEVEL/INDEX[.p/WIDTH]` or `entries/INDEX[.p/WIDTH]`; none for any other writing, so that each tile has one address.
pub(super) fn read(path: &str) -> Option<Asked> {
    let (kind, place) = path.split_once('/')?;
    let (place, width) = match place.split_once(".p/") {
        Some((place, width)) => (place, decimal(width).filter(|width| (1..256).contains(width))?),
        None => (place, 256),
    };
    let mut index: u64 = 0;
    let mut groups = place.split('/').peekable();
    let is_padded = place.starts_with("x000");
    while let Some(group) = groups.next() {
        let digits = if groups.peek().is_some() { group.strip_prefix('x')? } else { group };
        if digits.len() != 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        index = index.checked_mul(1_000)?.checked_add(digits.parse().ok()?)?;
    }
    if is_padded {
        return None;
    }
    match kind {
        "entries" => Some(Asked::Entries(index, width)),
        _ => {
            let level =
                decimal(kind).and_then(|level| u8::try_from(level).ok()).filter(|level| *level < 8)?;
            Some(Asked::Tile(Tile { level, index, width }))
        }
    }
}

/// A decimal without leading zeros.
fn decimal(text: &str) -> Option<u16> {
    let number = text.parse::<u16>().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_is_written() {
        for (level, index, width) in
            [(0, 0, 256), (0, 5, 1), (1, 999, 255), (3, 1_000, 256), (7, 1_234_067, 12)]
        {
            let tile = Tile { level, index, width };
            assert_eq!(read(tile.path().strip_prefix("tile/").unwrap()), Some(Asked::Tile(tile)));
        }
        assert_eq!(read("entries/x001/x234/067.p/3"), Some(Asked::Entries(1_234_067, 3)));
    }

    #[test]
    fn other_writings_are_no_path() {
        for path in [
            "",
            "0",
            "0/",
            "0/1",
            "0/0001",
            "0/x001",
            "0/x000/001",
            "8/000",
            "00/000",
            "0/000.p/0",
            "0/000.p/256",
            "0/000.p/01",
            "0/000.p/",
            "entries/abc",
            "data/000",
            "0/x999/x999/x999/x999/x999/x999/x999/999",
        ] {
            assert_eq!(read(path), None, "{path}");
        }
    }
}
