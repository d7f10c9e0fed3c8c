//! The same in a scope, and with a second argument outside of one that is there. Count the instructions of N and of 2 N pairs: `valgrind --tool=callgrind pairs_scoped N`.

use std::hint::black_box;

#[global_allocator]
static GLOBAL: hakmem::ScopedGlobal = hakmem::ScopedGlobal;

fn pairs(n: usize) {
    // As a heap is that has lived a while: the class has slabs of its own.
    drop((0..20_000).map(|i| black_box(Box::new([i; 8]))).collect::<Vec<Box<[usize; 8]>>>());
    for i in 0..n {
        drop(black_box(Box::new([i; 8])));
    }
}

fn main() {
    let n = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let scope = hakmem::Scope::new("pairs").expect("memory for a heap");
    match std::env::args().nth(2) {
        Some(_) => pairs(n),
        None => scope.enter(|| pairs(n)),
    }
}
