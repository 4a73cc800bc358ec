//! The gpuledger binary.
fn main() {}
