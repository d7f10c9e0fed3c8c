//! Scopes: whose heap a block is from, limits, what is left of a scope that was dropped, futures on many threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hakmem::{OverSoftLimit, Scope, ScopeError};

#[global_allocator]
static GLOBAL: hakmem::ScopedGlobal = hakmem::ScopedGlobal;

/// Tests count scopes: one at a time. What the standard library keeps for good, for backtraces say, may be in one.
static ONE: Mutex<()> = Mutex::new(());

fn one() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn committed(scope: &Scope) -> usize {
    scope.stats().committed_bytes
}

#[test]
fn blocks_are_of_the_scope_that_is_current() {
    let _one = one();
    let before = hakmem::scopes();
    let (a, b) = (Scope::new("a").unwrap(), Scope::new("b").unwrap());
    let (mut of_a, of_b, of_none) = a.enter(|| {
        let of_a = vec![1u8; 100_000];
        let of_b = b.enter(|| vec![2u8; 200_000]);
        (of_a, of_b, hakmem::outside(|| vec![3u8; 300_000]))
    });
    assert!((100_000..120_000).contains(&a.stats().live_bytes), "{:?}", a.stats());
    assert!((200_000..230_000).contains(&b.stats().live_bytes));
    assert!(a.owns(of_a.as_ptr()) && b.owns(of_b.as_ptr()) && !a.owns(of_none.as_ptr()));
    assert!(hakmem::Global::heap().unwrap().owns(of_none.as_ptr()));
    // Who makes it grow pays.
    b.enter(|| of_a.resize(400_000, 1));
    assert!(b.owns(of_a.as_ptr()) && of_a.iter().all(|&x| x == 1));
    assert_eq!(a.stats().live_blocks, 0);
    let mut outer = vec![7u8; 1000];
    a.enter(|| outer.resize(500_000, 7));
    assert!(a.owns(outer.as_ptr()) && outer.iter().all(|&x| x == 7));
    // Any thread frees.
    std::thread::spawn(move || drop((of_a, of_b, outer))).join().unwrap();
    assert_eq!((a.stats().live_blocks, b.stats().live_blocks), (0, 0));
    assert_eq!(a.name(), "a");
    assert_eq!(Scope::new("a\0b").err(), Some(ScopeError::Name));
    drop((a, b));
    assert_eq!(hakmem::scopes(), before);
}

#[test]
fn a_panic_leaves_the_scope() {
    let _one = one();
    let scope = Scope::new("panics").unwrap();
    // Without panic's message: the test harness keeps that, in the scope, until it has told of this test.
    let ends = || scope.enter(|| std::panic::resume_unwind(Box::new("as asked for")));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(ends));
    assert!(result.is_err());
    drop(result);
    let text = String::from("outside");
    assert!(!scope.owns(text.as_ptr()));
}

#[test]
fn the_hard_limit_is_an_error_and_never_passed() {
    let _one = one();
    for kib in (64..4096).step_by(97) {
        let scope = Scope::new("limited").unwrap();
        assert!(scope.limits(0, kib << 10, |_, _| ()));
        let blocks = scope.enter(|| {
            let mut blocks: Vec<Vec<u8>> = Vec::new();
            loop {
                let mut block = Vec::new();
                if blocks.try_reserve(1).is_err() || block.try_reserve_exact(blocks.len() * 50 % 9000 + 1).is_err() {
                    return blocks;
                }
                blocks.push(block);
                assert!(committed(&scope) <= kib << 10);
            }
        });
        assert!(!blocks.is_empty());
        // Refused in the scope, not outside of it.
        drop(vec![0u8; 8 << 20]);
        drop(blocks);
        assert!(scope.enter(|| Vec::<u8>::new().try_reserve_exact(1000)).is_ok());
    }
    let scope = Scope::new("wrong").unwrap();
    assert!(!scope.limits(2, 1, |_, _| ()));
}

#[test]
fn the_soft_limit_calls_back_outside_of_the_scope() {
    let _one = one();
    let scope = Scope::new("soft").unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (counted, kept) = (calls.clone(), seen.clone());
    assert!(scope.limits(1 << 20, 4 << 20, move |committed, limit| {
        counted.fetch_add(1, Ordering::SeqCst);
        kept.lock().unwrap().push(vec![committed, limit]); // allocates
    }));
    assert!(!scope.is_over());
    let blocks: Vec<Vec<u8>> = scope.enter(|| (0..300).map(|_| vec![0; 8000]).collect());
    assert!(scope.is_over());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let first = seen.lock().unwrap()[0].clone();
    assert!(first[0] >= first[1] && first[1] == 1 << 20);
    assert!(!scope.owns(seen.lock().unwrap()[0].as_ptr()));
    drop(blocks);
    scope.forgive();
    assert!(!scope.is_over());
}

#[test]
fn blocks_outlive_their_scope() {
    let _one = one();
    let before = hakmem::scopes();
    for round in 0..300 {
        let scope = Scope::new("left behind").unwrap();
        let left: Vec<Vec<u32>> = scope.enter(|| (0..40).map(|n| vec![n * round; 1 + n as usize * 100]).collect());
        drop(scope);
        assert_eq!(hakmem::scopes(), before + 1);
        let (mine, theirs) = (Arc::new(Mutex::new(left)), Vec::<std::thread::JoinHandle<()>>::new());
        let mut threads = theirs;
        for _ in 0..if round < 20 { 3 } else { 0 } {
            let mine = mine.clone();
            threads.push(std::thread::spawn(move || loop {
                let Some(mut block) = mine.lock().unwrap().pop() else { return };
                let n = block[0];
                block.push(n); // into the program's heap
                assert!(block.iter().all(|&x| x == n));
            }));
        }
        for thread in threads {
            thread.join().unwrap();
        }
        drop(mine);
        assert_eq!(hakmem::scopes(), before);
    }
}

#[test]
fn threads_that_free_while_scopes_end() {
    let _one = one();
    let before = hakmem::scopes();
    let (send, receive) = mpsc::sync_channel::<Vec<u8>>(64);
    let receive = Arc::new(Mutex::new(receive));
    let eaters: Vec<_> = (0..3)
        .map(|_| {
            let receive = receive.clone();
            std::thread::spawn(move || {
                let scope = Scope::new("eater").unwrap();
                let mut sum = 0usize;
                loop {
                    let block = receive.lock().unwrap().recv();
                    let Ok(mut block) = block else { return sum };
                    let tag = block[0];
                    assert!(block.iter().all(|&x| x == tag));
                    if tag % 3 == 0 {
                        scope.enter(|| block.resize(block.len() * 2, tag));
                    }
                    sum += 1;
                }
            })
        })
        .collect();
    let makers: Vec<_> = (0..3u8)
        .map(|maker| {
            let send = send.clone();
            std::thread::spawn(move || {
                for round in 0..200usize {
                    let scope = Scope::new("maker").unwrap();
                    for n in 0..20 {
                        let tag = (round + n) as u8 ^ maker;
                        let block = scope.enter(|| vec![tag; 1 + (round * 37 + n * 811) % 9000]);
                        send.send(block).unwrap();
                    }
                }
            })
        })
        .collect();
    drop(send);
    for maker in makers {
        maker.join().unwrap();
    }
    let eaten: usize = eaters.into_iter().map(|eater| eater.join().unwrap()).sum();
    assert_eq!(eaten, 3 * 200 * 20);
    drop(receive);
    assert_eq!(hakmem::scopes(), before);
}

#[test]
fn futures_are_polled_in_their_scope_on_any_thread() {
    let _one = one();
    let before = hakmem::scopes();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let wrong = runtime.block_on(async {
        let tasks: Vec<_> = (0..60usize)
            .map(|n| {
                let scope = Scope::new("task").unwrap();
                let seen = scope.clone();
                tokio::spawn(scope.run(async move {
                    let mut threads = std::collections::HashSet::new();
                    let mut blocks: Vec<Vec<u8>> = Vec::new();
                    for i in 0..50usize {
                        blocks.push(vec![n as u8; 1000 + i]);
                        if !seen.owns(blocks[i].as_ptr()) {
                            return Err(i);
                        }
                        threads.insert(std::thread::current().id());
                        tokio::task::yield_now().await;
                    }
                    assert!(blocks.iter().all(|block| block.iter().all(|&x| x == n as u8)));
                    assert!(seen.live_bytes() >= 40_000);
                    Ok(threads.len())
                }))
            })
            .collect();
        let mut wrong = Vec::new();
        for task in tasks {
            if let Err(at) = task.await.unwrap() {
                wrong.push(at);
            }
        }
        wrong
    });
    assert_eq!(wrong, []);
    drop(runtime);
    assert_eq!(hakmem::scopes(), before);
}

#[test]
fn stolen_work_stays_in_its_scope() {
    let _one = one();
    let before = hakmem::scopes();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(8).enable_time().build().unwrap();
    let began = Instant::now();
    let (mut stolen, mut freed_elsewhere) = (0, 0);
    while stolen < 100 || freed_elsewhere < 100 {
        assert!(began.elapsed() < Duration::from_secs(60), "{stolen} stolen, {freed_elsewhere} freed elsewhere");
        let counts = runtime.block_on(async {
            let tasks: Vec<_> = (0..16usize)
                .map(|n| {
                    let scope = Scope::new("stolen").unwrap();
                    let seen = scope.clone();
                    tokio::spawn(scope.run(async move {
                        let (mut stolen, mut freed_elsewhere) = (0, 0);
                        let mut blocks: Vec<(std::thread::ThreadId, Vec<u8>)> = Vec::new();
                        let mut at = std::thread::current().id();
                        for i in 0..50usize {
                            blocks.push((at, vec![n as u8; 100 + i * 90]));
                            assert!(seen.owns(blocks.last().unwrap().1.as_ptr()));
                            if i % 8 == n % 8 {
                                // Others take what waits behind this one.
                                std::thread::sleep(Duration::from_micros(200));
                            }
                            tokio::task::yield_now().await;
                            let here = std::thread::current().id();
                            stolen += (here != at) as usize;
                            at = here;
                            if i % 3 == 2 {
                                let (thread, block) = blocks.swap_remove(0);
                                assert!(block.iter().all(|&x| x == n as u8));
                                freed_elsewhere += (thread != here) as usize;
                            }
                        }
                        drop(blocks);
                        (stolen, freed_elsewhere)
                    }))
                })
                .collect();
            let mut counts = (0, 0);
            for task in tasks {
                let (a, b) = task.await.unwrap();
                counts = (counts.0 + a, counts.1 + b);
            }
            counts
        });
        stolen += counts.0;
        freed_elsewhere += counts.1;
    }
    drop(runtime);
    assert_eq!(hakmem::scopes(), before);
}

#[test]
fn a_future_over_its_soft_limit_ends_and_its_neighbours_go_on() {
    let _one = one();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let (wild, tame) = (Scope::new("wild").unwrap(), Scope::new("tame").unwrap());
    for scope in [&wild, &tame] {
        assert!(scope.limits(2 << 20, 8 << 20, |_, _| ()));
    }
    let work = |chunk: usize| async move {
        let mut all: Vec<Vec<u8>> = Vec::new();
        for _ in 0..1000 {
            all.push(vec![1; chunk]);
            tokio::task::yield_now().await;
        }
        all.len()
    };
    let (of_wild, of_tame) = runtime.block_on(async {
        let (a, b) = (tokio::spawn(wild.run_within(work(100_000))), tokio::spawn(tame.run_within(work(100))));
        (a.await.unwrap(), b.await.unwrap())
    });
    assert_eq!((of_wild, of_tame), (Err(OverSoftLimit), Ok(1000)));
    // What the future held is gone with it; the runtime may keep something small.
    assert!(wild.stats().live_bytes < 50_000, "{:?}", wild.stats());
    // One that waits ends at the poll that took too much; the wait is not over by then, however slow the machine.
    wild.forgive();
    let sleeper = wild.run_within(async {
        let kept = vec![1u8; 3 << 20];
        tokio::time::sleep(Duration::from_secs(1)).await;
        kept.len()
    });
    let began = Instant::now();
    assert_eq!(runtime.block_on(sleeper), Err(OverSoftLimit));
    assert!(began.elapsed() < Duration::from_secs(60));
    drop(runtime);
}

#[test]
fn children_of_fork_go_on() {
    let _one = one();
    let scope = Scope::new("parent").unwrap();
    let orphan = Scope::new("orphan").unwrap();
    let left = orphan.enter(|| vec![1u8; 5000]);
    drop(orphan);
    let stop = Arc::new(AtomicUsize::new(0));
    let busy: Vec<_> = (0..2)
        .map(|_| {
            let (scope, stop) = (scope.clone(), stop.clone());
            std::thread::spawn(move || {
                while stop.load(Ordering::Relaxed) == 0 {
                    drop(scope.enter(|| vec![1u8; 3000]));
                    drop(Scope::new("short"));
                }
            })
        })
        .collect();
    for _ in 0..20 {
        // SAFETY: the child uses the allocator alone, and ends without a look at anything else.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                drop(scope.enter(|| vec![2u8; 100_000]));
                let another = Scope::new("of the child");
                drop((another, left));
                libc::_exit(7);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7);
        }
    }
    stop.store(1, Ordering::Relaxed);
    for thread in busy {
        thread.join().unwrap();
    }
    drop(left);
}

#[test]
fn an_abort_names_the_scope() {
    const ENDS: &str = "HAKMEM_TEST_ABORTS";
    if std::env::var_os(ENDS).is_some() {
        assert!(hakmem::name_aborts());
        let scope = Scope::new("tenant 17").unwrap();
        scope.limits(0, 1 << 20, |_, _| ());
        scope.enter(|| vec![0u8; 64 << 20]);
        unreachable!("that cannot be had");
    }
    let _one = one();
    let done = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "an_abort_names_the_scope", "--nocapture"])
        .env(ENDS, "1")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success());
    assert!(errors.contains("memory allocation of 67108864 bytes failed"), "{errors}");
    assert!(errors.contains("hakmem: the process ends in the scope 'tenant 17'"), "{errors}");
}
