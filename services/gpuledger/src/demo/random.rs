//! The system's chance.

use anyhow::{Context, Result};
use std::io::Read;

/// So many random bytes, in hex.
///
/// # Errors
/// The system has none.
pub(crate) fn hex(bytes: usize) -> Result<String> {
    let mut drawn = vec![0; bytes];
    let mut chance = std::fs::File::open("/dev/urandom").context("/dev/urandom")?;
    chance.read_exact(&mut drawn).context("/dev/urandom")?;
    Ok(drawn.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_differ_and_fit_into_a_url() {
        let (one, other) = (hex(16).unwrap(), hex(16).unwrap());
        assert_ne!(one, other);
        assert!(one.len() == 32 && one.bytes().all(|b| b.is_ascii_hexdigit()), "{one}");
    }
}
