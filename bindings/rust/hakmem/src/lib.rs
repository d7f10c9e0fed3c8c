//! Heaps with exact limits, labels and a quick end: hakmem for Rust.
//!
//! - [`Context`]: a heap for one thread at a time. Its drop frees every block at once.
//! - [`Shared`]: a heap for all threads.
//! - [`Space`]: the pages of many heaps. Make one for the process: it is what makes small heaps cheap.
//! - [`Label`]: says what a block is for. The bytes of all labels sum to the live bytes, exactly.
//! - [`Global`]: the allocator of a whole program, by `#[global_allocator]`.
//! - [`Scope`] and [`ScopedGlobal`]: a heap for each tenant of a program; what a thread allocates while it works for a
//!   tenant is the tenant's, also in futures.
//!
//! `&Context`, `&Shared` and [`Labelled`] are allocators of the crate `allocator_api2`, whose `Vec` and `Box` take
//! them; so do the tables of `hashbrown`.
//!
//! ```
//! use allocator_api2::vec::Vec;
//!
//! let heap = hakmem::Context::new().expect("memory for a heap");
//! heap.limit(64 << 20);
//! let rows = heap.define("rows").expect("a label");
//! let mut table = Vec::new_in(heap.with(rows));
//! table.extend(0..1000);
//! let sum: usize = heap.labels().iter().map(|label| label.live_bytes).sum();
//! assert_eq!(sum, heap.stats().live_bytes);
//! ```
//!
//! # What the compiler refuses
//!
//! What lives in a heap borrows it, and does not outlive it:
//!
//! ```compile_fail,E0505
//! let heap = hakmem::Context::new().unwrap();
//! let kept = allocator_api2::boxed::Box::new_in(1, &heap);
//! drop(heap);
//! assert_eq!(*kept, 1);
//! ```
//!
//! A [`Context`] is for one thread at a time. It may move to another thread, but neither a reference to it nor
//! what lives in it may:
//!
//! ```compile_fail,E0277
//! let heap = hakmem::Context::new().unwrap();
//! std::thread::scope(|s| {
//!     s.spawn(|| heap.stats());
//! });
//! ```
//! ```compile_fail,E0277
//! fn sent<T: Send>(_: T) {}
//! let heap = hakmem::Context::new().unwrap();
//! sent(allocator_api2::boxed::Box::new_in(1, heap.with(hakmem::Label::NONE)));
//! ```
//! ```
//! fn sent<T: Send>(_: T) {}
//! fn seen<T: Send + Sync>(_: T) {}
//! sent(hakmem::Context::new().unwrap());
//! let heap = hakmem::Shared::new().unwrap();
//! seen(allocator_api2::boxed::Box::new_in(1, heap.with(hakmem::Label::NONE)));
//! ```
//!
//! # What is `unsafe`
//!
//! [`Heap::free`] and [`Heap::resize`] take pointers without a lifetime. [`Options::on_error`] runs inside the
//! heap. [`Shared::check`] and [`Shared::blocks`] need that no other thread is inside a call. All else is safe.
//! Out of memory and over the limit is `None` or `Err`, never an abort; what the collections of other crates
//! make of it is theirs to say (`try_reserve`).
//!
//! # Fork
//!
//! [`Global`] and scopes look after themselves when the process forks. A program that forks while other threads use a
//! [`Shared`] calls `hak_ctx_fork_prepare`, `_parent` and `_child` of `hakmem_sys` around it.

mod alloc;
mod context;
mod global;
mod heap;
mod options;
mod scope;
mod scoped;

pub use alloc::Labelled;
pub use context::{Context, Shared};
pub use global::Global;
pub use heap::{Block, Heap, Label, LabelStats, Stats};
pub use options::{Misuse, Mode, Options, Quota, Space, Workload};
pub use scope::{outside, InScope, OverSoftLimit, Scope, ScopeError, Within};
pub use scoped::{name_aborts, scopes, ScopedGlobal};
