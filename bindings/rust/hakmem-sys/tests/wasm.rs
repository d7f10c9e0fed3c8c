//! The C sources of the feature are all there: what is linked pulls in the rest.
#![cfg(feature = "wasm")]

use std::ffi::{c_int, c_void};

use hakmem_sys as _;

extern "C" {
    // Not declared by the crate; a report needs every folder beside that of the binding.
    fn hak_wasm_report_json(tenant: *mut c_void, file: *mut c_void) -> c_int;
}

#[test]
fn reports_are_linked() {
    assert_ne!(hak_wasm_report_json as *const () as usize, 0);
}
