//! The functions of `hakmem/wasm.h`, which is the manual.

use core::ffi::{c_char, c_int, c_uint, c_void};

use crate::hak_policy;

/// One process' supply of linear memories and of contexts.
#[repr(C)]
pub struct hak_wasm_host {
    _private: [u8; 0],
}
/// Whoever is to be counted and limited.
#[repr(C)]
pub struct hak_wasm_tenant {
    _private: [u8; 0],
}
/// The content of a linear memory at one moment.
#[repr(C)]
pub struct hak_wasm_image {
    _private: [u8; 0],
}

pub type hak_wasm_label = c_uint;
pub const HAK_WASM_OTHER: hak_wasm_label = 0;
pub const HAK_WASM_LOAD: hak_wasm_label = 1;
pub const HAK_WASM_INSTANCE: hak_wasm_label = 2;
pub const HAK_WASM_STACK: hak_wasm_label = 3;
pub const HAK_WASM_WASI: hak_wasm_label = 4;
pub const HAK_WASM_LINEAR: hak_wasm_label = 5;
pub const HAK_WASM_NATIVE: hak_wasm_label = 6;
pub const HAK_WASM_LABELS: usize = 7;
pub type hak_wasm_bounds = c_uint;
pub const HAK_WASM_FLAT: hak_wasm_bounds = 0;
pub const HAK_WASM_GUARD: hak_wasm_bounds = 1;
pub type hak_wasm_dirty = c_uint;
pub const HAK_WASM_DIRTY_AUTO: hak_wasm_dirty = 0;
pub type hak_wasm_close = c_uint;
pub const HAK_WASM_RETIRE: hak_wasm_close = 0;
pub const HAK_WASM_BULK: hak_wasm_close = 1;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hak_wasm_limits {
    pub heap_bytes: usize,
    pub heap_soft: bool,
    pub linear_bytes: usize,
    pub instances: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hak_wasm_host_options {
    pub size: usize,
    pub bounds: hak_wasm_bounds,
    pub slot_bytes: usize,
    pub guard_bytes: usize,
    pub extent_bytes: usize,
    pub warm_bytes: usize,
    pub decay_ns: u64,
    pub dirty: hak_wasm_dirty,
    pub limits: hak_wasm_limits,
    pub policy: *const hak_policy,
    pub mappings: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hak_wasm_host_info {
    pub size: usize,
    pub slots: usize,
    pub live: usize,
    pub warm: usize,
    pub warm_bytes: usize,
    pub linear_bytes: usize,
    pub reserved_bytes: usize,
    pub extents: usize,
    pub image_bytes: usize,
    pub dirty: hak_wasm_dirty,
    pub mappings: usize,
    pub resting: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hak_wasm_tenant_options {
    pub size: usize,
    pub name: *const c_char,
    pub parent: *mut hak_wasm_tenant,
    pub children: bool,
    pub limits: hak_wasm_limits,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hak_wasm_label_info {
    pub live_bytes: usize,
    pub live_blocks: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hak_wasm_tenant_info {
    pub size: usize,
    pub label: [hak_wasm_label_info; HAK_WASM_LABELS],
    pub heap_live: usize,
    pub heap_committed: usize,
    pub linear_bytes: usize,
    pub linear_peak: usize,
    pub instances: usize,
    pub instances_peak: usize,
    pub heap_failures: u64,
    pub linear_refused: u64,
    pub instances_refused: u64,
    pub image_bytes: usize,
    pub linear_resident: usize,
    pub linear_proportional: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hak_wasm_module_limits {
    pub size: usize,
    pub bytes: usize,
    pub types: usize,
    pub arity: usize,
    pub imports: usize,
    pub functions: usize,
    pub globals: usize,
    pub exports: usize,
    pub segments: usize,
    pub locals: usize,
    pub body_bytes: usize,
    pub blocks: usize,
    pub depth: usize,
    pub ranges: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hak_wasm_scope {
    pub tenant: *mut hak_wasm_tenant,
    pub label: hak_wasm_label,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hak_wasm_code {
    pub bytes: *mut c_void,
    pub size: usize,
}

extern "C" {
    pub fn hak_wasm_host_new(options: *const hak_wasm_host_options) -> *mut hak_wasm_host;
    pub fn hak_wasm_host_delete(host: *mut hak_wasm_host);
    pub fn hak_wasm_host_options_error(options: *const hak_wasm_host_options) -> *const c_char;
    pub fn hak_wasm_host_tenant(host: *mut hak_wasm_host) -> *mut hak_wasm_tenant;
    pub fn hak_wasm_host_tick(host: *mut hak_wasm_host, now_ns: u64);
    pub fn hak_wasm_host_trim(host: *mut hak_wasm_host) -> usize;
    pub fn hak_wasm_host_stats(host: *mut hak_wasm_host, info: *mut hak_wasm_host_info) -> c_int;

    pub fn hak_wasm_tenant_new(
        host: *mut hak_wasm_host,
        options: *const hak_wasm_tenant_options,
    ) -> *mut hak_wasm_tenant;
    pub fn hak_wasm_tenant_close(tenant: *mut hak_wasm_tenant, how: hak_wasm_close);
    pub fn hak_wasm_tenant_name(tenant: *const hak_wasm_tenant) -> *const c_char;
    pub fn hak_wasm_tenant_host(tenant: *const hak_wasm_tenant) -> *mut hak_wasm_host;
    pub fn hak_wasm_tenant_limit(tenant: *mut hak_wasm_tenant, limits: *const hak_wasm_limits);
    pub fn hak_wasm_tenant_stats(tenant: *mut hak_wasm_tenant, info: *mut hak_wasm_tenant_info) -> c_int;
    pub fn hak_wasm_tenant_resident(tenant: *mut hak_wasm_tenant) -> usize;
    pub fn hak_wasm_tenant_proportional(tenant: *mut hak_wasm_tenant) -> usize;
    pub fn hak_wasm_admit(tenant: *mut hak_wasm_tenant) -> c_int;
    pub fn hak_wasm_dismiss(tenant: *mut hak_wasm_tenant);
    pub fn hak_wasm_charge(tenant: *mut hak_wasm_tenant, bytes: usize) -> c_int;
    pub fn hak_wasm_uncharge(tenant: *mut hak_wasm_tenant, bytes: usize);
    pub fn hak_wasm_linear_limit(tenant: *const hak_wasm_tenant) -> usize;

    pub fn hak_wasm_tenant_modules(tenant: *mut hak_wasm_tenant, limits: *const hak_wasm_module_limits) -> c_int;
    pub fn hak_wasm_code_free(code: *mut hak_wasm_code);
    pub fn hak_wasm_module_expose(
        bytes: *const c_void,
        size: usize,
        copy: *mut hak_wasm_code,
        why: *mut *const c_char,
    ) -> c_int;
    pub fn hak_wasm_module_check(
        tenant: *const hak_wasm_tenant,
        bytes: *const c_void,
        size: usize,
        error: *mut c_char,
        error_size: usize,
    ) -> c_int;
    pub fn hak_wasm_tenant_steps(tenant: *mut hak_wasm_tenant, most: u64);
    pub fn hak_wasm_step_limit(tenant: *const hak_wasm_tenant) -> u64;

    pub fn hak_wasm_enter(tenant: *mut hak_wasm_tenant, label: hak_wasm_label) -> hak_wasm_scope;
    pub fn hak_wasm_leave(before: hak_wasm_scope);
    pub fn hak_wasm_current() -> hak_wasm_scope;

    pub fn hak_wasm_memory_new(host: *mut hak_wasm_host, bytes: usize) -> *mut c_void;
    pub fn hak_wasm_memory_grow(host: *mut hak_wasm_host, memory: *mut c_void, bytes: usize) -> c_int;
    pub fn hak_wasm_memory_free(host: *mut hak_wasm_host, memory: *mut c_void) -> c_int;
    pub fn hak_wasm_memory_size(host: *const hak_wasm_host, memory: *const c_void) -> usize;
    pub fn hak_wasm_slot_bytes(host: *const hak_wasm_host) -> usize;
    pub fn hak_wasm_guard_bytes(host: *const hak_wasm_host) -> usize;
    pub fn hak_wasm_is_memory(host: *const hak_wasm_host, p: *const c_void) -> bool;

    pub fn hak_wasm_image_take(host: *mut hak_wasm_host, memory: *mut c_void) -> *mut hak_wasm_image;
    pub fn hak_wasm_image_drop(image: *mut hak_wasm_image);
    pub fn hak_wasm_image_size(image: *const hak_wasm_image) -> usize;
    pub fn hak_wasm_memory_reset(host: *mut hak_wasm_host, memory: *mut c_void, image: *mut hak_wasm_image) -> c_int;
    pub fn hak_wasm_memory_rest(host: *mut hak_wasm_host, memory: *mut c_void, image: *mut hak_wasm_image) -> c_int;
    pub fn hak_wasm_memory_wake(host: *mut hak_wasm_host, memory: *mut c_void) -> c_int;
    pub fn hak_wasm_memory_adopt(host: *mut hak_wasm_host, image: *mut hak_wasm_image) -> *mut c_void;
}
