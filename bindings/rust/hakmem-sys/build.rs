//! Compiles the C sources of hakmem into the crate.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let wasm = env::var_os("CARGO_FEATURE_WASM").is_some();
    let os = env::var("CARGO_CFG_TARGET_OS").expect("cargo sets it");
    if wasm && os != "linux" {
        // Before the C compiler has its say, which would be a page.
        eprintln!(
            "hakmem-sys: the feature `wasm` is for Linux alone, and the target is {os}: build without the feature"
        );
        std::process::exit(1);
    }
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("core");
    let mut sources = Vec::new();
    for folder in folder(&root.join("src")) {
        if folder.is_dir() {
            sources.extend(self::folder(&folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "c")));
        }
    }
    // The order of a directory differs from machine to machine, the library must not.
    sources.sort();
    cc::Build::new()
        .files(&sources)
        .include(root.join("include"))
        .include(root.join("src"))
        .std("c11")
        .flag("-fvisibility=hidden")
        .flag_if_supported("-fno-semantic-interposition")
        // An allocator that is not optimised slows down the whole program, also while it is debugged.
        .opt_level(3)
        .compile("hakmem");
    if wasm {
        build_wasm(&root);
    }
    println!("cargo:rerun-if-changed={}", root.display());
    println!("cargo:include={}", root.join("include").display());
}

/// What bindings/wasm-host/CMakeLists.txt takes of the folders beside it.
const BESIDE_WASM: [&str; 16] = [
    "callsite/cfi",
    "callsite/image",
    "callsite/names",
    "callsite/readable",
    "callsite/symbols",
    "callsite/walk",
    "common/file",
    "common/helper",
    "common/history_json",
    "common/json",
    "common/live",
    "common/parts",
    "common/pipe",
    "common/profile_json",
    "common/report_json",
    "common/smaps",
];

fn build_wasm(core: &Path) {
    let root = core.parent().expect("it is in the crate").to_path_buf();
    let mut sources: Vec<_> = folder(&root.join("wasm-host/src"));
    sources.retain(|path| path.extension().is_some_and(|e| e == "c"));
    sources.extend(BESIDE_WASM.iter().map(|name| root.join(format!("{name}.c"))));
    sources.sort();
    cc::Build::new()
        .files(&sources)
        .include(root.join("wasm-host/include"))
        .include(root.join("wasm-host/src"))
        .include(core.join("include"))
        .include(&root)
        .include(root.join("callsite"))
        .std("gnu11")
        .flag("-fvisibility=hidden")
        .opt_level(3)
        .compile("hakmem_wasm");
    for name in ["wasm-host", "callsite", "common"] {
        println!("cargo:rerun-if-changed={}", root.join(name).display());
    }
}

fn folder(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    entries.map(|entry| entry.expect("a directory can be read").path()).collect()
}
