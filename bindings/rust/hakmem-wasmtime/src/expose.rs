//! Modules that show all state of their instances.

use std::ffi::{c_char, CStr};
use std::ptr::{null, null_mut};

use hakmem_sys as sys;

use crate::error::{Error, Reason};

/// What names of added exports begin with.
pub(crate) const PREFIX: &str = "hak:";
pub(crate) const MEMORY: &str = "hak:memory";
pub(crate) const GLOBAL: &str = "hak:global:";
pub(crate) const TABLE: &str = "hak:table:";
pub(crate) const FUNCTION: &str = "hak:function:";

/// A copy of a module, to be compiled in its place, whose guests can have a [`Snapshot`](crate::Snapshot): it exports
/// everything that they can change, under names with `hak:`. Refused, with the reason, where there is something that
/// nobody could bring back: segments that are dropped, memories, tables and mutable globals that are imported, references
/// other than to functions, shared memories, more than one memory.
///
/// Who links further modules to the guest's instance in its store defines the exports one by one, without those with
/// `hak:`: `Linker::instance` would show them the memory that the module itself does not export.
pub fn expose(module: &[u8]) -> Result<Vec<u8>, Error> {
    let mut copy = sys::hak_wasm_code { bytes: null_mut(), size: 0 };
    let mut why: *const c_char = null();
    // SAFETY: the places are as large as they are said to be, and the copy is freed once.
    unsafe {
        if sys::hak_wasm_module_expose(module.as_ptr().cast(), module.len(), &mut copy, &mut why) != 0 {
            let why = CStr::from_ptr(why).to_string_lossy();
            return Err(Error::new(Reason::Reset, format!("hakmem: the module cannot be reset: {why}")));
        }
        let bytes = std::slice::from_raw_parts(copy.bytes.cast::<u8>(), copy.size).to_vec();
        sys::hak_wasm_code_free(&mut copy);
        Ok(bytes)
    }
}
