//! The pool and V8's buffers, without DataFusion and V8.

use std::ffi::c_void;
use std::sync::Arc;

use hakmem::{Scope, Shared};
use hakmem_adapters::{buffers, pool};

#[global_allocator]
static GLOBAL: hakmem::ScopedGlobal = hakmem::ScopedGlobal;

const MIB: usize = 1 << 20;

#[test]
fn the_pool_knows_what_nobody_announced() {
    let scope = Scope::new("query").unwrap();
    let pool = pool::ScopePool::new(&scope, 64 * MIB);
    let pool: &dyn std::any::Any = &pool;
    let pool = pool.downcast_ref::<pool::ScopePool>().unwrap();
    // Announced, then allocated: counted once.
    pool.try_grow(20 * MIB).unwrap();
    let sorted = scope.enter(|| vec![1u8; 20 * MIB]);
    assert_eq!(pool.reserved(), 20 * MIB);
    assert!(pool.used() >= 20 * MIB && pool.used() < 24 * MIB, "{pool:?}");
    // Not announced: counted all the same.
    let hidden = scope.enter(|| vec![1u8; 30 * MIB]);
    assert!(pool.used() >= 50 * MIB);
    let over = pool.try_grow(20 * MIB).unwrap_err();
    assert_eq!((over.additional, over.reserved, over.limit), (20 * MIB, 20 * MIB, 64 * MIB));
    assert!(over.live >= 50 * MIB);
    assert!(over.to_string().starts_with("20971520 bytes more are over 67108864: 20971520 are reserved, 5"), "{over}");
    assert_eq!(pool.reserved(), 20 * MIB);
    pool.try_grow(10 * MIB).unwrap();
    assert_eq!(pool.try_grow(usize::MAX).unwrap_err().reserved, 30 * MIB);
    // What cannot be refused is counted.
    pool.grow(60 * MIB);
    assert!(pool.try_grow(1).is_err());
    pool.shrink(90 * MIB);
    drop((sorted, hidden));
    assert_eq!(pool.reserved(), 0);
    pool.try_grow(60 * MIB).unwrap();
    assert!(format!("{pool:?}").starts_with("ScopePool(\"query\": 62914560 of 67108864)"), "{pool:?}");
}

#[test]
fn the_pool_allocates_nothing_and_is_for_all_threads() {
    let scope = Scope::new("query").unwrap();
    let pool = Arc::new(pool::ScopePool::new(&scope, 1000));
    let before = scope.stats().live_blocks;
    scope.enter(|| {
        for _ in 0..1000 {
            pool.try_grow(10).unwrap();
            pool.shrink(10);
        }
    });
    assert_eq!(scope.stats().live_blocks, before);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let pool = pool.clone();
            std::thread::spawn(move || {
                let mut granted = 0;
                for _ in 0..1000 {
                    granted += pool.try_grow(1).is_ok() as usize;
                    assert!(pool.reserved() <= 1000);
                }
                granted
            })
        })
        .collect();
    let granted: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!((granted, pool.reserved()), (1000, 1000));
}

/// The table of the crate `v8`, whose library cannot be built everywhere; the types are copied from its documentation.
#[repr(C)]
struct RustAllocatorVtable<T> {
    allocate: unsafe extern "C" fn(handle: &T, len: usize) -> *mut c_void,
    allocate_uninitialized: unsafe extern "C" fn(handle: &T, len: usize) -> *mut c_void,
    free: unsafe extern "C" fn(handle: &T, data: *mut c_void, len: usize),
    reallocate:
        unsafe extern "C" fn(handle: &T, data: *mut c_void, old_length: usize, new_length: usize) -> *mut c_void,
    drop: unsafe extern "C" fn(handle: *const T),
}

static VTABLE: RustAllocatorVtable<Shared> = RustAllocatorVtable {
    allocate: buffers::allocate,
    allocate_uninitialized: buffers::allocate_uninitialized,
    free: buffers::free,
    reallocate: buffers::reallocate,
    drop: buffers::drop_heap,
};

#[test]
fn buffers_are_within_the_limit_and_each_may_fail() {
    let heap = Arc::new(Shared::new().unwrap());
    heap.limit(8 * MIB);
    let handle = Arc::into_raw(heap.clone());
    let bytes = |p: *mut c_void, n: usize| unsafe { std::slice::from_raw_parts_mut(p.cast::<u8>(), n) };
    // SAFETY: as V8 calls them.
    unsafe {
        let v8 = &*handle;
        for n in [0, 1, 16, 1000, 100_000, 3 * MIB] {
            let p = (VTABLE.allocate)(v8, n);
            assert!(!p.is_null() && p as usize % 16 == 0 && bytes(p, n).iter().all(|&x| x == 0));
            bytes(p, n).fill(7);
            let p = (VTABLE.reallocate)(v8, p, n, 2 * n + 1);
            assert!(!p.is_null() && bytes(p, n).iter().all(|&x| x == 7));
            assert!(bytes(p, 2 * n + 1)[n..].iter().all(|&x| x == 0));
            // One that fails leaves the block.
            assert!((VTABLE.reallocate)(v8, p, 2 * n + 1, 100 * MIB).is_null());
            assert!(bytes(p, n).iter().all(|&x| x == 7));
            let address = p as usize;
            std::thread::scope(|scope| {
                // V8 frees on a thread of its own.
                scope.spawn(move || (VTABLE.free)(&*heap_at(address, v8), address as *mut c_void, 2 * n + 1));
            });
            assert_eq!(heap.stats().live_blocks, 0);
        }
        // A script that makes buffers until there are no more, each time with less room.
        for limit in (100_000..8 * MIB).step_by(500_000) {
            let heap = Shared::new().unwrap();
            heap.limit(limit);
            let v8 = &heap;
            let mut all = Vec::new();
            loop {
                let n = 1000 + all.len() * 997 % 50_000;
                let p =
                    if all.len() % 2 == 0 { (VTABLE.allocate)(v8, n) } else { (VTABLE.allocate_uninitialized)(v8, n) };
                if p.is_null() {
                    break;
                }
                bytes(p, n).fill(1);
                all.push((p, n));
                assert!(heap.stats().committed_bytes <= limit);
            }
            for (p, n) in all {
                (VTABLE.free)(v8, p, n);
            }
            assert_eq!(heap.stats().live_blocks, 0);
        }
        (VTABLE.drop)(handle);
    }
    assert_eq!(Arc::strong_count(&heap), 1);
}

/// The heap again; the address is only there to be sent.
fn heap_at(_: usize, heap: &Shared) -> &Shared {
    heap
}
