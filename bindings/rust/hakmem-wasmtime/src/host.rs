//! The supply of linear memories.

use std::mem::size_of;
use std::ptr::{null, NonNull};
use std::sync::Arc;
use std::time::Duration;

use hakmem_sys as sys;
use wasmtime::Engine;

use crate::clock::Clocks;
use crate::error::{Error, Reason};
use crate::memory::Creator;
use crate::stack::Stacks;
use crate::tenant::{Limits, Tenant};

pub(crate) struct HostPtr(NonNull<sys::hak_wasm_host>, Clocks);
// SAFETY: a host is for any thread.
unsafe impl Send for HostPtr {}
unsafe impl Sync for HostPtr {}

impl Drop for HostPtr {
    fn drop(&mut self) {
        // SAFETY: tenants, memories and snapshots keep the host, so none is left.
        unsafe { sys::hak_wasm_host_delete(self.0.as_ptr()) }
    }
}

/// The linear memories of a process, and the limits of all its tenants together. A clone is the same host; it lives as
/// long as an engine, a tenant or a memory of it.
#[derive(Clone)]
pub struct Host(Arc<HostPtr>);

/// Memories and address space of a host; the fields are those of `hak_wasm_host_info`, which `hakmem/wasm.h` explains.
pub type HostStats = sys::hak_wasm_host_info;

impl Host {
    /// A host whose tenants together have these limits.
    pub fn new(limits: Limits) -> Result<Host, Error> {
        let options = sys::hak_wasm_host_options {
            size: size_of::<sys::hak_wasm_host_options>(),
            bounds: sys::HAK_WASM_GUARD,
            slot_bytes: 0,
            guard_bytes: 0,
            extent_bytes: 0,
            warm_bytes: 0,
            decay_ns: 0,
            dirty: sys::HAK_WASM_DIRTY_AUTO,
            limits: limits.as_c(),
            policy: null(),
            mappings: 0,
        };
        // SAFETY: the options are whole.
        let host = unsafe { sys::hak_wasm_host_new(&options) };
        let host = NonNull::new(host).ok_or_else(|| Error::new(Reason::Memory, "hakmem: no memory for a host"))?;
        Ok(Host(Arc::new(HostPtr(host, Clocks::default()))))
    }

    /// Lets engines of this configuration take linear memories, and stacks of async calls, from the host. The pooling
    /// strategy ignores them: leave it out.
    pub fn configure<'a>(&self, config: &'a mut wasmtime::Config) -> &'a mut wasmtime::Config {
        config.memory_init_cow(false);
        config.memory_may_move(false);
        config.memory_reservation(self.slot_bytes() as u64);
        config.memory_guard_size(self.guard_bytes() as u64);
        config.with_host_stack(Arc::new(Stacks(self.clone())));
        config.with_host_memory(Arc::new(Creator(self.clone())))
    }

    /// An engine of this configuration, as by [`configure`](Host::configure), with a clock: a thread that ticks once in a
    /// period, such as 10 ms, and ends at the first tick after the engine is gone. A guest of [`Tenant::guest_async`] that
    /// runs at a tick lets other futures of its thread have their turn; such a guest has async calls only, because wasmtime
    /// ends any other call there. Calls end when their tenant's time is over: [`Tenant::limit_time`]. Modules for the engine
    /// are compiled with `Config::epoch_interruption`, and take a few instructions more for each loop and function.
    pub fn timed_engine(&self, config: &mut wasmtime::Config, period: Duration) -> Result<Engine, Error> {
        if period.is_zero() {
            return Err(Error::new(Reason::Options, "hakmem: a clock needs a period"));
        }
        let engine = Engine::new(self.configure(config).epoch_interruption(true))?;
        self.0 .1.begin(&engine, period)?;
        Ok(engine)
    }

    /// The period of the clock of an engine of this host, if it has one.
    pub(crate) fn period(&self, engine: &Engine) -> Option<Duration> {
        self.0 .1.period(engine)
    }

    /// A tenant below the host itself.
    pub fn tenant(&self, name: &str, limits: Limits) -> Result<Tenant, Error> {
        Tenant::new(self, None, name, limits)
    }

    /// The host lends time: pages that have been idle go back. To be called about every 100 ms, by any thread.
    pub fn tick(&self) {
        // SAFETY: for any thread.
        unsafe { sys::hak_wasm_host_tick(self.as_ptr(), 0) }
    }

    /// All pages of idle slots and of guests that [rest](crate::Guest::rest) go back now. Returns the bytes.
    pub fn trim(&self) -> usize {
        // SAFETY: for any thread.
        unsafe { sys::hak_wasm_host_trim(self.as_ptr()) }
    }

    pub fn stats(&self) -> HostStats {
        let mut info = HostStats { size: size_of::<HostStats>(), ..Default::default() };
        // SAFETY: the size is set.
        unsafe { sys::hak_wasm_host_stats(self.as_ptr(), &mut info) };
        info
    }

    /// What a memory can grow to.
    pub fn slot_bytes(&self) -> usize {
        // SAFETY: for any thread.
        unsafe { sys::hak_wasm_slot_bytes(self.as_ptr()) }
    }

    pub fn guard_bytes(&self) -> usize {
        // SAFETY: for any thread.
        unsafe { sys::hak_wasm_guard_bytes(self.as_ptr()) }
    }

    /// For the functions of `hakmem_sys`.
    pub fn as_ptr(&self) -> *mut sys::hak_wasm_host {
        self.0 .0.as_ptr()
    }
}
