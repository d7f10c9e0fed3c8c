//! A heap for each tenant of a program: what a thread allocates while it works for a tenant is the tenant's.

use std::cell::Cell;
use std::ffi::{c_void, CString};
use std::future::Future;
use std::mem::{size_of, zeroed};
use std::ops::Deref;
use std::pin::Pin;
use std::ptr::{null_mut, NonNull};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};

use hakmem_sys as sys;

use crate::global::HERE;
use crate::options::without_panic;
use crate::{global, scoped, Heap};

type SoftFn = dyn Fn(usize, usize) + Send + Sync;

/// What the allocator knows of a scope: `hak_ctx_user` of its context. It lies in the heap of the program, and goes
/// with the last block of the scope.
pub(crate) struct Inner {
    pub ctx: *mut sys::hak_ctx,
    /// Threads that are freeing a block of the scope's, but work for somebody else.
    pub visitors: AtomicUsize,
    /// The scope was dropped, and blocks of it live on.
    pub orphan: AtomicBool,
    /// Under the lock of `scoped`: blocks that an orphan still has, and neighbours in the list of all.
    pub left: Cell<usize>,
    pub next: Cell<*const Inner>,
    pub before: Cell<*const Inner>,
    over: AtomicBool,
    soft_bytes: AtomicUsize,
    soft: Mutex<Option<Arc<SoftFn>>>,
    pub name: CString,
}

/// The scope that this thread works for; null = none.
#[inline]
pub(crate) fn current() -> *const Inner {
    HERE.with(|here| here.scope.get())
}

/// Makes a scope current until it is dropped. Not `Send`.
struct Entered {
    before: *const Inner,
}

impl Entered {
    fn new(inner: *const Inner) -> Entered {
        Entered { before: HERE.with(|here| here.scope.replace(inner)) }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        HERE.with(|here| here.scope.set(self.before));
    }
}

/// Runs `f` outside of any scope: what it allocates is the program's own.
pub fn outside<R>(f: impl FnOnce() -> R) -> R {
    let _entered = Entered::new(std::ptr::null());
    f()
}

struct Owner(NonNull<Inner>);
// SAFETY: the context is shared, and the fields of Inner are atomic, behind a lock, or never changed.
unsafe impl Send for Owner {}
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: no thread works for the scope: each that does holds the owner.
        unsafe { scoped::orphan(self.0.as_ptr()) }
    }
}

/// Why a scope cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeError {
    /// The name has a zero byte.
    Name,
    /// No memory for another heap.
    Memory,
}

impl std::fmt::Display for ScopeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ScopeError::Name => "the name of a scope has a zero byte",
            ScopeError::Memory => "no memory for the heap of a scope",
        })
    }
}

impl std::error::Error for ScopeError {}

/// The soft limit of a scope was crossed, and the future that ran in it was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverSoftLimit;

impl std::fmt::Display for OverSoftLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the scope is over its soft limit")
    }
}

impl std::error::Error for OverSoftLimit {}

/// The heap of a tenant, a query, a request. Needs [`ScopedGlobal`](crate::ScopedGlobal) as the allocator of the
/// program.
///
/// ```
/// #[global_allocator]
/// static GLOBAL: hakmem::ScopedGlobal = hakmem::ScopedGlobal;
///
/// let tenant = hakmem::Scope::new("tenant 17").unwrap();
/// tenant.limits(48 << 20, 64 << 20, |committed, limit| eprintln!("{committed} of {limit} bytes"));
/// let rows = tenant.enter(|| vec![0u64; 1000]);
/// assert!(tenant.live_bytes() >= 8000);
/// let mut more: Vec<u8> = Vec::new();
/// assert!(tenant.enter(|| more.try_reserve(100 << 20)).is_err());
/// drop(rows);
/// ```
///
/// - What a thread allocates while [`enter`](Scope::enter) runs, or while a future of [`run`](Scope::run) is polled,
///   is in this heap. Scopes nest: the innermost counts.
/// - Blocks may be freed on any thread, in any scope, and after the scope was dropped. A block that grows while
///   another scope is current moves into that one's heap.
/// - What a library or a runtime makes for itself meanwhile, a cache say, is in this heap, too, and keeps a little of it
///   when the scope was dropped: [`outside`] for what is known to stay.
/// - Tasks and threads that are started in a scope are not in it: wrap them too.
/// - Over the hard limit allocations fail: `try_reserve` is an error, `push` and `Box::new` end the process
///   ([`name_aborts`](crate::name_aborts)). So set a soft limit below it, and end the work there.
///
/// A clone is the same scope. [`Heap`] has labels and statistics; [`Heap::live_bytes`] takes a few instructions for
/// each thread that has used the scope.
#[derive(Clone)]
pub struct Scope {
    owner: Arc<Owner>,
    heap: Arc<Heap>,
}

// SAFETY: the heap is that of a shared context.
unsafe impl Send for Scope {}
unsafe impl Sync for Scope {}

unsafe extern "C" fn pressed(_: *mut sys::hak_ctx, user: *mut c_void, committed: usize, limit: usize) {
    let inner = &*(user as *const Inner);
    inner.over.store(true, Ordering::Release);
    // What the closure allocates must not need the heap that is short of memory.
    without_panic(|| {
        outside(|| {
            let f = inner.soft.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(f) = f {
                f(committed, limit);
            }
        })
    });
}

impl Scope {
    /// A heap without limits.
    pub fn new(name: &str) -> Result<Scope, ScopeError> {
        outside(|| {
            let name = CString::new(name).map_err(|_| ScopeError::Name)?;
            let space = global::space().ok_or(ScopeError::Memory)?;
            let mut inner = Box::new(Inner {
                ctx: null_mut(),
                visitors: AtomicUsize::new(0),
                orphan: AtomicBool::new(false),
                left: Cell::new(0),
                next: Cell::new(std::ptr::null()),
                before: Cell::new(std::ptr::null()),
                over: AtomicBool::new(false),
                soft_bytes: AtomicUsize::new(0),
                soft: Mutex::new(None),
                name,
            });
            // SAFETY: all zero is a value of every field; init sets the defaults. The name lives as long as the heap.
            let ctx = unsafe {
                let mut o: sys::hak_options = zeroed();
                sys::hak_options_init(&mut o, size_of::<sys::hak_options>());
                o.name = inner.name.as_ptr();
                o.shared = true;
                o.workload = sys::HAK_WORKLOAD_MALLOC;
                o.user = &*inner as *const Inner as *mut c_void;
                sys::hak_ctx_new(space, &o)
            };
            let heap = NonNull::new(ctx).map(Heap::of).ok_or(ScopeError::Memory)?;
            inner.ctx = ctx;
            let inner = NonNull::from(Box::leak(inner));
            // SAFETY: the list has it until its last block is freed.
            unsafe { scoped::register(inner.as_ptr()) };
            Ok(Scope { owner: Arc::new(Owner(inner)), heap: Arc::new(heap) })
        })
    }

    fn inner(&self) -> &Inner {
        // SAFETY: it lives as long as its owner at least.
        unsafe { self.owner.0.as_ref() }
    }

    pub fn name(&self) -> &str {
        self.inner().name.to_str().unwrap_or("")
    }

    /// Limits on committed bytes, 0 = none. `f` is called each time that `soft` is crossed upwards, with the
    /// committed bytes and `soft`, at the start of an allocation, outside of the scope. It may allocate; a panic in
    /// it ends the process. False: soft > hard > 0, nothing was changed.
    pub fn limits(&self, soft: usize, hard: usize, f: impl Fn(usize, usize) + Send + Sync + 'static) -> bool {
        if hard > 0 && soft > hard {
            return false;
        }
        outside(|| {
            let f: Arc<SoftFn> = Arc::new(f);
            let before = self.inner().soft.lock().unwrap_or_else(PoisonError::into_inner).replace(f);
            drop(before);
            let user = self.owner.0.as_ptr() as *mut c_void;
            // SAFETY: Inner lives as long as the heap.
            let set = unsafe { sys::hak_limit(self.heap.as_ptr(), soft, hard, Some(pressed), user) == 0 };
            if set {
                self.inner().soft_bytes.store(soft, Ordering::Release);
            }
            set
        })
    }

    /// Whether the soft limit has been crossed since the scope was made or [`forgive`](Scope::forgive) was called, or
    /// more than that lives now: the allocation that crossed it may have been the last.
    pub fn is_over(&self) -> bool {
        let soft = self.inner().soft_bytes.load(Ordering::Acquire);
        self.inner().over.load(Ordering::Acquire) || (soft > 0 && self.live_bytes() > soft)
    }

    /// Forgets that the soft limit was crossed, and gives free memory back, so that the limit can be crossed again.
    pub fn forgive(&self) {
        self.heap.trim();
        self.inner().over.store(false, Ordering::Release);
    }

    /// Runs `f` on this thread for the scope.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let _entered = Entered::new(self.owner.0.as_ptr());
        f()
    }

    /// A future that is polled, and dropped, in the scope, on whichever thread.
    pub fn run<F: Future>(&self, future: F) -> InScope<F> {
        InScope { scope: self.clone(), future: Some(future) }
    }

    /// As [`run`](Scope::run), but the future is dropped once the scope [is over](Scope::is_over) its soft limit: at
    /// the end of the poll in which that happened.
    pub fn run_within<F: Future>(&self, future: F) -> Within<F> {
        Within { inner: self.run(future) }
    }
}

impl Deref for Scope {
    type Target = Heap;
    fn deref(&self) -> &Heap {
        &self.heap
    }
}

/// A future in a scope: [`Scope::run`].
pub struct InScope<F> {
    scope: Scope,
    future: Option<F>,
}

impl<F> InScope<F> {
    fn end(&mut self) {
        let _entered = Entered::new(self.scope.owner.0.as_ptr());
        self.future = None;
    }
}

impl<F> Drop for InScope<F> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<F: Future> Future for InScope<F> {
    type Output = F::Output;
    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<F::Output> {
        // SAFETY: the future is pinned as this is: it is never moved, and dropped in its place.
        let this = unsafe { self.get_unchecked_mut() };
        let _entered = Entered::new(this.scope.owner.0.as_ptr());
        let future = this.future.as_mut().expect("polled after its end");
        unsafe { Pin::new_unchecked(future) }.poll(task)
    }
}

/// A future in a scope that ends at its soft limit: [`Scope::run_within`].
pub struct Within<F> {
    inner: InScope<F>,
}

impl<F: Future> Future for Within<F> {
    type Output = Result<F::Output, OverSoftLimit>;
    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        // SAFETY: as for InScope.
        let this = unsafe { self.get_unchecked_mut() };
        let over = this.inner.scope.is_over();
        if !over {
            if let Poll::Ready(value) = unsafe { Pin::new_unchecked(&mut this.inner) }.poll(task) {
                return Poll::Ready(Ok(value));
            }
        }
        if this.inner.scope.is_over() {
            this.inner.end();
            return Poll::Ready(Err(OverSoftLimit));
        }
        Poll::Pending
    }
}
