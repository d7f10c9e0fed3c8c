//! The structs of the crate are those of the header, which a compiler for C measures.

use std::mem::{align_of, size_of};
use std::path::Path;
use std::process::Command;

use hakmem_sys::*;

macro_rules! layout {
    ($($type:ident: $($field:ident)*;)*) => {{
        let (mut rust, mut c) = (Vec::new(), String::new());
        $(
            rust.push(format!("{} {} {}", stringify!($type), size_of::<$type>(), align_of::<$type>()));
            c += &format!("    printf(\"{0} %zu %zu\\n\", sizeof({0}), _Alignof({0}));\n", stringify!($type));
            $(
                let field = stringify!($field);
                rust.push(format!("{}.{field} {}", stringify!($type), std::mem::offset_of!($type, $field)));
                c += &format!("    printf(\"{0}.{field} %zu\\n\", offsetof({0}, {field}));\n", stringify!($type));
            )*
        )*
        (rust, c)
    }};
}

#[test]
fn structs_are_those_of_the_header() {
    let (mut rust, mut c) = layout! {
        hak_options: size name quota on_error error_user debug labels label_count shared user max_align workload mode
            tuning policy trace_calls seed;
        hak_space_options: size os max_address reserve buffer buffer_size buffer_only mode tuning policy;
        hak_stats: size live_bytes live_blocks peak_bytes committed_bytes metadata_bytes cached_bytes released_bytes
            reserved_bytes retained_bytes big_bytes big_blocks soft_limit hard_limit failures os_calls fresh_bytes purged_bytes;
        hak_label_info: name label live_bytes live_blocks;
        hak_block: p size label site;
    };
    #[cfg(feature = "wasm")]
    {
        let (more_rust, more_c) = layout! {
            hak_wasm_limits: heap_bytes heap_soft linear_bytes instances;
            hak_wasm_host_options: size bounds slot_bytes guard_bytes extent_bytes warm_bytes decay_ns dirty limits policy
                mappings;
            hak_wasm_host_info: size slots live warm warm_bytes linear_bytes reserved_bytes extents image_bytes dirty
                mappings resting;
            hak_wasm_tenant_options: size name parent children limits;
            hak_wasm_tenant_info: size label heap_live heap_committed linear_bytes linear_peak instances instances_peak
                heap_failures linear_refused instances_refused image_bytes linear_resident linear_proportional;
            hak_wasm_module_limits: size bytes types arity imports functions globals exports segments locals body_bytes
                blocks depth ranges;
            hak_wasm_scope: tenant label;
            hak_wasm_code: bytes size;
        };
        rust.extend(more_rust);
        c += &more_c;
    }
    for (name, value) in [
        ("HAK_LABELS_MAX", HAK_LABELS_MAX),
        ("HAK_NONE", HAK_NONE),
        ("HAK_MODE_BALANCED", HAK_MODE_BALANCED as usize),
        ("HAK_MODE_MINIMAL", HAK_MODE_MINIMAL as usize),
        ("HAK_MODE_FAST", HAK_MODE_FAST as usize),
        ("HAK_MODE_LEAN", HAK_MODE_LEAN as usize),
        ("HAK_WORKLOAD_TRACED", HAK_WORKLOAD_TRACED as usize),
        ("HAK_WORKLOAD_COUNTED", HAK_WORKLOAD_COUNTED as usize),
        ("HAK_WORKLOAD_MALLOC", HAK_WORKLOAD_MALLOC as usize),
        ("HAK_DEBUG_CHECK", HAK_DEBUG_CHECK as usize),
        ("HAK_DEBUG_POISON", HAK_DEBUG_POISON as usize),
        ("HAK_DEBUG_ABORT", HAK_DEBUG_ABORT as usize),
        ("HAK_DEBUG_GUARD", HAK_DEBUG_GUARD as usize),
        ("HAK_DEBUG_CANARY", HAK_DEBUG_CANARY as usize),
        ("HAK_DEBUG_QUARANTINE", HAK_DEBUG_QUARANTINE as usize),
        ("HAK_DEBUG_TRACE", HAK_DEBUG_TRACE as usize),
        ("HAK_DEBUG_RANDOM", HAK_DEBUG_RANDOM as usize),
    ] {
        rust.push(format!("{name} {value}"));
        c += &format!("    printf(\"{name} %zu\\n\", (size_t){name});\n");
    }

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("layout.c"), folder.join("layout"));
    const HEADER: &str = if cfg!(feature = "wasm") { "hakmem/wasm.h" } else { "hakmem/hakmem.h" };
    let text = format!("#include <{HEADER}>\n#include <stdio.h>\nint main(void)\n{{\n{c}    return 0;\n}}\n");
    std::fs::write(&source, text).unwrap();
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let compiler = cc::Build::new().target(&target).host(&target).opt_level(0).cargo_metadata(false).get_compiler();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("core/include");
    let wasm = Path::new(env!("CARGO_MANIFEST_DIR")).join("wasm-host/include");
    let status = compiler
        .to_command()
        .arg("-I")
        .arg(include)
        .arg("-I")
        .arg(wasm)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap();
    assert!(status.success());
    let output = Command::new(program).output().unwrap();
    let measured: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(rust, measured);
}

#[test]
fn the_version_is_that_of_the_crate() {
    let version = unsafe { std::ffi::CStr::from_ptr(hak_version()) };
    assert_eq!(version.to_str().unwrap(), env!("CARGO_PKG_VERSION"));
}
