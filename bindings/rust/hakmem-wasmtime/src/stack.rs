//! Stacks of async calls: memories of the host, which the tenant pays.

use std::ffi::c_void;
use std::ops::Range;

use hakmem_sys as sys;
use wasmtime::{StackCreator, StackMemory};

use crate::error::{Reason, Refused};
use crate::host::Host;

const PAGE: usize = 4096;

/// A stack. It keeps the host.
struct Stack {
    host: Host,
    base: *mut c_void,
    size: usize,
}

// SAFETY: the call that runs on it uses it alone.
unsafe impl Send for Stack {}
unsafe impl Sync for Stack {}

// SAFETY: the memory of a host with guards begins at a page, reads zero, and below it is the guard of the slot before,
// or that of the first slot, which nobody may ever access.
unsafe impl StackMemory for Stack {
    fn top(&self) -> *mut u8 {
        self.base.cast::<u8>().wrapping_add(self.size)
    }

    fn range(&self) -> Range<usize> {
        self.base as usize..self.base as usize + self.size
    }

    fn guard_range(&self) -> Range<*mut u8> {
        let base = self.base.cast::<u8>();
        base.wrapping_sub(self.host.guard_bytes())..base
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: wasmtime does not use it any more. What was written to is cleared for the next one.
        unsafe { sys::hak_wasm_memory_free(self.host.as_ptr(), self.base) };
    }
}

pub(crate) struct Stacks(pub Host);

// SAFETY: as for Stack. All stacks are zero.
unsafe impl StackCreator for Stacks {
    fn new_stack(&self, size: usize, _: bool) -> wasmtime::Result<Box<dyn StackMemory>> {
        // SAFETY: reads what is current on this thread; that tenant lives while it is.
        let mine = unsafe {
            let tenant = sys::hak_wasm_current().tenant;
            !tenant.is_null() && sys::hak_wasm_tenant_host(tenant) == self.0.as_ptr()
        };
        if !mine {
            let text = "hakmem: an async call outside of Tenant::run would have a stack that nobody pays";
            return Err(wasmtime::Error::new(Refused(Reason::Stack, text)));
        }
        let size = size.next_multiple_of(PAGE);
        // SAFETY: for any thread.
        let base = unsafe { sys::hak_wasm_memory_new(self.0.as_ptr(), size) };
        if base.is_null() {
            let text = "hakmem: the stack of an async call is over a limit, or there is no memory";
            return Err(wasmtime::Error::new(Refused(Reason::Stack, text)));
        }
        Ok(Box::new(Stack { host: self.0.clone(), base, size }))
    }
}
