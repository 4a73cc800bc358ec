//! Cosignatures of witnesses (`c2sp.org/tlog-cosignature`, v1): Ed25519 over the checkpoint's text and the witness's own time.

/// What a cosigner signs: a header, its time in seconds after 1970, and the whole text of the checkpoint.
pub fn message(text: &str, time_s: u64) -> String {
    format!("cosignature/v1\ntime {time_s}\n{text}")
}

/// Time and signature out of the bytes that follow the key's hash; none where they are not 8 and 64 bytes.
pub fn split(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (time, signature) = bytes.split_first_chunk::<8>()?;
    (signature.len() == 64).then(|| (u64::from_be_bytes(*time), signature))
}
