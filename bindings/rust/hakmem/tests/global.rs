//! Everything that this program allocates is in hakmem.

use std::collections::BTreeMap;

#[global_allocator]
static GLOBAL: hakmem::Global = hakmem::Global;

#[repr(align(256))]
struct Wide([u8; 300]);

#[test]
fn the_program_runs_on_it() {
    let heap = hakmem::Global::heap().unwrap();
    let text = String::from("here");
    assert!(heap.owns(text.as_ptr()));
    let wide = [Box::new(Wide([1; 300])), Box::new(Wide([2; 300]))];
    assert!(wide.iter().all(|w| &**w as *const Wide as usize % 256 == 0 && w.0[299] > 0));
    let threads: Vec<_> = (0..4)
        .map(|n| {
            std::thread::spawn(move || {
                let mut map = BTreeMap::new();
                for i in 0..5000 {
                    map.insert(i * 7919 % 5000, vec![n; i % 100]);
                }
                map
            })
        })
        .collect();
    let total: usize = threads.into_iter().map(|t| t.join().unwrap().len()).sum();
    assert_eq!(total, 20000);
    let mut grown = vec![0u128; 1];
    for i in 0..100_000 {
        grown.push(i);
    }
    grown.truncate(3);
    grown.shrink_to_fit();
    assert_eq!((grown[2], grown.as_ptr() as usize % 16), (1, 0));
}

#[test]
fn labels_count_what_a_thread_allocates_while_they_are_set() {
    let heap = hakmem::Global::heap().unwrap();
    let (outer, inner) = (heap.define("outer").unwrap(), heap.define("inner").unwrap());
    let live = |name| heap.labels().iter().find(|l| l.name == name).unwrap().live_bytes;
    let (a, b, c) = hakmem::Global::labelled(outer, || {
        let a = vec![0u8; 100_000];
        let b = hakmem::Global::labelled(inner, || vec![1u8; 50_000]);
        (a, b, vec![1u8; 100_000])
    });
    assert!(live("outer") >= 200_000 && live("outer") < 250_000 && live("inner") >= 50_000);
    let panicked =
        std::panic::catch_unwind(|| hakmem::Global::labelled(outer, || std::panic::resume_unwind(Box::new(()))));
    assert!(panicked.is_err());
    drop((a, b, c, panicked));
    let after = vec![1u8; 300_000];
    assert!(live("outer") < 100_000 && live("inner") < 1000, "{} {}", live("outer"), after.len());
}

#[test]
fn children_of_a_fork_allocate() {
    let busy = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let busy = busy.clone();
            std::thread::spawn(move || {
                while busy.load(std::sync::atomic::Ordering::Relaxed) {
                    drop((0..200).map(|i| vec![0u8; i * 50]).collect::<Vec<_>>());
                }
            })
        })
        .collect();
    for _ in 0..50 {
        // SAFETY: the child allocates, frees and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let kept: Vec<_> = (0..300).map(|i| vec![1u8; i * 50]).collect();
            unsafe { libc::_exit((kept.len() != 300) as i32) };
        }
        let mut status = -1;
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
    }
    busy.store(false, std::sync::atomic::Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
}
