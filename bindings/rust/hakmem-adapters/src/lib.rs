//! Heaps of [`hakmem`] for runtimes that ask for an allocator. Each module is small, to be used or copied.
//!
//! - [`lua`] (feature `lua`): a Lua state in a heap, with mlua on it.
//! - [`quickjs`] (feature `quickjs`): an allocator for a runtime of rquickjs.
//! - [`buffers`]: array buffers of V8 in a heap, by the functions that `v8::RustAllocatorVtable` wants.
//! - [`pool`]: a pool as DataFusion's, which knows what lives in a [`hakmem::Scope`].
//!
//! In each of them a hard limit makes allocations fail, and the runtime tells the program or the script: `MemoryError`,
//! an exception, a `RangeError`, `ResourcesExhausted`.

pub mod buffers;
#[cfg(feature = "lua")]
pub mod lua;
pub mod pool;
#[cfg(feature = "quickjs")]
pub mod quickjs;
