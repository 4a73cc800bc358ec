//! Compiles `proto/podresources.proto` without a system `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/podresources.proto");
    let descriptors = protox::compile(["proto/podresources.proto"], ["proto"])?;
    prost_build::compile_fds(descriptors)?;
    Ok(())
}
