//! QuickJS in a heap: its limit, and each allocation of a run failing once.
#![cfg(feature = "quickjs")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use hakmem_adapters::quickjs::QuickJs;
use rquickjs_core::allocator::Allocator;
use rquickjs_core::{Context, Runtime};

const WORK: &str = "(() => {
    let all = {}, text = '';
    for (let i = 0; i < 50; i++) { all['key' + i] = [i, {i}, x => x + i]; text += all['key' + i][2](1); }
    return JSON.stringify(all).length + text.length + [...new Map([[1, 2], [3, 4]]).values()].length;
})()";

fn eval(context: &Context, script: &str) -> Result<i32, String> {
    context.with(|ctx| match ctx.eval::<i32, _>(script) {
        Ok(n) => Ok(n),
        Err(_) => Err(ctx.catch().as_exception().and_then(|e| e.message()).unwrap_or_default()),
    })
}

#[test]
fn the_limit_is_an_exception_and_the_runtime_goes_on() {
    let heap = {
        let allocator = QuickJs::new("limited", 4 << 20).unwrap();
        let heap = allocator.heap();
        let runtime = Runtime::new_with_alloc(allocator).unwrap();
        let context = Context::full(&runtime).unwrap();
        for _ in 0..5 {
            let error = eval(&context, "globalThis.a = []; for (;;) a.push('x'.repeat(10000) + a.length)").unwrap_err();
            assert_eq!(error, "out of memory");
            assert!(heap.stats().committed_bytes <= 4 << 20);
            assert_eq!(eval(&context, "globalThis.a = 0; 42"), Ok(42));
            assert_eq!(eval(&context, "try { new Array(1e7).fill('x').map(x => [x]); 1 } catch (e) { 2 }"), Ok(2));
            runtime.run_gc();
        }
        heap
    };
    assert_eq!(heap.stats().live_blocks, 0);
}

/// In front of the adapter: the n-th request fails.
struct Nth {
    inner: QuickJs,
    countdown: Arc<AtomicUsize>,
}

impl Nth {
    fn fails(&self) -> bool {
        self.countdown.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

// SAFETY: as the adapter.
unsafe impl Allocator for Nth {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if self.fails() {
            return std::ptr::null_mut();
        }
        self.inner.alloc(size)
    }
    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if self.fails() {
            return std::ptr::null_mut();
        }
        self.inner.calloc(count, size)
    }
    unsafe fn dealloc(&mut self, p: *mut u8) {
        self.inner.dealloc(p)
    }
    unsafe fn realloc(&mut self, p: *mut u8, size: usize) -> *mut u8 {
        if size > 0 && self.fails() {
            return std::ptr::null_mut();
        }
        self.inner.realloc(p, size)
    }
    unsafe fn usable_size(p: *mut u8) -> usize {
        QuickJs::usable_size(p)
    }
}

#[test]
fn each_allocation_of_a_script_may_fail() {
    let mut failed = 0;
    let mut n = 1;
    loop {
        let countdown = Arc::new(AtomicUsize::new(usize::MAX / 2));
        let allocator = Nth { inner: QuickJs::new("fails", 0).unwrap(), countdown: countdown.clone() };
        let heap = allocator.inner.heap();
        {
            let runtime = Runtime::new_with_alloc(allocator).unwrap();
            let context = Context::full(&runtime).unwrap();
            let right = eval(&context, WORK).unwrap();
            countdown.store(n, Ordering::Relaxed);
            let result = eval(&context, WORK);
            let left = countdown.swap(usize::MAX / 2, Ordering::Relaxed);
            match result {
                Ok(n) => assert_eq!(n, right),
                Err(_) => failed += 1,
            }
            assert_eq!(eval(&context, WORK), Ok(right));
            if left > 0 && left <= n {
                assert!(failed > 30, "{failed}");
                return;
            }
        }
        assert_eq!(heap.stats().live_blocks, 0, "after the failure of request {n}");
        n += 1;
    }
}
