//! The allocator of a whole program.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::mem::{size_of, zeroed};
use std::ptr::{null, null_mut, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use hakmem_sys as sys;

use crate::scope::Inner;
use crate::{alloc, scoped, Heap, Label};

/// One shared heap for the whole process, made at the first allocation and never destroyed.
///
/// ```
/// #[global_allocator]
/// static GLOBAL: hakmem::Global = hakmem::Global;
///
/// let heap = hakmem::Global::heap().expect("memory");
/// let parser = heap.define("parser").expect("a label");
/// let tree = hakmem::Global::labelled(parser, || vec![0; 1000]);
/// assert!(heap.labels().iter().any(|l| l.name == "parser" && l.live_bytes >= 4000));
/// # drop(tree);
/// ```
///
/// What C code in the process gets from `malloc` is not in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Global;

static CTX: AtomicPtr<sys::hak_ctx> = AtomicPtr::new(null_mut());
/// Its pages, and those of scopes; set before CTX.
static SPACE: AtomicPtr<sys::hak_space> = AtomicPtr::new(null_mut());

/// What this thread allocates for. One object, so that the allocator looks for one address.
pub(crate) struct Here {
    pub scope: Cell<*const Inner>,
    pub label: Cell<Label>,
}

thread_local! {
    // Without a destructor, so that it serves at the end of a thread, too.
    pub(crate) static HERE: Here = const { Here { scope: Cell::new(null()), label: Cell::new(Label::NONE) } };
}

extern "C" fn prepare() {
    scoped::fork_prepare();
    // SAFETY: around fork(), by the forking thread.
    unsafe { sys::hak_ctx_fork_prepare(CTX.load(Ordering::Acquire)) }
}
extern "C" fn parent() {
    // SAFETY: as above.
    unsafe { sys::hak_ctx_fork_parent(CTX.load(Ordering::Acquire)) }
    scoped::fork_parent();
}
extern "C" fn child() {
    // SAFETY: as above.
    unsafe { sys::hak_ctx_fork_child(CTX.load(Ordering::Acquire)) }
    scoped::fork_child();
}

/// Whose place it was is told by the result: the one that is there now.
fn first_space() -> *mut sys::hak_space {
    // SAFETY: all zero is a value of every field; init sets the defaults.
    let made = unsafe {
        let mut o: sys::hak_space_options = zeroed();
        sys::hak_space_options_init(&mut o, size_of::<sys::hak_space_options>());
        sys::hak_space_new(&o)
    };
    match SPACE.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made,
        Err(other) => {
            // SAFETY: nobody has seen it.
            unsafe { sys::hak_space_delete(made) };
            other
        }
    }
}

#[cold]
fn first() -> *mut sys::hak_ctx {
    let mut space = SPACE.load(Ordering::Acquire);
    if space.is_null() {
        space = first_space();
    }
    if space.is_null() {
        return null_mut();
    }
    // SAFETY: as above.
    let made = unsafe {
        let mut o: sys::hak_options = zeroed();
        sys::hak_options_init(&mut o, size_of::<sys::hak_options>());
        o.name = c"rust".as_ptr();
        o.shared = true;
        o.workload = sys::HAK_WORKLOAD_MALLOC;
        sys::hak_ctx_new(space, &o)
    };
    if made.is_null() {
        return made;
    }
    match CTX.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // It takes its memory from malloc, not from here. If it has none, forks are without this.
            // SAFETY: the functions stay.
            unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
            made
        }
        Err(other) => {
            // SAFETY: nobody has seen it.
            unsafe { sys::hak_ctx_destroy(made) };
            other
        }
    }
}

/// The space of the heap; `None`: no memory.
pub(crate) fn space() -> Option<*mut sys::hak_space> {
    (!ctx().is_null()).then(|| SPACE.load(Ordering::Acquire))
}

/// The same where a block is there, and so the space is.
#[inline]
pub(crate) fn space_made() -> *mut sys::hak_space {
    SPACE.load(Ordering::Relaxed)
}

/// The heap where a block of any heap is there.
#[inline]
pub(crate) fn ctx_made() -> *mut sys::hak_ctx {
    CTX.load(Ordering::Acquire)
}

#[inline]
pub(crate) fn ctx() -> *mut sys::hak_ctx {
    let ctx = CTX.load(Ordering::Acquire);
    if ctx.is_null() {
        first()
    } else {
        ctx
    }
}

impl Global {
    /// The heap, for limits, labels and statistics. `None`: no memory. A program without room left aborts in most
    /// collections of the standard library.
    pub fn heap() -> Option<Heap> {
        NonNull::new(ctx()).map(Heap::of)
    }

    /// What this thread allocates while `f` runs has this label. Calls nest.
    pub fn labelled<R>(label: Label, f: impl FnOnce() -> R) -> R {
        struct Back(Label);
        impl Drop for Back {
            fn drop(&mut self) {
                HERE.with(|here| here.label.set(self.0));
            }
        }
        let _back = Back(HERE.with(|here| here.label.replace(label)));
        f()
    }
}

// SAFETY: the heap is shared, and its functions neither unwind nor call into Rust.
unsafe impl GlobalAlloc for Global {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match NonNull::new(ctx()).and_then(|ctx| alloc::take(ctx.as_ptr(), layout, HERE.with(|here| here.label.get())))
        {
            Some(p) => p.as_ptr(),
            None => null_mut(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match NonNull::new(ctx())
            .and_then(|ctx| alloc::take_zeroed(ctx.as_ptr(), layout, HERE.with(|here| here.label.get())))
        {
            Some(p) => p.as_ptr(),
            None => null_mut(),
        }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        alloc::give(ctx(), NonNull::new_unchecked(p), layout)
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let new = Layout::from_size_align_unchecked(size, layout.align());
        alloc::resize(ctx(), NonNull::new_unchecked(p), layout, new).map_or(null_mut(), NonNull::as_ptr)
    }
}
