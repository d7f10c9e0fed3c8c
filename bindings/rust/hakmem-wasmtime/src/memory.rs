//! Linear memories of a host, as wasmtime asks for them.

use std::ffi::c_void;

use hakmem_sys as sys;
use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use crate::host::Host;

pub(crate) const REFUSED: &str = "hakmem: a linear memory is over a limit, or there is no memory";

/// A memory of the host's. It keeps the host.
struct Linear {
    host: Host,
    base: *mut c_void,
    size: usize,
}

// SAFETY: one thread at a time uses a memory, as wasmtime sees to.
unsafe impl Send for Linear {}
unsafe impl Sync for Linear {}

// SAFETY: a memory lies at one address, readable and writable up to its size, with its slot and guard behind it
// inaccessible; new bytes are zero.
unsafe impl LinearMemory for Linear {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn byte_capacity(&self) -> usize {
        self.host.slot_bytes()
    }

    fn grow_to(&mut self, size: usize) -> wasmtime::Result<()> {
        // SAFETY: base is a memory of the host.
        if unsafe { sys::hak_wasm_memory_grow(self.host.as_ptr(), self.base, size) } != 0 {
            return Err(wasmtime::Error::msg(REFUSED));
        }
        self.size = size;
        Ok(())
    }

    fn as_ptr(&self) -> *mut u8 {
        self.base.cast()
    }
}

impl Drop for Linear {
    fn drop(&mut self) {
        // SAFETY: wasmtime does not use it any more.
        unsafe { sys::hak_wasm_memory_free(self.host.as_ptr(), self.base) };
    }
}

pub(crate) struct Creator(pub Host);

// SAFETY: as for Linear; what wasmtime wants reserved is compared with what a slot has.
unsafe impl MemoryCreator for Creator {
    fn new_memory(
        &self,
        _: MemoryType,
        minimum: usize,
        _: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        if reserved.unwrap_or(0) > self.0.slot_bytes() || guard > self.0.guard_bytes() {
            return Err("hakmem: wasmtime wants more address space than a slot of the host has".into());
        }
        // SAFETY: for any thread; the tenant is current, see guest.rs.
        let base = unsafe { sys::hak_wasm_memory_new(self.0.as_ptr(), minimum) };
        if base.is_null() {
            return Err(REFUSED.into());
        }
        Ok(Box::new(Linear { host: self.0.clone(), base, size: minimum }))
    }
}
