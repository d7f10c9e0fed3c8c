//! Heaps that are values: one for a thread at a time, one for all threads.

use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use hakmem_sys as sys;

use crate::options::{self, Kept, Options};
use crate::{Block, Heap, Label, Labelled};

type PressureFn = dyn Fn(&Heap, usize, usize) + Send + Sync;

struct Owned {
    heap: Heap,
    pressure: Box<Mutex<Option<Arc<PressureFn>>>>,
    _kept: Kept,
}

unsafe extern "C" fn pressed(ctx: *mut sys::hak_ctx, user: *mut c_void, committed: usize, limit: usize) {
    options::without_panic(|| {
        // The call may replace the closure that runs.
        let place = &*(user as *const Mutex<Option<Arc<PressureFn>>>);
        let f = place.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let (Some(f), Some(ctx)) = (f, NonNull::new(ctx)) {
            f(&Heap::of(ctx), committed, limit);
        }
    });
}

impl Owned {
    fn make(options: Options, shared: bool) -> Option<Owned> {
        let (ctx, kept) = options::make(options, shared)?;
        Some(Owned { heap: Heap::of(ctx), pressure: Box::default(), _kept: kept })
    }

    fn limits(&self, soft: usize, hard: usize, f: Arc<PressureFn>) -> bool {
        if hard > 0 && soft > hard {
            return false;
        }
        let before = self.pressure.lock().unwrap_or_else(PoisonError::into_inner).replace(f);
        let user = &*self.pressure as *const Mutex<Option<Arc<PressureFn>>> as *mut c_void;
        // SAFETY: the closure's place lives as long as the heap.
        let set = unsafe { sys::hak_limit(self.heap.as_ptr(), soft, hard, Some(pressed), user) == 0 };
        drop(before);
        set
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: nothing borrows the heap any more; what it refers to is dropped after it.
        unsafe { sys::hak_ctx_destroy(self.heap.as_ptr()) }
    }
}

/// A heap for one thread at a time. Its drop frees every block at once, without a look at any; it runs no drop of
/// what lives in it, which the borrow rules have seen to.
pub struct Context {
    owned: Owned,
    one_thread: PhantomData<Cell<()>>,
}

/// A heap for all threads at once. Each gets a part of it on first use (16 KiB and what it allocates).
pub struct Shared {
    owned: Owned,
}

// SAFETY: one thread at a time may use a local context, and Context is not Sync.
unsafe impl Send for Context {}
// SAFETY: a shared context is for any thread, and its end needs that nobody is inside a call, which ownership says.
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}

macro_rules! heap {
    ($type:ident, $shared:expr $(, $field:ident)?) => {
        impl $type {
            /// A heap with a space of its own. `None`: no memory.
            pub fn new() -> Option<$type> {
                $type::with_options(Options::default())
            }

            /// `None`: no memory, no room in the quota, or options that are refused.
            pub fn with_options(options: Options) -> Option<$type> {
                Some($type { owned: Owned::make(options, $shared)? $(, $field: PhantomData)? })
            }

            /// An allocator whose blocks have this label.
            pub fn with(&self, label: Label) -> Labelled<'_, $type> {
                Labelled { heap: self, label }
            }

            /// As [`Heap::limit`], and `f` is called once each time that the committed bytes cross `soft` upwards,
            /// with them and `soft`, at the start of an allocation. It may allocate and free here, to run a
            /// collector, say. 0 = no limit. A panic in `f` ends the process. False: soft > hard > 0, nothing was
            /// changed.
            pub fn limits(&self, soft: usize, hard: usize, f: impl Fn(&Heap, usize, usize) + Send + Sync + 'static) -> bool {
                self.owned.limits(soft, hard, Arc::new(f))
            }
        }

        impl Deref for $type {
            type Target = Heap;
            fn deref(&self) -> &Heap {
                &self.owned.heap
            }
        }
    };
}

heap!(Context, false, one_thread);
heap!(Shared, true);

impl Context {
    /// Every live block.
    pub fn blocks(&self) -> Vec<Block> {
        // SAFETY: this thread alone uses the heap.
        unsafe { self.visit_all() }
    }

    /// Whether the whole heap is consistent. Slow.
    pub fn check(&self) -> bool {
        // SAFETY: this thread alone uses the heap.
        unsafe { self.sound() }
    }
}

impl Shared {
    /// Every live block.
    ///
    /// # Safety
    /// No other thread is inside a call of this heap, frees included.
    pub unsafe fn blocks(&self) -> Vec<Block> {
        self.visit_all()
    }

    /// Whether the whole heap is consistent. Slow.
    ///
    /// # Safety
    /// No other thread is inside a call of this heap, frees included.
    pub unsafe fn check(&self) -> bool {
        self.sound()
    }

    /// The calling thread will not use the heap for a while: what it has at hand goes to others.
    pub fn thread_done(&self) {
        // SAFETY: for any thread; a thread that comes back gets a part again.
        unsafe { sys::hak_ctx_thread_done(self.as_ptr()) }
    }
}
