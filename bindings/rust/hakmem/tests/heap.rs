//! Heaps as values: allocators, labels, limits, threads, misuse.

use std::alloc::Layout;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use hakmem::{Context, Heap, Label, Mode, Options, Quota, Shared, Space, Workload};
use hashbrown::{DefaultHashBuilder, HashMap};

/// A heap that checks every call, and how often it complained.
fn checked() -> (Options, Arc<AtomicUsize>) {
    let complaints = Arc::new(AtomicUsize::new(0));
    let seen = complaints.clone();
    let options = unsafe {
        Options::new().check(true).on_error(move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
        })
    };
    (options, complaints)
}

#[test]
fn every_size_and_alignment_through_every_call() {
    let (options, complaints) = checked();
    let heap = Context::with_options(options).unwrap();
    let allocator = heap.with(heap.define("blocks").unwrap());
    for shift in 0..14 {
        for size in [0usize, 1, 7, 8, 16, 20, 24, 48, 100, 1024, 5000, 40000, 2 << 20] {
            let layout = Layout::from_size_align(size, 1 << shift).unwrap();
            let block = allocator.allocate(layout).unwrap();
            let p = block.cast::<u8>();
            assert_eq!((block.len(), p.as_ptr() as usize % layout.align()), (size, 0));
            unsafe { p.as_ptr().write_bytes(7, size) };
            let larger = Layout::from_size_align(size * 2 + 20, 1 << shift).unwrap();
            let grown = unsafe { allocator.grow_zeroed(p, layout, larger) }.unwrap();
            let bytes = unsafe { grown.as_ref() };
            assert_eq!(grown.cast::<u8>().as_ptr() as usize % layout.align(), 0);
            assert!(bytes[..size].iter().all(|b| *b == 7) && bytes[size..].iter().all(|b| *b == 0));
            // To another alignment, smaller and larger.
            let half = Layout::from_size_align(size / 2, if shift > 2 { 4 } else { 64 }).unwrap();
            let less = unsafe { allocator.shrink(grown.cast(), larger, half) }.unwrap();
            assert_eq!(less.cast::<u8>().as_ptr() as usize % half.align(), 0);
            assert!(unsafe { less.as_ref() }.iter().all(|b| *b == 7));
            unsafe { allocator.deallocate(less.cast(), half) };
            let zeroed = allocator.allocate_zeroed(layout).unwrap();
            assert_eq!(zeroed.cast::<u8>().as_ptr() as usize % layout.align(), 0);
            assert!(unsafe { zeroed.as_ref() }.iter().all(|b| *b == 0));
            unsafe { allocator.deallocate(zeroed.cast(), layout) };
        }
    }
    assert_eq!((complaints.load(Ordering::Relaxed), heap.stats().live_blocks), (0, 0));
    assert!(heap.check());
}

#[test]
fn collections_live_in_a_heap() {
    let heap = Context::new().unwrap();
    let (names, rows) = (heap.define("names").unwrap(), heap.define("rows").unwrap());
    let mut table = HashMap::with_hasher_in(DefaultHashBuilder::default(), heap.with(names));
    for i in 0..1000u64 {
        let mut row = Vec::new_in(heap.with(rows));
        row.extend(0..i);
        table.insert(i, row);
    }
    assert_eq!(table[&999].len(), 999);
    let labels = heap.labels();
    assert_eq!(labels.iter().map(|l| l.name.as_str()).collect::<std::vec::Vec<_>>(), ["", "names", "rows"]);
    assert!(labels[2].live_bytes > 1000 * 999 / 2 * 8 && labels[2].live_blocks == 999);
    assert_eq!(labels.iter().map(|l| l.live_bytes).sum::<usize>(), heap.stats().live_bytes);
    let blocks = heap.blocks();
    assert_eq!(blocks.iter().filter(|b| b.label == rows).count(), 999);
    assert_eq!(blocks.iter().map(|b| b.size).sum::<usize>(), heap.stats().live_bytes);
    assert!(heap.owns(table[&5].as_ptr()) && !heap.owns(&table));
    drop(table);
    assert_eq!(heap.stats().live_blocks, 0);
    assert!(heap.trim() > 0);
    // Nothing of size 0 takes memory.
    let units: Vec<(), _> = {
        let mut v = Vec::new_in(&heap);
        v.resize(10, ());
        v
    };
    assert_eq!((units.len(), heap.stats().live_blocks), (10, 0));
}

#[test]
fn drops_run_and_the_rest_ends_with_the_heap() {
    let counted = Arc::new(());
    let heap = Context::new().unwrap();
    drop(Box::new_in(counted.clone(), &heap));
    assert_eq!(Arc::strong_count(&counted), 1);
    std::mem::forget(Box::new_in([0u8; 100], &heap));
    assert_eq!(heap.stats().live_blocks, 1);
    let space = Space::with_mode(Mode::Fast).unwrap();
    for _ in 0..1000 {
        let heap = Context::with_options(Options::new().space(&space).workload(Workload::Counted)).unwrap();
        assert!(heap.take(Layout::new::<[u8; 1 << 20]>(), Label::NONE).is_some());
    }
    // The last heap keeps the space.
    let last = Context::with_options(Options::new().space(&space)).unwrap();
    drop(space);
    assert!(last.take(Layout::new::<u64>(), Label::NONE).is_some());
    // A thousand heaps, one after another, had the same addresses.
    assert!(last.stats().reserved_bytes < 64 << 20);
}

#[test]
fn over_the_limit_is_an_error() {
    let heap = Context::new().unwrap();
    heap.limit(4 << 20);
    let mut bytes = Vec::<u8, _>::new_in(&heap);
    assert!(bytes.try_reserve(8 << 20).is_err());
    assert!(bytes.try_reserve(1 << 20).is_ok());
    assert!(heap.stats().committed_bytes <= 4 << 20 && heap.stats().failures > 0);
    heap.limit(0);
    assert!(bytes.try_reserve(8 << 20).is_ok());
    assert!((&heap).allocate(Layout::from_size_align(1, 1 << 40).unwrap()).is_err());
}

#[test]
fn a_soft_limit_calls_and_may_be_set_anew_in_the_call() {
    let heap = Context::new().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = calls.clone();
    assert!(!heap.limits(2, 1, |_: &Heap, _, _| unreachable!()));
    assert!(heap.limits(1 << 20, 8 << 20, move |heap, committed, limit| {
        assert!(committed >= limit && limit == 1 << 20);
        seen.fetch_add(1, Ordering::Relaxed);
        let p = heap.take(Layout::new::<[u8; 64]>(), Label::NONE).unwrap();
        unsafe { heap.free(p, Layout::new::<[u8; 64]>()) };
        // Ends this very closure, as far as the heap is concerned.
        heap.limit(8 << 20);
    }));
    let mut blocks = std::vec::Vec::new();
    for _ in 0..3000 {
        blocks.push(Box::new_in([0u8; 1000], &heap));
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    drop(blocks);
    // The closure stays while the numbers change, and changes them.
    let heap = Context::new().unwrap();
    let seen = calls.clone();
    assert!(heap.limits(1 << 20, 8 << 20, move |heap, _, limit| {
        seen.fetch_add(100, Ordering::Relaxed);
        assert!(heap.set_limits(2 * limit, 8 << 20));
        assert!(!heap.set_limits(2, 1));
    }));
    let mut blocks = std::vec::Vec::new();
    while let Ok(block) = Box::try_new_in([0u8; 1000], &heap) {
        blocks.push(block);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 301);
    assert_eq!(heap.stats().hard_limit, 8 << 20);
    drop(blocks);
    calls.store(1, Ordering::Relaxed);
    // A closure that is replaced while it runs.
    let heap = Arc::new(Shared::new().unwrap());
    let (weak, seen) = (Arc::downgrade(&heap), calls.clone());
    assert!(heap.limits(1 << 20, 0, move |_, _, _| {
        let again = seen.clone();
        assert!(weak.upgrade().unwrap().limits(2 << 20, 0, move |_, _, _| {
            again.fetch_add(10, Ordering::Relaxed);
        }));
        seen.fetch_add(100, Ordering::Relaxed);
    }));
    let blocks: std::vec::Vec<_> = (0..5000).map(|_| Box::new_in([0u8; 1000], &*heap)).collect();
    assert_eq!(calls.load(Ordering::Relaxed), 111);
    drop(blocks);
}

#[test]
fn a_quota_counts_for_all_of_its_heaps() {
    let machine = Quota::new(8 << 20).unwrap();
    let tenant = machine.below(0).unwrap();
    let one = Context::with_options(Options::new().quota(&tenant)).unwrap();
    let two = Context::with_options(Options::new().quota(&tenant)).unwrap();
    drop(tenant);
    let mut first = Vec::<u8, _>::new_in(&one);
    assert!(first.try_reserve(5 << 20).is_ok());
    assert!(Vec::<u8, _>::new_in(&two).try_reserve(5 << 20).is_err());
    machine.set(16 << 20);
    assert!(Vec::<u8, _>::new_in(&two).try_reserve(5 << 20).is_ok());
    assert!(machine.used() >= 5 << 20 && machine.peak() >= 10 << 20);
    drop(first);
    drop((one, two));
    assert_eq!(machine.used(), 0);
}

#[test]
fn threads_share_a_heap_and_free_what_others_made() {
    let (options, complaints) = checked();
    let heap = Shared::with_options(options.name("crew").labels(["sent"])).unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::scope(|s| {
        for _ in 0..4 {
            let (send, heap) = (send.clone(), &heap);
            s.spawn(move || {
                for i in 0..2000 {
                    let mut block = Vec::new_in(heap.with(Label::number(1)));
                    block.resize(i % 300, i);
                    send.send(block).unwrap();
                }
                heap.thread_done();
            });
        }
        drop(send);
        s.spawn(move || {
            for block in receive {
                assert!(block.iter().all(|i| i % 300 == block.len()));
            }
        });
    });
    heap.trim();
    assert_eq!((complaints.load(Ordering::Relaxed), heap.stats().live_blocks), (0, 0));
    assert!(unsafe { heap.check() && heap.blocks().is_empty() });
    assert!(format!("{:?}", *heap).contains("crew"));
}

#[test]
fn a_context_moves_to_another_thread() {
    let heap = Context::new().unwrap();
    heap.take(Layout::new::<u64>(), Label::NONE).unwrap();
    let heap = std::thread::spawn(move || {
        drop(Box::new_in(1, &heap));
        heap
    })
    .join()
    .unwrap();
    assert_eq!(heap.stats().live_blocks, 1);
}

#[test]
fn what_is_refused() {
    let options = || Options::new();
    assert!(Context::with_options(options().name("a\0b")).is_none());
    assert!(Context::with_options(options().labels(["a\0b"])).is_none());
    assert!(Context::with_options(options().labels(["a", "a"])).is_none());
    assert!(Context::with_options(options().labels([""])).is_none());
    let heap = Context::with_options(options().labels(["a", "b"])).unwrap();
    assert_eq!(heap.define("b"), Some(Label::number(2)));
    assert_eq!((heap.define(""), heap.define("a\0"), heap.define(&"x".repeat(64))), (None, None, None));
    for i in 0..251 {
        assert!(heap.define(&format!("label {i}")).is_some());
    }
    assert_eq!(heap.define("one too many"), None);
    assert_eq!(heap.labels().len(), 254);
    // Labels of nobody count somewhere.
    let blocks = [254, 255, 256, 65535].map(|n| Box::new_in(n, heap.with(Label::number(n))));
    assert_eq!(heap.labels().iter().map(|l| l.live_blocks).sum::<usize>(), blocks.len());
    assert!(heap.check());
}

#[test]
fn workloads_and_modes_differ() {
    // The order in which freed blocks come back.
    let order = |workload, size| {
        let heap = Context::with_options(Options::new().workload(workload)).unwrap();
        let layout = Layout::from_size_align(size, 8).unwrap();
        let take = || heap.take(layout, Label::NONE).unwrap();
        let mut blocks: std::vec::Vec<_> = (0..20_000).map(|_| take()).collect();
        blocks.sort();
        blocks.iter().for_each(|block| unsafe { heap.free(*block, layout) });
        let again: std::vec::Vec<_> = (0..100).map(|_| blocks.binary_search(&take()).ok()).collect();
        again
    };
    for size in [256, 8000] {
        assert_eq!(order(Workload::Malloc, size), order(Workload::Malloc, size));
    }
    assert_ne!(order(Workload::Malloc, 256), order(Workload::Traced, 256));
    assert_ne!(order(Workload::Malloc, 8000), order(Workload::Counted, 8000));
    let cached = |mode| {
        let heap = Context::with_options(Options::new().mode(mode)).unwrap();
        drop((0..1000).map(|_| Box::new_in([0u8; 4000], &heap)).collect::<std::vec::Vec<_>>());
        heap.stats().cached_bytes
    };
    assert!(cached(Mode::Minimal) < cached(Mode::Balanced));
    let idle = |mode| {
        let space = Space::with_mode(mode).unwrap();
        let full = Context::with_options(Options::new().space(&space)).unwrap();
        for _ in 0..1000 {
            full.take(Layout::new::<[u8; 4000]>(), Label::NONE).unwrap();
        }
        drop(full);
        Context::with_options(Options::new().space(&space)).unwrap().stats().retained_bytes
    };
    assert!(idle(Mode::Minimal) < 1 << 20 && idle(Mode::Fast) > 2 << 20);
}

#[test]
fn writes_to_freed_blocks_are_found() {
    for (poison, wanted) in [(false, 0), (true, 1)] {
        let complaints = Arc::new(AtomicUsize::new(0));
        let seen = complaints.clone();
        let options = unsafe {
            Options::new().check(poison).on_error(move |misuse| {
                assert_eq!(misuse.name.to_str(), Ok("HAK_E_USE_AFTER_FREE"));
                seen.fetch_add(1, Ordering::Relaxed);
            })
        };
        let heap = Context::with_options(options).unwrap();
        let layout = Layout::new::<[u8; 40]>();
        let p = heap.take(layout, Label::NONE).unwrap();
        unsafe {
            heap.free(p, layout);
            p.as_ptr().add(20).write_volatile(1);
        }
        while heap.take(layout, Label::NONE).unwrap() != p {}
        assert_eq!(complaints.load(Ordering::Relaxed), wanted);
    }
}

#[test]
fn misuse_is_told() {
    let (options, complaints) = checked();
    let heap = Context::with_options(options).unwrap();
    let layout = Layout::new::<[u8; 40]>();
    let p = heap.take(layout, Label::NONE).unwrap();
    unsafe {
        let p = heap.resize(p, layout, Layout::new::<[u8; 80]>()).unwrap();
        heap.free(p, Layout::new::<[u8; 80]>());
        assert_eq!(complaints.load(Ordering::Relaxed), 0);
        heap.free(p, Layout::new::<[u8; 80]>());
    }
    assert_eq!(complaints.load(Ordering::Relaxed), 1);
}
