//! Layouts of Rust on the functions of C, and the allocators.

use std::alloc::Layout;
use std::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};
use hakmem_sys as sys;

use crate::{Context, Heap, Label, Shared};

/// Whether what `hak_alloc` returns for the size is aligned enough: 8, and 16 for multiples of 16.
fn natural(layout: Layout) -> bool {
    layout.align() <= 8 || (layout.align() == 16 && layout.size() % 16 == 0 && layout.size() > 0)
}

/// # Safety
/// `ctx` lives, and this thread may use it.
pub(crate) unsafe fn take(ctx: *mut sys::hak_ctx, layout: Layout, label: Label) -> Option<NonNull<u8>> {
    let p = if natural(layout) {
        sys::hak_alloc_cs(ctx, layout.size(), label.0, 0)
    } else {
        sys::hak_aligned_alloc_cs(ctx, layout.align(), layout.size(), label.0, 0)
    };
    NonNull::new(p.cast())
}

/// # Safety
/// As for [`take`].
pub(crate) unsafe fn take_zeroed(ctx: *mut sys::hak_ctx, layout: Layout, label: Label) -> Option<NonNull<u8>> {
    let p = if natural(layout) {
        sys::hak_calloc_cs(ctx, 1, layout.size(), label.0, 0)
    } else {
        sys::hak_aligned_calloc_cs(ctx, layout.align(), 1, layout.size(), label.0, 0)
    };
    NonNull::new(p.cast())
}

/// # Safety
/// As for [`take`]; `block` is one of `ctx`, taken or last resized for `layout`, and nobody uses it any more.
pub(crate) unsafe fn give(ctx: *mut sys::hak_ctx, block: NonNull<u8>, layout: Layout) {
    sys::hak_free_sized(ctx, block.as_ptr().cast(), layout.size());
}

/// # Safety
/// As for [`give`]; if a block is returned, `block` is not used any more.
pub(crate) unsafe fn resize(
    ctx: *mut sys::hak_ctx,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Option<NonNull<u8>> {
    // hak_realloc keeps 8 alone: 16 is lost where a block that shrinks stays in place for want of memory.
    let p = if new.align() <= 8 {
        sys::hak_realloc_sized(ctx, block.as_ptr().cast(), old.size(), new.size())
    } else {
        sys::hak_aligned_realloc(ctx, block.as_ptr().cast(), new.align(), new.size())
    };
    NonNull::new(p.cast())
}

/// An allocator that gives its blocks a label: [`Context::with`], [`Shared::with`].
pub struct Labelled<'a, H> {
    pub(crate) heap: &'a H,
    pub(crate) label: Label,
}

impl<H> Clone for Labelled<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for Labelled<'_, H> {}

fn dangling(layout: Layout) -> NonNull<u8> {
    // An alignment is never 0.
    NonNull::new(layout.align() as *mut u8).expect("an alignment")
}

type Allocated = Result<NonNull<[u8]>, AllocError>;

/// What every allocator does; blocks of size 0 are none. Each function: as the methods of `Allocator`, on a context
/// that lives and that this thread may use.
mod calls {
    use super::*;

    fn slice(p: Option<NonNull<u8>>, layout: Layout) -> Allocated {
        p.map(|p| NonNull::slice_from_raw_parts(p, layout.size())).ok_or(AllocError)
    }

    pub unsafe fn allocate(ctx: *mut sys::hak_ctx, layout: Layout, label: Label) -> Allocated {
        slice(if layout.size() == 0 { Some(dangling(layout)) } else { take(ctx, layout, label) }, layout)
    }

    pub unsafe fn allocate_zeroed(ctx: *mut sys::hak_ctx, layout: Layout, label: Label) -> Allocated {
        slice(if layout.size() == 0 { Some(dangling(layout)) } else { take_zeroed(ctx, layout, label) }, layout)
    }

    pub unsafe fn deallocate(ctx: *mut sys::hak_ctx, p: NonNull<u8>, layout: Layout) {
        if layout.size() > 0 {
            give(ctx, p, layout);
        }
    }

    pub unsafe fn change(ctx: *mut sys::hak_ctx, p: NonNull<u8>, old: Layout, new: Layout, label: Label) -> Allocated {
        if old.size() == 0 {
            return allocate(ctx, new, label);
        }
        if new.size() == 0 {
            give(ctx, p, old);
            return slice(Some(dangling(new)), new);
        }
        slice(resize(ctx, p, old, new), new)
    }

    pub unsafe fn grow_zeroed(
        ctx: *mut sys::hak_ctx,
        p: NonNull<u8>,
        old: Layout,
        new: Layout,
        label: Label,
    ) -> Allocated {
        if old.size() == 0 {
            return allocate_zeroed(ctx, new, label);
        }
        let grown = change(ctx, p, old, new, label)?;
        (grown.as_ptr() as *mut u8).add(old.size()).write_bytes(0, new.size() - old.size());
        Ok(grown)
    }
}

/// Implements `Allocator` for a type, by what `$ctx` and `$label` make of `$self`.
macro_rules! allocator {
    ([$($generics:tt)*] $type:ty, |$self:ident| $ctx:expr, $label:expr) => {
        // SAFETY: the type borrows the heap, so that blocks are valid as long as any clone of it; it is Send only
        // where the heap may be used by any thread.
        unsafe impl<$($generics)*> Allocator for $type {
            fn allocate(&$self, layout: Layout) -> Allocated {
                unsafe { calls::allocate($ctx, layout, $label) }
            }
            fn allocate_zeroed(&$self, layout: Layout) -> Allocated {
                unsafe { calls::allocate_zeroed($ctx, layout, $label) }
            }
            unsafe fn deallocate(&$self, p: NonNull<u8>, layout: Layout) {
                calls::deallocate($ctx, p, layout)
            }
            unsafe fn grow(&$self, p: NonNull<u8>, old: Layout, new: Layout) -> Allocated {
                calls::change($ctx, p, old, new, $label)
            }
            unsafe fn grow_zeroed(&$self, p: NonNull<u8>, old: Layout, new: Layout) -> Allocated {
                calls::grow_zeroed($ctx, p, old, new, $label)
            }
            unsafe fn shrink(&$self, p: NonNull<u8>, old: Layout, new: Layout) -> Allocated {
                calls::change($ctx, p, old, new, $label)
            }
        }
    };
}

allocator!([] & Context, |self| self.as_ptr(), Label::NONE);
allocator!([] & Shared, |self| self.as_ptr(), Label::NONE);
allocator!([H: std::ops::Deref<Target = Heap>] Labelled<'_, H>, |self| self.heap.as_ptr(), self.label);
