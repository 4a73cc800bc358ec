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
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS[usize::from(nibble)]));
        }
    }
    text
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
