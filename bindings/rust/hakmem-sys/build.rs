//! Compiles the C sources of hakmem into the crate.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    refuse_other_systems();
    let wasm = env::var_os("CARGO_FEATURE_WASM").is_some();
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("core");
    let mut sources = Vec::new();
    for folder in folder(&root.join("src")) {
        if folder.is_dir() {
            sources.extend(self::folder(&folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "c")));
        }
    }
    // The order of a directory differs from machine to machine, the library must not.
    sources.sort();
    let mut build = cc::Build::new();
    // Calls inside the library bind directly. On macOS they do so anyway, and compilers warn of the word.
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system != "macos") {
        build.flag_if_supported("-fno-semantic-interposition");
    }
    build
        .files(&sources)
        .include(root.join("include"))
        .include(root.join("src"))
        .std("c11")
        .flag("-fvisibility=hidden")
        // An allocator that is not optimised slows down the whole program, also while it is debugged.
        .opt_level(3)
        .compile("hakmem");
    if wasm {
        build_wasm(&root);
    }
    println!("cargo:rerun-if-changed={}", root.display());
    println!("cargo:include={}", root.join("include").display());
}

/// Says in one line what there is not for a system, in place of a compiler's errors.
fn refuse_other_systems() {
    let of_target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let system = of_target("OS");
    let clang_cl = || cc::Build::new().try_get_compiler().is_ok_and(|tool| tool.is_like_clang_cl());
    if env::var_os("CARGO_FEATURE_WASM").is_some() && system != "linux" {
        eprintln!("hakmem: the feature wasm is for Linux, this is {system}");
    } else if of_target("ENV") == "msvc" && !clang_cl() {
        eprintln!("hakmem: the core needs gcc or clang: on Windows a target ...-windows-gnu, or CC=clang-cl");
    } else {
        return;
    }
    std::process::exit(1);
}

/// What bindings/wasm-host/CMakeLists.txt takes of the folders beside it.
const BESIDE_WASM: [&str; 17] = [
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
    "common/otel",
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
