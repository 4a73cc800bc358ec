//! `gpuledger-collector`.

fn main() {}
