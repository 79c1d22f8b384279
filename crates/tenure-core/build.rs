//! Compiles the stored events without `protoc`, so that a fresh machine needs nothing but cargo and a C compiler.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = "../../proto";
    println!("cargo:rerun-if-changed={folder}/tenure.proto");
    let files = protox::compile(["tenure.proto"], [folder])?;
    prost_build::Config::new().compile_fds(files)?;
    Ok(())
}
