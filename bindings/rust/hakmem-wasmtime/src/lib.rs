//! Tenants with exact limits for wasmtime: linear memories, tables and instances are counted for whom they are made,
//! and a guest goes back to a snapshot in microseconds.
//!
//! - [`Host`]: the supply of linear memories. [`Host::configure`] makes a [`wasmtime::Config`] take them from there.
//! - [`Tenant`]: whoever is limited. [`Tenant::guest`] makes a [`Guest`], a store and an instance for it.
//! - [`Snapshot`]: what a guest was like, for [`Guest::reset`]. Its module is compiled from what [`expose`] returns.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use hakmem_wasmtime::{Host, Limits};
//!
//! let host = Host::new(Limits::default())?;
//! let mut config = wasmtime::Config::new();
//! host.configure(&mut config);
//! let engine = wasmtime::Engine::new(&config)?;
//! # let bytes = vec![];
//! // SAFETY: the bytes are what `wasmtime compile` made of what `expose` returned, and nobody has changed them.
//! let module = unsafe { wasmtime::Module::deserialize(&engine, &bytes)? };
//! let linker = wasmtime::Linker::new(&engine);
//!
//! let tenant = host.tenant("alice", Limits { linear_bytes: 16 << 20, instances: 4, ..Limits::default() })?;
//! let mut guest = tenant.guest(&linker, &module, ())?;
//! let snapshot = guest.snapshot()?;
//! let run = guest.instance().get_typed_func::<i32, i32>(guest.store(), "run")?;
//! run.call(guest.store(), 7)?;
//! guest.reset(&snapshot)?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is counted
//!
//! The sizes of linear memories, at least 64 KiB each, tables with 16 bytes for each element, stacks of async calls, and
//! snapshots are the tenant's linear bytes. What wasmtime itself allocates, for an instance say, is the program's: with
//! `hakmem::ScopedGlobal` as the allocator of the program, run the calls in a `hakmem::Scope` of the tenant.
//!
//! # Async
//!
//! While the futures of [`Tenant::guest_async`] and [`Tenant::run`] are polled, on whichever thread, the memories and
//! stacks that are made are the tenant's. Async calls run within [`Tenant::run`], or are refused. A guest keeps its stack
//! for its next call: leave room for `Config::async_stack_size` (2 MiB unless it is set) with each guest.
//! `examples/server.rs` is a server that does so.
//!
//! # Time
//!
//! A guest that falls into a loop keeps its thread for ever, unless its engine has a clock: [`Host::timed_engine`]. Async
//! calls then let others run at each tick, and [`Tenant::limit_time`] ends calls that run too long.

mod clock;
mod error;
mod expose;
mod guest;
mod host;
mod memory;
mod stack;
mod tenant;

pub use error::{Error, Reason};
pub use expose::expose;
pub use guest::{Guest, Snapshot, State};
pub use host::{Host, HostStats};
pub use tenant::{Limits, ModuleLimits, Stats, Tenant};
