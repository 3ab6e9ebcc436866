//! Links the command at a fixed address.
//!
//! A program that may be loaded anywhere has thousands of addresses in its tables, and the loader
//! writes all of them before `main` runs, also those of the laboratory. `doorway run` starts for
//! every job, so that is a good part of its cost: 65 of 304 page faults. The price is that the
//! addresses of the program itself are not random; those of its stack, heap and libraries are.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |key: &str| std::env::var(key).unwrap_or_default();
    let statically = target("CARGO_CFG_TARGET_FEATURE").split(',').any(|name| name == "crt-static");
    let gnu = target("CARGO_CFG_TARGET_OS") == "linux" && target("CARGO_CFG_TARGET_ENV") == "gnu";
    if gnu && !statically {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
