//! Links the command so that it starts quickly: `doorway run` starts for every job.
//!
//! The command is linked at a fixed address. A program that may be loaded anywhere has thousands of
//! addresses in its tables, and the loader writes all of them before `main` runs, also those of the
//! laboratory: 65 of 304 page faults. The price is that the addresses of the program itself are not
//! random; those of its stack, heap and libraries are.
//!
//! The command contains the part of libgcc that unwinds the stack, instead of loading the shared
//! library. As that library is loaded it asks the processor for its features, which takes long in a
//! virtual machine: together with loading it, a tenth of a millisecond.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    let target = |key: &str| env::var(key).unwrap_or_default();
    let statically = target("CARGO_CFG_TARGET_FEATURE").split(',').any(|name| name == "crt-static");
    let gnu = target("CARGO_CFG_TARGET_OS") == "linux" && target("CARGO_CFG_TARGET_ENV") == "gnu";
    if gnu && !statically {
        println!("cargo:rustc-link-arg-bins=-no-pie");
        if has_static_unwinder() {
            contain_unwinder(&PathBuf::from(target("OUT_DIR")));
        }
    }
}

/// Whether the linker knows where the static library is. Then it prints the whole path.
fn has_static_unwinder() -> bool {
    let linker = env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let printed = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output();
    printed.is_ok_and(|printed| printed.stdout.starts_with(b"/"))
}

/// The standard library asks for the shared library by its name. The linker looks for that name in
/// this directory first, and finds a script there that names the static libraries.
fn contain_unwinder(directory: &Path) {
    let script = directory.join("libgcc_s.so");
    if fs::write(&script, "GROUP ( -lgcc_eh -lgcc )\n").is_ok() {
        println!("cargo:rustc-link-search=native={}", directory.display());
    }
}
