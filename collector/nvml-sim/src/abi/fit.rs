//! A library without the functions that a driver lacks.
//!
//! Viewers choose the layout of a process record by the symbols they find, so an old driver is only simulated well if newer symbols are not there.

use super::since;
use crate::scenario::Scenario;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Copies a built library without the functions that the scenario's first driver lacks, and without those it names as missing; returns how many
/// were taken out.
///
/// A symbol is found by the hash of its name and then by its text. With another first letter in the table of names the text is no longer found, and
/// nothing else of the file changes.
///
/// # Errors
/// A file cannot be read or written.
pub fn fit(library: &Path, scenario: &Scenario, to: &Path) -> io::Result<usize> {
    let release = since::release(&scenario.driver.version);
    let named = scenario.missing_functions.iter().map(String::as_str);
    let unwanted: BTreeSet<&[u8]> = since::missing(release).chain(named).map(str::as_bytes).collect();
    let mut image = std::fs::read(library)?;
    let taken = rename(&mut image, &unwanted);
    std::fs::write(to, image)?;
    Ok(taken)
}

/// Changes the first letter of names wherever they stand between two zero bytes, as in tables of symbols; returns how many names were found.
fn rename(image: &mut [u8], unwanted: &BTreeSet<&[u8]>) -> usize {
    let mut found = BTreeSet::new();
    for text in image.split_mut(|byte| *byte == 0) {
        if let Some(name) = unwanted.get(&*text) {
            found.insert(*name);
            text[0] = b'x';
        }
    }
    found.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_are_changed() {
        let mut image = *b"\0nvmlA\0nvmlA_v2\0mentions nvmlA here\0nvmlA\0";
        let unwanted: BTreeSet<&[u8]> = [b"nvmlA", b"nvmlB"].into_iter().map(<[u8; 5]>::as_slice).collect();
        assert_eq!(rename(&mut image, &unwanted), 1);
        assert_eq!(&image, b"\0xvmlA\0nvmlA_v2\0mentions nvmlA here\0xvmlA\0");
    }
}
