//! Whoever is counted and limited.

use std::ffi::{c_char, CStr, CString};
use std::future::Future;
use std::mem::size_of;
use std::pin::Pin;
use std::ptr::{null_mut, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hakmem_sys as sys;

use crate::error::{Error, Reason};
use crate::host::Host;

/// What a tenant may have; 0 = no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Sizes of linear memories, at least 64 KiB each, tables, stacks of async calls, and snapshots.
    pub linear_bytes: usize,
    /// Guests at once.
    pub instances: usize,
}

impl Limits {
    pub(crate) fn as_c(self) -> sys::hak_wasm_limits {
        sys::hak_wasm_limits {
            heap_bytes: 0,
            heap_soft: false,
            linear_bytes: self.linear_bytes,
            instances: self.instances,
        }
    }
}

/// What a module may have; 0 = no limit, `hakmem_sys::HAK_NONE` = none. `hakmem/wasm.h` explains the fields; `size` is
/// set by [`Tenant::limit_modules`].
pub type ModuleLimits = sys::hak_wasm_module_limits;

/// Figures of a tenant with its children; the fields are those of `hak_wasm_tenant_info`, which `hakmem/wasm.h`
/// explains.
pub type Stats = sys::hak_wasm_tenant_info;

struct TenantPtr {
    tenant: NonNull<sys::hak_wasm_tenant>,
    time_ns: AtomicU64, // 0 = no limit
    parent: Option<Tenant>,
    host: Host,
}
// SAFETY: a tenant is for any thread.
unsafe impl Send for TenantPtr {}
unsafe impl Sync for TenantPtr {}

impl Drop for TenantPtr {
    fn drop(&mut self) {
        // SAFETY: no guest and no child is left, as they keep it. The parent goes after it.
        unsafe { sys::hak_wasm_tenant_close(self.tenant.as_ptr(), sys::HAK_WASM_RETIRE) };
        self.parent = None;
    }
}

/// A customer, a plugin, a request. A clone is the same tenant; it lives as long as a guest or a child of it.
#[derive(Clone)]
pub struct Tenant(Arc<TenantPtr>);

impl Tenant {
    pub(crate) fn new(host: &Host, parent: Option<&Tenant>, name: &str, limits: Limits) -> Result<Tenant, Error> {
        let name = CString::new(name).map_err(|_| Error::new(Reason::Options, "hakmem: a name has a zero byte"))?;
        let options = sys::hak_wasm_tenant_options {
            size: size_of::<sys::hak_wasm_tenant_options>(),
            name: name.as_ptr(),
            parent: parent.map_or(null_mut(), Tenant::as_ptr),
            children: parent.is_none(),
            limits: limits.as_c(),
        };
        // SAFETY: the options are whole, and the name is copied.
        let tenant = unsafe { sys::hak_wasm_tenant_new(host.as_ptr(), &options) };
        let tenant =
            NonNull::new(tenant).ok_or_else(|| Error::new(Reason::Memory, "hakmem: no memory for a tenant"))?;
        let time_ns = AtomicU64::new(0);
        Ok(Tenant(Arc::new(TenantPtr { tenant, time_ns, parent: parent.cloned(), host: host.clone() })))
    }

    /// A tenant below this one, whose limits count too. A child has no children.
    pub fn child(&self, name: &str, limits: Limits) -> Result<Tenant, Error> {
        if self.0.parent.is_some() {
            return Err(Error::new(Reason::Options, "hakmem: a child has no children"));
        }
        Tenant::new(&self.0.host, Some(self), name, limits)
    }

    pub fn name(&self) -> &str {
        // SAFETY: the name lives as long as the tenant; up to 47 bytes of it are there, perhaps half a character less.
        let name = unsafe { CStr::from_ptr(sys::hak_wasm_tenant_name(self.as_ptr())) };
        match name.to_str() {
            Ok(whole) => whole,
            Err(cut) => std::str::from_utf8(&name.to_bytes()[..cut.valid_up_to()]).unwrap_or(""),
        }
    }

    /// New limits; below what is used they only stop growth.
    pub fn limit(&self, limits: Limits) {
        // SAFETY: for any thread.
        unsafe { sys::hak_wasm_tenant_limit(self.as_ptr(), &limits.as_c()) }
    }

    /// How long each call of the tenant's guests, and of its children's, may run; `None` = no limit. A call whose time is
    /// over ends with [`Reason::Time`], and its guest can be reset. Its time begins with
    /// [`Guest::store`](crate::Guest::store), and is that of all calls made with what that returned. It is counted in ticks of
    /// the engine's clock that find the guest running, so that a call ends up to two periods late, or later where the clock
    /// itself gets no processor. Turns of other futures do not count, and a wait for a function of the host counts as a
    /// period at most.
    ///
    /// Only engines of [`Host::timed_engine`](crate::Host::timed_engine) can end a call. From now on the tenant gets no guest of
    /// another engine; those that it has go on without a limit. The deadline of the store and its callback are the crate's.
    pub fn limit_time(&self, most: Option<Duration>) {
        let ns = most.map_or(0, |most| u64::try_from(most.as_nanos()).unwrap_or(u64::MAX).max(1));
        self.0.time_ns.store(ns, Ordering::Relaxed);
    }

    /// The smaller one of the tenant's limit and its parent's.
    pub(crate) fn time(&self) -> Option<Duration> {
        let own = Some(self.0.time_ns.load(Ordering::Relaxed)).filter(|&ns| ns != 0).map(Duration::from_nanos);
        own.into_iter().chain(self.0.parent.as_ref().and_then(Tenant::time)).min()
    }

    /// For what [`check`](Tenant::check) is asked from now on.
    pub fn limit_modules(&self, limits: ModuleLimits) {
        let limits = ModuleLimits { size: size_of::<ModuleLimits>(), ..limits };
        // SAFETY: the size is set.
        unsafe { sys::hak_wasm_tenant_modules(self.as_ptr(), &limits) };
    }

    /// Whether a binary keeps to the limits on modules of the tenant and its parents. To be asked before wasmtime
    /// compiles what a stranger wrote. What was compiled ahead of time has `bytes` alone.
    pub fn check(&self, module: &[u8]) -> Result<(), Error> {
        let mut text: [c_char; 256] = [0; 256];
        // SAFETY: the places are as large as they are said to be.
        let fine = unsafe {
            let bytes = module.as_ptr().cast();
            sys::hak_wasm_module_check(self.as_ptr(), bytes, module.len(), text.as_mut_ptr(), text.len()) == 0
        };
        if fine {
            return Ok(());
        }
        // SAFETY: it ends with a zero.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
        Err(Error::new(Reason::Module, text))
    }

    /// Cost: a pass over the tenant's heap, and that of [`resident`](Tenant::resident).
    pub fn stats(&self) -> Stats {
        let mut info = Stats { size: size_of::<Stats>(), ..Default::default() };
        // SAFETY: the size is set.
        unsafe { sys::hak_wasm_tenant_stats(self.as_ptr(), &mut info) };
        info
    }

    /// Resident bytes of the tenant's memories and stacks that are its own. Cost: a pass over their page tables.
    pub fn resident(&self) -> usize {
        // SAFETY: for any thread.
        unsafe { sys::hak_wasm_tenant_resident(self.as_ptr()) }
    }

    /// Those, and of each snapshot that its guests were reset to an equal part for each guest: the sum over all tenants is
    /// what the memories really take.
    pub fn proportional(&self) -> usize {
        // SAFETY: for any thread.
        unsafe { sys::hak_wasm_tenant_proportional(self.as_ptr()) }
    }

    /// A future that is polled for the tenant, on whichever thread: for async calls of its guests, whose stacks it pays.
    pub fn run<F: Future>(&self, future: F) -> impl Future<Output = F::Output> {
        Entered { tenant: self.clone(), future }
    }

    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// For the functions of `hakmem_sys`.
    pub fn as_ptr(&self) -> *mut sys::hak_wasm_tenant {
        self.0.tenant.as_ptr()
    }

    pub(crate) fn admit(&self) -> Result<(), Error> {
        // SAFETY: for any thread.
        match unsafe { sys::hak_wasm_admit(self.as_ptr()) } {
            0 => Ok(()),
            _ => {
                let text = format!("hakmem: \"{}\" has as many instances as it may", self.name());
                Err(Error::new(Reason::Instances, text))
            }
        }
    }

    pub(crate) fn dismiss(&self) {
        // SAFETY: for any thread.
        unsafe { sys::hak_wasm_dismiss(self.as_ptr()) }
    }

    pub(crate) fn charge(&self, bytes: usize) -> bool {
        // SAFETY: for any thread.
        unsafe { sys::hak_wasm_charge(self.as_ptr(), bytes) == 0 }
    }

    pub(crate) fn uncharge(&self, bytes: usize) {
        // SAFETY: for any thread.
        unsafe { sys::hak_wasm_uncharge(self.as_ptr(), bytes) }
    }

    /// Runs `f` on this thread for the tenant: memories that are made are its own.
    pub(crate) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Left(sys::hak_wasm_scope);
        impl Drop for Left {
            fn drop(&mut self) {
                // SAFETY: what enter returned, on the same thread.
                unsafe { sys::hak_wasm_leave(self.0) }
            }
        }
        // SAFETY: the tenant lives as long as this call.
        let _left = Left(unsafe { sys::hak_wasm_enter(self.as_ptr(), sys::HAK_WASM_INSTANCE) });
        f()
    }
}

/// A future that is polled for a tenant, on whichever thread.
pub(crate) struct Entered<F> {
    pub tenant: Tenant,
    pub future: F,
}

impl<F: Future> Future for Entered<F> {
    type Output = F::Output;
    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is pinned as this is, and is never moved.
        let this = unsafe { self.get_unchecked_mut() };
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        this.tenant.enter(|| future.poll(task))
    }
}
