//! The C functions of hakmem, as `core/include/hakmem/hakmem.h` declares them: that header is the manual.
//! The crate compiles the C sources; nothing has to be installed. On Linux the feature `wasm` adds `hakmem/wasm.h`. The crate `hakmem` is the interface for Rust.

#![no_std]
#![allow(non_camel_case_types)]

#[cfg(feature = "wasm")]
mod wasm;
#[cfg(feature = "wasm")]
pub use wasm::*;

use core::ffi::{c_char, c_int, c_uint, c_void};

/// A heap.
#[repr(C)]
pub struct hak_ctx {
    _private: [u8; 0],
}
/// Pages for many heaps.
#[repr(C)]
pub struct hak_space {
    _private: [u8; 0],
}
/// A limit for a group of heaps.
#[repr(C)]
pub struct hak_quota {
    _private: [u8; 0],
}
/// A table of functions of the operating system; only its address passes through here.
#[repr(C)]
pub struct hak_os {
    _private: [u8; 0],
}
/// Mode, numbers and hints as one object; only its address passes through here.
#[repr(C)]
pub struct hak_policy {
    _private: [u8; 0],
}
/// Single numbers behind a mode; only its address passes through here.
#[repr(C)]
pub struct hak_tuning {
    _private: [u8; 0],
}

pub type hak_label = u16;
pub type hak_site = usize;
/// Most labels of a context.
pub const HAK_LABELS_MAX: usize = 253;
/// A size that is not known.
pub const HAK_NONE: usize = usize::MAX;

pub type hak_error = c_uint;
pub type hak_mode = c_uint;
pub const HAK_MODE_BALANCED: hak_mode = 0;
pub const HAK_MODE_MINIMAL: hak_mode = 1;
pub const HAK_MODE_FAST: hak_mode = 2;
pub const HAK_MODE_LEAN: hak_mode = 3;
pub type hak_workload = c_uint;
pub const HAK_WORKLOAD_TRACED: hak_workload = 0;
pub const HAK_WORKLOAD_COUNTED: hak_workload = 1;
pub const HAK_WORKLOAD_MALLOC: hak_workload = 2;
pub const HAK_DEBUG_CHECK: c_uint = 1;
pub const HAK_DEBUG_POISON: c_uint = 2;
pub const HAK_DEBUG_ABORT: c_uint = 4;
pub const HAK_DEBUG_GUARD: c_uint = 8;
pub const HAK_DEBUG_CANARY: c_uint = 16;
pub const HAK_DEBUG_QUARANTINE: c_uint = 32;
pub const HAK_DEBUG_TRACE: c_uint = 64;
pub const HAK_DEBUG_RANDOM: c_uint = 256;

pub type hak_pressure_fn =
    Option<unsafe extern "C" fn(ctx: *mut hak_ctx, user: *mut c_void, committed: usize, limit: usize)>;
pub type hak_error_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, error: hak_error, p: *const c_void, what: *const c_char)>;
pub type hak_visit_fn = Option<unsafe extern "C" fn(user: *mut c_void, block: *const hak_block) -> bool>;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hak_options {
    pub size: usize,
    pub name: *const c_char,
    pub quota: *mut hak_quota,
    pub on_error: hak_error_fn,
    pub error_user: *mut c_void,
    pub debug: c_uint,
    pub labels: *const *const c_char,
    pub label_count: usize,
    pub shared: bool,
    pub user: *mut c_void,
    pub max_align: bool,
    pub workload: hak_workload,
    pub mode: hak_mode,
    pub tuning: *const hak_tuning,
    pub policy: *const hak_policy,
    pub trace_calls: usize,
    pub seed: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hak_space_options {
    pub size: usize,
    pub os: *const hak_os,
    pub max_address: usize,
    pub reserve: usize,
    pub buffer: *mut c_void,
    pub buffer_size: usize,
    pub buffer_only: bool,
    pub mode: hak_mode,
    pub tuning: *const hak_tuning,
    pub policy: *const hak_policy,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hak_stats {
    pub size: usize,
    pub live_bytes: usize,
    pub live_blocks: usize,
    pub peak_bytes: usize,
    pub committed_bytes: usize,
    pub metadata_bytes: usize,
    pub cached_bytes: usize,
    pub released_bytes: usize,
    pub reserved_bytes: usize,
    pub retained_bytes: usize,
    pub big_bytes: usize,
    pub big_blocks: usize,
    pub soft_limit: usize,
    pub hard_limit: usize,
    pub failures: u64,
    pub os_calls: u64,
    pub fresh_bytes: u64,
    pub purged_bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hak_label_info {
    pub name: *const c_char,
    pub label: hak_label,
    pub live_bytes: usize,
    pub live_blocks: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hak_block {
    pub p: *const c_void,
    pub size: usize,
    pub label: hak_label,
    pub site: hak_site,
}

extern "C" {
    pub fn hak_version() -> *const c_char;
    pub fn hak_error_name(error: hak_error) -> *const c_char;

    pub fn hak_options_init(options: *mut hak_options, size: usize);
    pub fn hak_options_error(options: *const hak_options) -> *const c_char;
    pub fn hak_space_options_init(options: *mut hak_space_options, size: usize);
    pub fn hak_space_options_error(options: *const hak_space_options) -> *const c_char;

    pub fn hak_space_new(options: *const hak_space_options) -> *mut hak_space;
    pub fn hak_space_delete(space: *mut hak_space);
    pub fn hak_space_free(space: *mut hak_space, p: *mut c_void);
    pub fn hak_ctx_new(space: *mut hak_space, options: *const hak_options) -> *mut hak_ctx;
    pub fn hak_ctx_destroy(ctx: *mut hak_ctx);
    pub fn hak_ctx_retire(ctx: *mut hak_ctx);
    pub fn hak_ctx_name(ctx: *const hak_ctx) -> *const c_char;
    pub fn hak_ctx_user(ctx: *const hak_ctx) -> *mut c_void;

    pub fn hak_alloc(ctx: *mut hak_ctx, n: usize) -> *mut c_void;
    pub fn hak_calloc(ctx: *mut hak_ctx, count: usize, n: usize) -> *mut c_void;
    pub fn hak_realloc(ctx: *mut hak_ctx, p: *mut c_void, n: usize) -> *mut c_void;
    pub fn hak_free(ctx: *mut hak_ctx, p: *mut c_void);
    pub fn hak_aligned_alloc(ctx: *mut hak_ctx, align: usize, n: usize) -> *mut c_void;
    pub fn hak_aligned_calloc(ctx: *mut hak_ctx, align: usize, count: usize, n: usize) -> *mut c_void;
    pub fn hak_aligned_realloc(ctx: *mut hak_ctx, p: *mut c_void, align: usize, n: usize) -> *mut c_void;
    pub fn hak_realloc_sized(ctx: *mut hak_ctx, p: *mut c_void, old: usize, n: usize) -> *mut c_void;
    pub fn hak_free_sized(ctx: *mut hak_ctx, p: *mut c_void, n: usize);
    pub fn hak_free_if_owned(ctx: *mut hak_ctx, p: *mut c_void, n: usize) -> bool;
    pub fn hak_alloc_cs(ctx: *mut hak_ctx, n: usize, label: hak_label, site: hak_site) -> *mut c_void;
    pub fn hak_calloc_cs(ctx: *mut hak_ctx, count: usize, n: usize, label: hak_label, site: hak_site) -> *mut c_void;
    pub fn hak_aligned_alloc_cs(
        ctx: *mut hak_ctx,
        align: usize,
        n: usize,
        label: hak_label,
        site: hak_site,
    ) -> *mut c_void;
    pub fn hak_aligned_calloc_cs(
        ctx: *mut hak_ctx,
        align: usize,
        count: usize,
        n: usize,
        label: hak_label,
        site: hak_site,
    ) -> *mut c_void;
    pub fn hak_usable_size(ctx: *const hak_ctx, p: *const c_void) -> usize;
    pub fn hak_good_size(ctx: *const hak_ctx, n: usize) -> usize;
    pub fn hak_owns(ctx: *const hak_ctx, p: *const c_void) -> bool;
    pub fn hak_space_bytes_within(space: *mut hak_space, p: *const c_void, n: usize) -> usize;
    pub fn hak_ctx_of(space: *const hak_space, p: *const c_void) -> *mut hak_ctx;

    pub fn hak_label_define(ctx: *mut hak_ctx, name: *const c_char) -> hak_label;
    pub fn hak_label_name(ctx: *const hak_ctx, label: hak_label) -> *const c_char;
    pub fn hak_label_of(ctx: *const hak_ctx, p: *const c_void) -> hak_label;
    pub fn hak_label_stats(ctx: *const hak_ctx, label: hak_label, info: *mut hak_label_info) -> c_int;
    pub fn hak_labels_stats(ctx: *const hak_ctx, out: *mut hak_label_info, count: usize) -> c_int;

    pub fn hak_limit(ctx: *mut hak_ctx, soft: usize, hard: usize, f: hak_pressure_fn, user: *mut c_void) -> c_int;
    pub fn hak_limit_callback(ctx: *const hak_ctx, user: *mut *mut c_void) -> hak_pressure_fn;
    pub fn hak_quota_new(parent: *mut hak_quota, hard: usize) -> *mut hak_quota;
    pub fn hak_quota_delete(quota: *mut hak_quota);
    pub fn hak_quota_used(quota: *const hak_quota) -> usize;
    pub fn hak_quota_peak(quota: *const hak_quota) -> usize;
    pub fn hak_quota_set(quota: *mut hak_quota, hard: usize);

    pub fn hak_ctx_stats(ctx: *const hak_ctx, stats: *mut hak_stats) -> c_int;
    pub fn hak_ctx_live_bytes(ctx: *const hak_ctx) -> usize;
    pub fn hak_ctx_peak_reset(ctx: *mut hak_ctx);
    pub fn hak_ctx_visit(ctx: *const hak_ctx, f: hak_visit_fn, user: *mut c_void) -> c_int;
    pub fn hak_ctx_check(ctx: *const hak_ctx, report: hak_error_fn, user: *mut c_void) -> bool;
    pub fn hak_ctx_flush(ctx: *mut hak_ctx) -> usize;
    pub fn hak_ctx_trim(ctx: *mut hak_ctx) -> usize;
    pub fn hak_ctx_tick(ctx: *mut hak_ctx, now_ns: u64);

    pub fn hak_ctx_thread(ctx: *mut hak_ctx) -> *mut hak_ctx;
    pub fn hak_ctx_thread_done(ctx: *mut hak_ctx);
    pub fn hak_ctx_fork_prepare(ctx: *mut hak_ctx);
    pub fn hak_ctx_fork_parent(ctx: *mut hak_ctx);
    pub fn hak_ctx_fork_child(ctx: *mut hak_ctx);
}
