//! QuickJS by rquickjs: a heap for each runtime, for `Runtime::new_with_alloc`.
//!
//! ```
//! let allocator = hakmem_adapters::quickjs::QuickJs::new("script", 8 << 20).expect("memory");
//! let heap = allocator.heap();
//! let runtime = rquickjs_core::Runtime::new_with_alloc(allocator).unwrap();
//! let context = rquickjs_core::Context::full(&runtime).unwrap();
//! let sum: i32 = context.with(|ctx| ctx.eval("[1, 2, 3].reduce((a, b) => a + b)")).unwrap();
//! assert_eq!(sum, 6);
//! assert!(heap.live_bytes() > 10_000 && heap.stats().committed_bytes <= 8 << 20);
//! ```
//!
//! Over the limit a script gets an `InternalError: out of memory`, which it can catch. `Runtime::set_memory_limit` counts
//! bytes that QuickJS asked for; this limit is on what the heap takes from the system.

use std::sync::{Arc, OnceLock};

use hakmem::{Options, Shared, Space};
use hakmem_sys as sys;
use rquickjs_core::allocator::Allocator;

/// QuickJS asks for the size of a block without saying whose it is, so all heaps are in one space.
fn space() -> Option<&'static Space> {
    static SPACE: OnceLock<Option<Space>> = OnceLock::new();
    SPACE.get_or_init(Space::new).as_ref()
}

/// The allocator of one runtime.
pub struct QuickJs {
    heap: Arc<Shared>,
}

impl QuickJs {
    /// A heap with a limit on committed bytes, 0 = none. `None`: no memory.
    pub fn new(name: &str, limit: usize) -> Option<QuickJs> {
        let heap = Shared::with_options(Options::new().name(name).space(space()?))?;
        heap.limit(limit);
        Some(QuickJs { heap: Arc::new(heap) })
    }

    /// For figures and limits, also while the runtime has the allocator. It lives as long as anybody has it.
    pub fn heap(&self) -> Arc<Shared> {
        self.heap.clone()
    }
}

// SAFETY: blocks are aligned to 8 at least, and the size told is the one that may be used.
unsafe impl Allocator for QuickJs {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        // SAFETY: the heap lives.
        unsafe { sys::hak_alloc(self.heap.as_ptr(), size).cast() }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: the heap lives.
        unsafe { sys::hak_calloc(self.heap.as_ptr(), count, size).cast() }
    }

    unsafe fn dealloc(&mut self, p: *mut u8) {
        sys::hak_free(self.heap.as_ptr(), p.cast())
    }

    unsafe fn realloc(&mut self, p: *mut u8, size: usize) -> *mut u8 {
        sys::hak_realloc(self.heap.as_ptr(), p.cast(), size).cast()
    }

    unsafe fn usable_size(p: *mut u8) -> usize {
        let Some(space) = space() else { return 0 };
        let ctx = sys::hak_ctx_of(space.as_ptr(), p.cast());
        if ctx.is_null() {
            return 0;
        }
        sys::hak_usable_size(ctx, p.cast())
    }
}
