//! Comparison of complete lists: what is missing, and what is too much.

use std::fmt::Debug;

/// Each wanted row must be like one row that is there, and none may be left over.
pub(crate) fn rows<W: Debug, R: Debug>(
    wanted: &[W],
    there: Vec<R>,
    like: impl Fn(&W, &R) -> bool,
) -> Result<(), String> {
    let mut left = there;
    let mut missing = Vec::new();
    for want in wanted {
        match left.iter().position(|row| like(want, row)) {
            Some(at) => drop(left.remove(at)),
            None => missing.push(format!("\n    missing    {want:?}")),
        }
    }
    let too_much: Vec<String> = left.iter().map(|row| format!("\n    unexpected {row:?}")).collect();
    if missing.is_empty() && too_much.is_empty() {
        Ok(())
    } else {
        Err(format!("{}{}", missing.concat(), too_much.concat()))
    }
}
