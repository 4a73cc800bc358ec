//! Compiles `schemas/telemetry.proto` without a system `protoc`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schemas = Path::new("../../schemas");
    let file = schemas.join("telemetry.proto");
    println!("cargo::rerun-if-changed={}", file.display());
    let descriptors = protox::compile([&file], [schemas])?;
    prost_build::Config::new().btree_map(["."]).compile_fds(descriptors)?;
    Ok(())
}
