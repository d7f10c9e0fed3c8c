//! Eight queries at once, with 64 MiB each. One runs wild and is cancelled at its soft limit; the others finish. All the while
//! the process has no more memory than its heaps say, and a tenth.

use std::time::Duration;

use hakmem::{OverSoftLimit, Scope};

#[global_allocator]
static GLOBAL: hakmem::ScopedGlobal = hakmem::ScopedGlobal;

const MIB: usize = 1 << 20;
const LIMIT: usize = 64 * MIB;

/// Groups rows by key, as a database would; a query with too many keys is the one that runs wild.
async fn group(rows: u64, keys: u64) -> usize {
    let mut groups = std::collections::HashMap::new();
    for row in 0..rows {
        let key = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) % keys;
        let group: &mut Vec<u64> = groups.entry(key).or_default();
        group.push(row);
        if group.len() == 16 {
            group.clear();
        }
        if row % 4096 == 0 {
            tokio::task::yield_now().await;
        }
    }
    groups.len()
}

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    text.split(' ').nth(1).expect("a number").parse::<usize>().expect("a number") * 4096
}

fn committed(heap: &hakmem::Heap) -> usize {
    heap.stats().committed_bytes
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().expect("threads");
    let base = resident(); // the program itself, with its threads
    let (highest, ended) = runtime.block_on(async {
        let queries: Vec<_> = (0..8u64)
            .map(|n| {
                let scope = Scope::new(&format!("query {n}")).expect("memory for a heap");
                scope.limits(LIMIT / 2, LIMIT, |_, _| ());
                let keys = if n == 3 { u64::MAX } else { 20_000 };
                let seen = scope.clone();
                (seen, tokio::spawn(scope.run_within(group(if n == 3 { u64::MAX } else { 1_000_000 }, keys))))
            })
            .collect();
        let (mut highest, mut most) = (0, 0);
        while queries.iter().any(|(_, task)| !task.is_finished()) {
            // Free pages of a query that has ended serve the others: what counts is the most that there was at once.
            let mut sum = || {
                let all = queries.iter().map(|(scope, _)| committed(scope)).sum::<usize>();
                most = most.max(all + hakmem::Global::heap().map_or(0, |heap| committed(&heap)));
                most
            };
            sum();
            let now = resident();
            let limit = sum() / 10 * 11 + base;
            assert!(now <= limit, "{now} bytes are resident, and the heaps had {limit} with a tenth at most");
            highest = highest.max(now);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut ended = Vec::new();
        for (scope, task) in queries {
            ended.push((scope.name().to_owned(), scope.stats().peak_bytes, task.await.expect("no panic")));
        }
        (highest, ended)
    });
    for (name, peak, result) in &ended {
        match result {
            Ok(groups) => println!("{name}: {groups} groups, {} MiB at most", peak / MIB),
            Err(OverSoftLimit) => println!("{name}: cancelled at {} MiB", peak / MIB),
        }
    }
    assert!(highest < 8 * LIMIT / 10 * 11);
    println!("resident at most: {} MiB of {}", highest / MIB, 8 * LIMIT / MIB);
}
