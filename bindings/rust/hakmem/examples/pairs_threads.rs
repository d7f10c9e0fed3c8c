//! Pairs of allocations and frees of N threads at once, all in one scope: what a thread is charged with. Prints the time of
//! a processor that a pair takes: `pairs_threads PAIRS THREADS`, PAIRS for each thread. With a third argument, each thread
//! adds to one counter of all threads too, as hosts do that count by themselves.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};

#[global_allocator]
static GLOBAL: hakmem::ScopedGlobal = hakmem::ScopedGlobal;

static COUNTER: AtomicUsize = AtomicUsize::new(0);

fn pairs(n: usize, counted: bool) {
    for i in 0..n {
        let block = black_box(Box::new([i; 8]));
        if counted {
            COUNTER.fetch_add(64, Ordering::Relaxed);
        }
        drop(block);
        if counted {
            COUNTER.fetch_sub(64, Ordering::Relaxed);
        }
    }
}

/// Of all threads, in nanoseconds.
fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is large enough.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let (n, threads) = (number(5_000_000), number(8));
    let counted = arguments.next().is_some();
    let scope = hakmem::Scope::new("pairs").expect("memory for a heap");
    scope.limits(64 << 20, 128 << 20, |_, _| ());
    let turns = Mutex::new(());
    let (ready, done) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    std::thread::scope(|all| {
        for _ in 0..threads {
            all.spawn(|| {
                scope.enter(|| {
                    // As a heap is that has lived a while: the class has slabs of its own. One thread at a time gets them,
                    // so that no thread spends instructions on waiting for another.
                    let turn = turns.lock().unwrap();
                    drop((0..20_000).map(|i| black_box(Box::new([i; 8]))).collect::<Vec<Box<[usize; 8]>>>());
                    drop(turn);
                    ready.wait();
                    pairs(n, counted);
                });
                done.wait();
            });
        }
        ready.wait();
        let began = processor_time();
        done.wait();
        let spent = processor_time() - began;
        println!("{:.2} ns of a processor a pair, {threads} threads in one scope", spent as f64 / (n * threads) as f64);
    });
    assert!(scope.live_bytes() < 1 << 20);
}
