//! What can be asked of a heap, whichever kind it is.

use std::alloc::Layout;
use std::ffi::{c_void, CStr, CString};
use std::fmt;
use std::mem::size_of;
use std::ptr::NonNull;

use hakmem_sys as sys;

use crate::alloc;

/// What a block is for. A label belongs to the heap that defined it; in another one it counts under whatever has
/// its number there, or under none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Label(pub(crate) sys::hak_label);

impl Label {
    /// No label.
    pub const NONE: Label = Label(0);

    /// Label number `n` of a heap, from 1 on, in the order of [`Options::labels`](crate::Options::labels).
    pub const fn number(n: u16) -> Label {
        Label(n)
    }
}

/// Live blocks of one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelStats {
    /// Empty for [`Label::NONE`].
    pub name: String,
    pub label: Label,
    pub live_bytes: usize,
    pub live_blocks: usize,
}

/// A live block, as [`Context::blocks`](crate::Context::blocks) shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub address: usize,
    /// Usable bytes: at least what was asked for.
    pub size: usize,
    pub label: Label,
}

/// Bytes of a heap: `committed == live + cached + metadata`, always. The fields are those of `hak_stats`, which
/// `hakmem.h` explains.
pub type Stats = sys::hak_stats;

/// A heap: what [`Context`](crate::Context), [`Shared`](crate::Shared) and [`Global`](crate::Global) have in
/// common.
#[repr(transparent)]
pub struct Heap(NonNull<sys::hak_ctx>);

impl Heap {
    pub(crate) fn of(ctx: NonNull<sys::hak_ctx>) -> Heap {
        Heap(ctx)
    }

    /// For the functions of `hakmem_sys`.
    pub fn as_ptr(&self) -> *mut sys::hak_ctx {
        self.0.as_ptr()
    }

    /// The label of this name, made on first use. `None`: the name is empty, above 63 bytes or has a zero byte,
    /// there are 253 labels, or no memory.
    pub fn define(&self, name: &str) -> Option<Label> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name is copied.
        let label = unsafe { sys::hak_label_define(self.as_ptr(), name.as_ptr()) };
        (label != 0).then_some(Label(label))
    }

    /// Most committed bytes, metadata included; 0 = no limit. Never passed: allocations beyond it fail. A limit
    /// below what is committed only stops growth. Ends a soft limit.
    pub fn limit(&self, hard: usize) {
        // SAFETY: no callback. The result tells of soft above hard only.
        unsafe { sys::hak_limit(self.as_ptr(), 0, hard, None, std::ptr::null_mut()) };
    }

    /// Other soft and hard limits, 0 = none; the closure of `limits` stays, which may call this itself. False: soft
    /// > hard > 0, nothing was changed.
    pub fn set_limits(&self, soft: usize, hard: usize) -> bool {
        let mut user = std::ptr::null_mut();
        // SAFETY: the callback and its user are those that the heap has.
        unsafe {
            let f = sys::hak_limit_callback(self.as_ptr(), &mut user);
            sys::hak_limit(self.as_ptr(), soft, hard, f, user) == 0
        }
    }

    /// Cost: about a microsecond.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { size: size_of::<Stats>(), ..Stats::default() };
        // SAFETY: stats has its size.
        unsafe { sys::hak_ctx_stats(self.as_ptr(), &mut stats) };
        stats
    }

    /// Bytes of all labels, [`Label::NONE`] first. Cost: a step for each live block.
    pub fn labels(&self) -> Vec<LabelStats> {
        let none = sys::hak_label_info { name: std::ptr::null(), label: 0, live_bytes: 0, live_blocks: 0 };
        let mut info = [none; sys::HAK_LABELS_MAX + 1];
        // SAFETY: there is room for every label.
        let count = unsafe { sys::hak_labels_stats(self.as_ptr(), info.as_mut_ptr(), info.len()) };
        let stats = |info: &sys::hak_label_info| LabelStats {
            // SAFETY: a label's name stays as long as the heap, which is borrowed.
            name: unsafe { CStr::from_ptr(info.name) }.to_string_lossy().into_owned(),
            label: Label(info.label),
            live_bytes: info.live_bytes,
            live_blocks: info.live_blocks,
        };
        info.iter().take(count as usize).map(stats).collect()
    }

    /// Bytes of live blocks, nearly: see `hak_ctx_live_bytes`. Cost: one load.
    pub fn live_bytes(&self) -> usize {
        // SAFETY: the heap lives.
        unsafe { sys::hak_ctx_live_bytes(self.as_ptr()) }
    }

    /// From now on `peak_bytes` is the highest since this call.
    pub fn reset_peak(&self) {
        // SAFETY: the heap lives.
        unsafe { sys::hak_ctx_peak_reset(self.as_ptr()) }
    }

    /// Everything unused goes back to the operating system. Returns the bytes given back.
    pub fn trim(&self) -> usize {
        // SAFETY: only free memory is touched.
        unsafe { sys::hak_ctx_trim(self.as_ptr()) }
    }

    /// The program lends time: what was idle for a second goes back, in bounded batches. Call it from time to time.
    pub fn tick(&self) {
        // SAFETY: only free memory is touched.
        unsafe { sys::hak_ctx_tick(self.as_ptr(), 0) }
    }

    /// Memory for `layout` that nothing borrows: it is valid until [`Heap::free`] or the end of the heap, and
    /// keeps its label when it is resized. A block of size 0 is a block, too.
    pub fn take(&self, layout: Layout, label: Label) -> Option<NonNull<u8>> {
        // SAFETY: this borrows a live heap.
        unsafe { alloc::take(self.as_ptr(), layout, label) }
    }

    /// # Safety
    /// `block` is a live block of this heap, taken for `layout`; nobody uses it any more.
    pub unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        alloc::give(self.as_ptr(), block, layout)
    }

    /// Moves what is in the block if need be. `None`: no memory, and the block is as it was.
    ///
    /// # Safety
    /// `block` is a live block of this heap, taken for `old`. If a block is returned, only that one is used.
    pub unsafe fn resize(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        alloc::resize(self.as_ptr(), block, old, new)
    }

    /// Whether `p` points into memory of this heap; any pointer whatever.
    pub fn owns<T: ?Sized>(&self, p: *const T) -> bool {
        // SAFETY: the pointer is not followed.
        unsafe { sys::hak_owns(self.as_ptr(), p as *const c_void) }
    }

    /// # Safety
    /// No other thread is inside a call of this heap.
    pub(crate) unsafe fn visit_all(&self) -> Vec<Block> {
        unsafe extern "C" fn count(user: *mut c_void, _: *const sys::hak_block) -> bool {
            *(user as *mut usize) += 1;
            true
        }
        // A visitor must not allocate, perhaps from this very heap: there is room before it runs.
        unsafe extern "C" fn push(user: *mut c_void, block: *const sys::hak_block) -> bool {
            let (list, b) = (&mut *(user as *mut Vec<Block>), &*block);
            if list.len() < list.capacity() {
                list.push(Block { address: b.p as usize, size: b.size, label: Label(b.label) });
            }
            true
        }
        let mut n = 0usize;
        sys::hak_ctx_visit(self.as_ptr(), Some(count), &mut n as *mut usize as *mut c_void);
        let mut list = Vec::with_capacity(n);
        sys::hak_ctx_visit(self.as_ptr(), Some(push), &mut list as *mut Vec<Block> as *mut c_void);
        list
    }

    /// # Safety
    /// No other thread is inside a call of this heap.
    pub(crate) unsafe fn sound(&self) -> bool {
        sys::hak_ctx_check(self.as_ptr(), None, std::ptr::null_mut())
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: a name that ends with a zero and lives as long as the heap.
        let name = unsafe { CStr::from_ptr(sys::hak_ctx_name(self.as_ptr())) };
        f.debug_struct("Heap").field("name", &name).field("live_bytes", &self.live_bytes()).finish()
    }
}
