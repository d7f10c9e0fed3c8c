//! Pairs of allocations and frees in the heap of the program. Count the instructions of N and of 2 N pairs: `valgrind --tool=callgrind pairs_global N`.

use std::hint::black_box;

#[global_allocator]
static GLOBAL: hakmem::Global = hakmem::Global;

fn pairs(n: usize) {
    // As a heap is that has lived a while: the class has slabs of its own.
    drop((0..20_000).map(|i| black_box(Box::new([i; 8]))).collect::<Vec<Box<[usize; 8]>>>());
    for i in 0..n {
        drop(black_box(Box::new([i; 8])));
    }
}

fn main() {
    let n = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    pairs(n);
}
