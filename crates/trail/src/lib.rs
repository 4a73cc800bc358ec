//! The audit trail: what a leaf says, what it hides, and how both are shown (L-1 to L-5); and what is sealed of personal fields. All but `sealed`, `stored` and `subjects` is pure.
//!
//! | module | what |
//! |---|---|
//! | [`leaf`] | the bytes of a leaf: composed, and read again |
//! | [`private`] | which fields of a record name somebody, and whom |
//! | [`keys`] | keys of subjects, salts and commitments made of them |
//! | [`links`] | the chain of each memory slice |
//! | [`opening`] | salt and value of a commitment, shown to who may see it |
//! | [`personal`] | personal fields of a JSON text |
//! | [`review`] | leaves read in order: indexes, clocks, chains |
//! | [`sealed`] | personal fields sealed before they are stored, and opened for who may read them |
//! | [`stored`] | tiles and proofs out of the database |
//! | [`subjects`] | keys of subjects, read and made |

pub mod keys;
pub mod leaf;
pub mod links;
pub mod opening;
pub mod personal;
pub mod private;
pub mod review;
pub mod sealed;
pub mod stored;
pub mod subjects;

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of lower-case or upper-case hexadecimal digits; none for anything else.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
