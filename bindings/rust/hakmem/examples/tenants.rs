//! Tenants of a server, with a heap each: labels say what their memory is for, a limit says how much it may be, and
//! the end of a tenant frees all of it at once.
//!
//!     cargo run --release --example tenants

use allocator_api2::vec::Vec;
use hakmem::{Context, Label, Options, Space};
use hashbrown::{DefaultHashBuilder, HashMap};

const INDEX: Label = Label::number(1);
const TEXT: Label = Label::number(2);

/// Words of a text by number; `Err` tells how many words fitted.
fn index(heap: &Context, words: u32) -> Result<usize, usize> {
    let mut index = HashMap::with_hasher_in(DefaultHashBuilder::default(), heap.with(INDEX));
    for word in 0..words {
        let mut text = Vec::new_in(heap.with(TEXT));
        text.try_reserve(40).map_err(|_| index.len())?;
        text.extend_from_slice(format!("word number {word}").as_bytes());
        index.try_reserve(1).map_err(|_| index.len())?;
        index.insert(word, text);
    }
    for label in heap.labels().iter().skip(1) {
        println!("  {:5} {:8} bytes in {:5} blocks", label.name, label.live_bytes, label.live_blocks);
    }
    Ok(index.len())
}

fn main() {
    let space = Space::new().expect("address space");
    for (name, words) in [("modest", 5_000), ("greedy", 1_000_000), ("modest", 5_000)] {
        let options = Options::new().space(&space).name(name).labels(["index", "text"]);
        let heap = Context::with_options(options).expect("memory for a heap");
        heap.limit(4 << 20);
        println!("{name}:");
        match index(&heap, words) {
            Ok(count) => println!("  {count} words"),
            Err(count) => println!("  over its limit after {count} words"),
        }
        let stats = heap.stats();
        assert!(stats.peak_bytes <= stats.committed_bytes.max(4 << 20) && stats.hard_limit == 4 << 20);
    }
}
