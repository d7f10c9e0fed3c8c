//! Array buffers of V8. They are outside of V8's heap, and so outside of its limit: a script that makes buffers can use
//! up the memory of a process whose isolates all have a limit. With these functions they are in a heap that has one.
//!
//! ```ignore
//! static VTABLE: v8::RustAllocatorVtable<hakmem::Shared> = v8::RustAllocatorVtable {
//!     allocate: buffers::allocate,
//!     allocate_uninitialized: buffers::allocate_uninitialized,
//!     free: buffers::free,
//!     drop: buffers::drop_heap,
//! };
//! let heap = std::sync::Arc::new(hakmem::Shared::new().unwrap());
//! heap.limit(64 << 20);
//! let allocator = unsafe { v8::new_rust_allocator(std::sync::Arc::into_raw(heap.clone()), &VTABLE) };
//! let isolate = v8::Isolate::new(v8::CreateParams::default().array_buffer_allocator(allocator));
//! ```
//!
//! Where there is no memory, V8 throws a `RangeError`. V8 frees buffers on threads of its own, so the heap is a shared
//! one. Versions of the crate whose table has `reallocate` take [`reallocate`].

use std::ffi::c_void;
use std::sync::Arc;

use hakmem::Shared;
use hakmem_sys as sys;

/// A block of zeros, for `new ArrayBuffer(n)`; null: no memory, or over the limit.
///
/// # Safety
/// V8 calls it.
pub unsafe extern "C" fn allocate(heap: &Shared, n: usize) -> *mut c_void {
    sys::hak_aligned_calloc(heap.as_ptr(), 16, 1, n)
}

/// A block with whatever content; null: no memory, or over the limit.
///
/// # Safety
/// V8 calls it.
pub unsafe extern "C" fn allocate_uninitialized(heap: &Shared, n: usize) -> *mut c_void {
    sys::hak_aligned_alloc(heap.as_ptr(), 16, n)
}

/// # Safety
/// V8 calls it, with a block of this heap.
pub unsafe extern "C" fn free(heap: &Shared, p: *mut c_void, n: usize) {
    sys::hak_free_sized(heap.as_ptr(), p, n)
}

/// The bytes beyond `old` are zeros. Null leaves the block as it is.
///
/// # Safety
/// V8 calls it, with a block of this heap.
pub unsafe extern "C" fn reallocate(heap: &Shared, p: *mut c_void, old: usize, n: usize) -> *mut c_void {
    let new = sys::hak_aligned_realloc(heap.as_ptr(), p, 16, n);
    if !new.is_null() && n > old {
        new.cast::<u8>().add(old).write_bytes(0, n - old);
    }
    new
}

/// Gives up V8's share of the heap: what `Arc::into_raw` gave to `new_rust_allocator`.
///
/// # Safety
/// V8 calls it, once, after the last buffer was freed.
pub unsafe extern "C" fn drop_heap(heap: *const Shared) {
    drop(Arc::from_raw(heap))
}
