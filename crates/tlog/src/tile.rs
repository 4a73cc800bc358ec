//! Tiles (`c2sp.org/tlog-tiles`): 256 hashes of one level in a file, so that a log is served as static files.

use crate::hash::Hash;
use crate::tree::Node;

/// Hashes in a full tile, and entries in a full bundle of entries.
pub const WIDTH: u64 = 256;
/// Levels of the tree that one level of tiles spans.
pub const HEIGHT: u8 = 8;
/// The longest entry: its length travels in 16 bits.
pub const ENTRY_BYTES_MAX: usize = 65_535;

/// A tile of hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tile {
    /// Level of tiles: its hashes are nodes of tree level `8 * level`. At most 5.
    pub level: u8,
    /// From the left, in its level.
    pub index: u64,
    /// Hashes it has, 1 to 256.
    pub width: u16,
}

impl Tile {
    /// `tile/LEVEL/INDEX[.p/WIDTH]`.
    pub fn path(self) -> String {
        format!("tile/{}/{}", self.level, place(self.index, self.width))
    }

    /// The nodes whose hashes it has, in order.
    pub fn nodes(self) -> impl Iterator<Item = Node> {
        let first = self.index * WIDTH;
        let level = self.level.saturating_mul(HEIGHT);
        (first..first + u64::from(self.width)).map(move |index| Node { level, index })
    }
}

/// `tile/entries/INDEX[.p/WIDTH]`: the path of the bundle of entries with `index`.
pub fn entries_path(index: u64, width: u16) -> String {
    format!("tile/entries/{}", place(index, width))
}

/// What a path of C2SP's layout names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named {
    /// A tile of hashes.
    Hashes(Tile),
    /// A bundle of entries.
    Entries {
        /// From the left.
        index: u64,
        /// Entries it has, 1 to 256.
        width: u16,
    },
}

/// Reads a path as [`Tile::path`] and [`entries_path`] write it; none for any other spelling.
pub fn read_path(path: &str) -> Option<Named> {
    let (level, place) = path.strip_prefix("tile/")?.split_once('/')?;
    let (groups, width) = match place.split_once(".p/") {
        Some((groups, width)) => (groups, width.parse().ok().filter(|width| (1..=255).contains(width))?),
        None => (place, 256),
    };
    let mut index = 0_u64;
    for group in groups.split('/') {
        let digits =
            group.strip_prefix('x').unwrap_or(group).parse::<u64>().ok().filter(|digits| *digits < 1000)?;
        index = index.checked_mul(1000)?.checked_add(digits)?;
    }
    let (named, again) = if level == "entries" {
        (Named::Entries { index, width }, entries_path(index, width))
    } else {
        let tile = Tile { level: level.parse().ok().filter(|level| *level < HEIGHT)?, index, width };
        (Named::Hashes(tile), tile.path())
    };
    (again == path).then_some(named)
}

/// The index in groups of three digits, all but the last marked with `x`; a partial one says its width.
fn place(index: u64, width: u16) -> String {
    let mut groups = vec![format!("{:03}", index % 1000)];
    let mut rest = index / 1000;
    while rest > 0 {
        groups.push(format!("x{:03}", rest % 1000));
        rest /= 1000;
    }
    groups.reverse();
    let path = groups.join("/");
    if u64::from(width) == WIDTH { path } else { format!("{path}.p/{width}") }
}

/// All tiles of hashes that the tree of `size` leaves has beyond those, full, of the tree of `old` leaves: lowest level first. Partial tiles are not
/// hashed upward.
pub fn new_tiles(old: u64, size: u64) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for level in 0..HEIGHT {
        let shift = u32::from(level) * u32::from(HEIGHT);
        let (before, count) = (old >> shift, size >> shift);
        if count == 0 {
            break;
        }
        for (index, width) in new_places(before, count) {
            tiles.push(Tile { level, index, width });
        }
    }
    tiles
}

/// Index and width of the tiles or bundles over `count` items that are not full ones over the first `before` of them.
pub fn new_places(before: u64, count: u64) -> Vec<(u64, u16)> {
    if before == count {
        return Vec::new();
    }
    let mut places = Vec::new();
    for index in before / WIDTH..count.div_ceil(WIDTH) {
        let width = (count - index * WIDTH).min(WIDTH);
        places.push((index, u16::try_from(width).unwrap_or(256)));
    }
    places
}

/// The tile that stores the hash of a node, or of its descendants, in the tree of `size` leaves: the tile and, within it, which hashes make the
/// node.
pub fn tile_of(node: Node, size: u64) -> Option<(Tile, std::ops::Range<usize>)> {
    let level = node.level / HEIGHT;
    let above = node.level % HEIGHT;
    let first = node.index.checked_shl(u32::from(above))?;
    let last = first.checked_add(1 << above)?;
    let count = size.checked_shr(u32::from(level) * u32::from(HEIGHT))?;
    if last > count {
        return None;
    }
    let index = first / WIDTH;
    let width = u16::try_from((count - index * WIDTH).min(WIDTH)).ok()?;
    let within = usize::try_from(first % WIDTH).ok()?;
    Some((Tile { level, index, width }, within..within + (1 << above)))
}

/// The hash over hashes of one level, a power of two of them.
pub fn fold(hashes: &[Hash]) -> Option<Hash> {
    match hashes {
        [] => None,
        [one] => Some(*one),
        _ => {
            let (left, right) = hashes.split_at(hashes.len() / 2);
            Some(Hash::of_node(fold(left)?, fold(right)?))
        }
    }
}

/// The bytes of a tile: its hashes, one after the other.
pub fn tile_bytes(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

/// The hashes of a tile of this width; none where the bytes are not as many.
pub fn read_tile(bytes: &[u8], width: u16) -> Option<Vec<Hash>> {
    let (hashes, rest) = bytes.as_chunks::<32>();
    (rest.is_empty() && hashes.len() == usize::from(width)).then(|| hashes.iter().map(|h| Hash(*h)).collect())
}

/// Adds an entry to a bundle of entries; false where it is too long.
pub fn push_entry(bundle: &mut Vec<u8>, entry: &[u8]) -> bool {
    let Ok(length) = u16::try_from(entry.len()) else { return false };
    bundle.extend(length.to_be_bytes());
    bundle.extend(entry);
    true
}

/// The entries of a bundle of this width; none where the bytes are no such bundle.
pub fn read_entries(mut bytes: &[u8], width: u16) -> Option<Vec<&[u8]>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let (entry, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        entries.push(entry);
        bytes = rest;
    }
    (entries.len() == usize::from(width)).then_some(entries)
}
