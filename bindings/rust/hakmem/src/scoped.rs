//! The allocator of a program with scopes: which heap a block is taken from, and to which it goes back.
//!
//! A scope may be dropped while blocks of it live. Then it is an *orphan*: its context is retired, which one thread at
//! a time may free in. So frees by threads that work for somebody else are counted while they last (`visitors`), the
//! drop waits for those that are under way, and later ones take the lock of all orphans.

use std::alloc::{GlobalAlloc, Layout};
use std::mem::size_of;
use std::ptr::{null, null_mut, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use hakmem_sys as sys;

use crate::global::HERE;
use crate::scope::{current, Inner};
use crate::{alloc, global, Label};

/// Takes from the heap of the [`Scope`](crate::Scope) that the thread works for, and from that of
/// [`Global`](crate::Global) where there is none. Without scopes it is as fast as `Global`.
///
/// ```
/// #[global_allocator]
/// static GLOBAL: hakmem::ScopedGlobal = hakmem::ScopedGlobal;
/// # drop(vec![1; 100]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ScopedGlobal;

/// Scopes, orphans included. While there are none, every block is of the program's heap.
static SCOPES: AtomicUsize = AtomicUsize::new(0);
/// How many scopes there are, those included that were dropped and still have blocks. Cost: a load.
pub fn scopes() -> usize {
    SCOPES.load(Ordering::SeqCst)
}

/// All scopes, under LOCK, which is held around fork, too.
static LIST: AtomicPtr<Inner> = AtomicPtr::new(null_mut());
static LOCK: AtomicBool = AtomicBool::new(false);

fn lock() {
    while LOCK.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::thread::yield_now();
    }
}

fn unlock() {
    LOCK.store(false, Ordering::Release);
}

/// Calls `f` with the context of each scope. Under the lock.
fn each(f: unsafe extern "C" fn(*mut sys::hak_ctx)) {
    let mut at = LIST.load(Ordering::Relaxed) as *const Inner;
    while !at.is_null() {
        // SAFETY: what is in the list lives.
        unsafe {
            f((*at).ctx);
            at = (*at).next.get();
        }
    }
}

pub(crate) fn fork_prepare() {
    lock();
    each(sys::hak_ctx_fork_prepare);
}

pub(crate) fn fork_parent() {
    each(sys::hak_ctx_fork_parent);
    unlock();
}

pub(crate) fn fork_child() {
    each(sys::hak_ctx_fork_child);
    unlock();
}

/// # Safety
/// `inner` is whole, leaked, and not in the list.
pub(crate) unsafe fn register(inner: *const Inner) {
    lock();
    let first = LIST.load(Ordering::Relaxed) as *const Inner;
    (*inner).next.set(first);
    if !first.is_null() {
        (*first).before.set(inner);
    }
    LIST.store(inner as *mut Inner, Ordering::Relaxed);
    SCOPES.fetch_add(1, Ordering::SeqCst);
    unlock();
}

/// Under the lock.
unsafe fn unlink(inner: *const Inner) {
    let (before, next) = ((*inner).before.get(), (*inner).next.get());
    if before.is_null() {
        LIST.store(next as *mut Inner, Ordering::Relaxed);
    } else {
        (*before).next.set(next);
    }
    if !next.is_null() {
        (*next).before.set(before);
    }
}

/// The scope's end: its blocks live on until each is freed.
///
/// # Safety
/// No thread works for the scope, and none will.
pub(crate) unsafe fn orphan(inner: *mut Inner) {
    lock();
    (*inner).orphan.store(true, Ordering::SeqCst);
    while (*inner).visitors.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
    let ctx = (*inner).ctx;
    // Its closure goes with the scope.
    sys::hak_limit(ctx, 0, 0, None, null_mut());
    let mut stats = sys::hak_stats { size: size_of::<sys::hak_stats>(), ..Default::default() };
    sys::hak_ctx_stats(ctx, &mut stats);
    (*inner).left.set(stats.live_blocks);
    let empty = stats.live_blocks == 0;
    if empty {
        unlink(inner);
        sys::hak_ctx_destroy(ctx);
    } else {
        sys::hak_ctx_retire(ctx);
    }
    unlock();
    if empty {
        forget(inner);
    }
}

/// No block of it is left: nobody can come to it any more.
unsafe fn forget(inner: *mut Inner) {
    SCOPES.fetch_sub(1, Ordering::SeqCst);
    crate::scope::outside(|| drop(Box::from_raw(inner)));
}

/// Frees a block of a scope that this thread does not work for.
#[cold]
unsafe fn give_to(inner: *mut Inner, ctx: *mut sys::hak_ctx, p: *mut u8) {
    let visitors = &(*inner).visitors;
    visitors.fetch_add(1, Ordering::SeqCst);
    if !(*inner).orphan.load(Ordering::SeqCst) {
        sys::hak_free(ctx, p.cast());
        visitors.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    visitors.fetch_sub(1, Ordering::SeqCst);
    lock();
    let left = (*inner).left.get() - 1;
    (*inner).left.set(left);
    if left == 0 {
        unlink(inner);
    }
    sys::hak_free((*inner).ctx, p.cast());
    unlock();
    if left == 0 {
        forget(inner);
    }
}

/// The heap that the thread takes from, and the label; `None`: no memory.
#[inline]
unsafe fn taking() -> Option<(*mut sys::hak_ctx, Label)> {
    HERE.with(|here| {
        let inner = here.scope.get();
        if !inner.is_null() {
            return Some(((*inner).ctx, Label::NONE));
        }
        let ctx = global::ctx();
        (!ctx.is_null()).then(|| (ctx, here.label.get()))
    })
}

/// Whose a block is: null = the program's.
#[inline]
unsafe fn owner(ctx: *mut sys::hak_ctx) -> *mut Inner {
    sys::hak_ctx_user(ctx).cast()
}

/// SAFETY: every block is in the space of the program.
#[inline]
unsafe fn holding(p: *mut u8) -> *mut sys::hak_ctx {
    sys::hak_ctx_of(global::space_made(), p.cast())
}

/// Frees a block that may be anybody's.
#[cold]
unsafe fn give_anywhere(p: *mut u8) {
    let ctx = holding(p);
    let inner = owner(ctx);
    if inner.is_null() || inner as *const Inner == current() {
        return sys::hak_free(ctx, p.cast());
    }
    give_to(inner, ctx, p)
}

// SAFETY: heaps are shared ones, and their functions neither unwind nor call into Rust but for the closure of a soft
// limit, which ends the process when it panics.
unsafe impl GlobalAlloc for ScopedGlobal {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((ctx, label)) = taking() else { return null_mut() };
        alloc::take(ctx, layout, label).map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some((ctx, label)) = taking() else { return null_mut() };
        alloc::take_zeroed(ctx, layout, label).map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // Most threads free what they took. The program's heap, and one that a thread works for, are never retired.
        let inner = current();
        let likely = if inner.is_null() { global::ctx_made() } else { (*inner).ctx };
        if !sys::hak_free_if_owned(likely, p.cast(), layout.size()) {
            give_anywhere(p)
        }
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let new = Layout::from_size_align_unchecked(size, layout.align());
        if SCOPES.load(Ordering::Relaxed) == 0 {
            return alloc::resize(global::ctx_made(), NonNull::new_unchecked(p), layout, new)
                .map_or(null_mut(), NonNull::as_ptr);
        }
        let ctx = holding(p);
        if owner(ctx) as *const Inner == current() {
            return alloc::resize(ctx, NonNull::new_unchecked(p), layout, new).map_or(null_mut(), NonNull::as_ptr);
        }
        // Who makes it grow pays for it.
        let moved = self.alloc(new);
        if !moved.is_null() {
            std::ptr::copy_nonoverlapping(p, moved, size.min(layout.size()));
            self.dealloc(p, layout);
        }
        moved
    }
}

extern "C" fn name_scope(_: libc::c_int) {
    let inner = current();
    if inner.is_null() {
        return;
    }
    // SAFETY: the thread works for the scope, so it lives; write may be called in a handler.
    unsafe {
        for text in [c"hakmem: the process ends in the scope '", &*(*inner).name, c"'\n"] {
            libc::write(2, text.as_ptr().cast(), text.to_bytes().len());
        }
    }
}

/// When the process is ended by `abort` while a thread works for a scope, as Rust does when there is no memory for
/// what cannot fail, a line on standard error names the scope. Takes the place of what handles `SIGABRT`. False: the
/// system refuses.
pub fn name_aborts() -> bool {
    // SAFETY: the handler calls write alone. abort() ends the process when it returns.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = name_scope as *const () as usize;
        action.sa_flags = libc::SA_RESETHAND;
        libc::sigaction(libc::SIGABRT, &action, null::<libc::sigaction>() as *mut _) == 0
    }
}
