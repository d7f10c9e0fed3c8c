//! What a heap is made from: options, spaces, quotas.

use std::ffi::{c_char, c_void, CStr, CString};
use std::mem::{size_of, zeroed};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{null, null_mut, NonNull};
use std::sync::Arc;

use hakmem_sys as sys;

/// What runs in a heap, as far as the order of its frees depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Workload {
    /// A collector sweeps.
    Traced = sys::HAK_WORKLOAD_TRACED,
    /// References are counted, as by `Rc`.
    Counted = sys::HAK_WORKLOAD_COUNTED,
    /// Anything.
    Malloc = sys::HAK_WORKLOAD_MALLOC,
}

/// How much memory may be spent for speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    Balanced = sys::HAK_MODE_BALANCED,
    Minimal = sys::HAK_MODE_MINIMAL,
    Fast = sys::HAK_MODE_FAST,
    Lean = sys::HAK_MODE_LEAN,
}

/// Misuse of a heap, as [`Options::on_error`] gets it.
#[derive(Debug)]
pub struct Misuse<'a> {
    /// A name such as `HAK_E_DOUBLE_FREE`.
    pub name: &'a CStr,
    pub address: usize,
    pub what: &'a CStr,
}

type ErrorFn = Box<dyn Fn(&Misuse<'_>) + Send + Sync>;

/// How a heap is made; [`Options::default`] serves.
pub struct Options {
    name: Option<CString>,
    labels: Vec<CString>,
    quota: Option<Quota>,
    space: Option<Space>,
    on_error: Option<ErrorFn>,
    debug: u32,
    workload: Workload,
    mode: Mode,
    broken: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            name: None,
            labels: Vec::new(),
            quota: None,
            space: None,
            on_error: None,
            debug: 0,
            workload: Workload::Malloc,
            mode: Mode::Balanced,
            broken: false,
        }
    }
}

impl Options {
    pub fn new() -> Options {
        Options::default()
    }

    /// Shown in reports. A name with a zero byte makes no heap.
    pub fn name(mut self, name: &str) -> Options {
        self.name = CString::new(name).ok();
        self.broken |= self.name.is_none();
        self
    }

    /// The names of labels 1, 2, 3...: 1 to 63 bytes, all different, at most 253. Else no heap is made.
    pub fn labels<S: AsRef<str>>(mut self, names: impl IntoIterator<Item = S>) -> Options {
        let names: Result<_, _> = names.into_iter().map(|name| CString::new(name.as_ref())).collect();
        self.broken |= names.is_err();
        self.labels = names.unwrap_or_default();
        self
    }

    /// The pages come from this space; without one the heap has a space of its own.
    pub fn space(mut self, space: &Space) -> Options {
        self.space = Some(space.clone());
        self
    }

    /// The heap counts for this group.
    pub fn quota(mut self, quota: &Quota) -> Options {
        self.quota = Some(quota.clone());
        self
    }

    /// Default [`Workload::Malloc`].
    pub fn workload(mut self, workload: Workload) -> Options {
        self.workload = workload;
        self
    }

    pub fn mode(mut self, mode: Mode) -> Options {
        self.mode = mode;
        self
    }

    /// Every free is checked at once; with `poison` writes to freed blocks of up to 32 KiB are found as well. Small
    /// blocks are 5 to 12 times slower.
    pub fn check(mut self, poison: bool) -> Options {
        self.debug = if poison { sys::HAK_DEBUG_POISON } else { sys::HAK_DEBUG_CHECK };
        self
    }

    /// Called at misuse, and for labels and alignments that are refused. Without it misuse is ignored. A panic in
    /// it ends the process.
    ///
    /// # Safety
    /// It runs inside the failing call, perhaps under a lock: `f` must not use the heap.
    pub unsafe fn on_error(mut self, f: impl Fn(&Misuse<'_>) + Send + Sync + 'static) -> Options {
        self.on_error = Some(Box::new(f));
        self
    }
}

/// What a heap refers to for as long as it lives.
pub(crate) struct Kept {
    _name: Option<CString>,
    _names: Vec<CString>,
    _labels: Vec<*const c_char>,
    _on_error: Option<Box<ErrorFn>>,
    _quota: Option<Quota>,
    _space: Option<Space>,
}

// SAFETY: the pointers of _labels are to _names; what Kept has is never changed, only dropped.
unsafe impl Send for Kept {}
unsafe impl Sync for Kept {}

/// Runs a closure of the host below C, through which no panic may pass.
pub(crate) fn without_panic(f: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(f)).is_err() {
        std::process::abort();
    }
}

unsafe extern "C" fn on_error(user: *mut c_void, error: sys::hak_error, p: *const c_void, what: *const c_char) {
    without_panic(|| {
        let f = &*(user as *const ErrorFn);
        let name = CStr::from_ptr(sys::hak_error_name(error));
        f(&Misuse { name, address: p as usize, what: CStr::from_ptr(what) });
    });
}

pub(crate) fn make(options: Options, shared: bool) -> Option<(NonNull<sys::hak_ctx>, Kept)> {
    if options.broken {
        return None;
    }
    let labels: Vec<*const c_char> = options.labels.iter().map(|name| name.as_ptr()).collect();
    let error = options.on_error.map(Box::new);
    // SAFETY: all zero is a value of every field; init sets the defaults.
    let ctx = unsafe {
        let mut o: sys::hak_options = zeroed();
        sys::hak_options_init(&mut o, size_of::<sys::hak_options>());
        o.name = options.name.as_ref().map_or(null(), |name| name.as_ptr());
        o.quota = options.quota.as_ref().map_or(null_mut(), Quota::as_ptr);
        if let Some(error) = &error {
            o.on_error = Some(on_error);
            o.error_user = &**error as *const ErrorFn as *mut c_void;
        }
        o.debug = options.debug;
        o.labels = if labels.is_empty() { null() } else { labels.as_ptr() };
        o.label_count = labels.len();
        o.shared = shared;
        o.workload = options.workload as sys::hak_workload;
        o.mode = options.mode as sys::hak_mode;
        sys::hak_ctx_new(options.space.as_ref().map_or(null_mut(), Space::as_ptr), &o)
    };
    let kept = Kept {
        _name: options.name,
        _names: options.labels,
        _labels: labels,
        _on_error: error,
        _quota: options.quota,
        _space: options.space,
    };
    Some((NonNull::new(ctx)?, kept))
}

struct SpacePtr(NonNull<sys::hak_space>);
// SAFETY: a space is for any thread.
unsafe impl Send for SpacePtr {}
unsafe impl Sync for SpacePtr {}
impl Drop for SpacePtr {
    fn drop(&mut self) {
        // SAFETY: each heap of the space keeps it, so none is left.
        unsafe { sys::hak_space_delete(self.0.as_ptr()) }
    }
}

/// Pages for many heaps; a recycled page is warm for the next heap. For any thread. It lives as long as a clone of
/// it or a heap in it.
#[derive(Clone)]
pub struct Space(Arc<SpacePtr>);

impl Space {
    /// `None`: no address space is to be had.
    pub fn new() -> Option<Space> {
        Space::with_mode(Mode::Balanced)
    }

    /// The mode rules what is kept of idle pages.
    pub fn with_mode(mode: Mode) -> Option<Space> {
        // SAFETY: as in make.
        let space = unsafe {
            let mut o: sys::hak_space_options = zeroed();
            sys::hak_space_options_init(&mut o, size_of::<sys::hak_space_options>());
            o.mode = mode as sys::hak_mode;
            sys::hak_space_new(&o)
        };
        Some(Space(Arc::new(SpacePtr(NonNull::new(space)?))))
    }

    pub fn as_ptr(&self) -> *mut sys::hak_space {
        self.0 .0.as_ptr()
    }
}

struct QuotaPtr(NonNull<sys::hak_quota>, #[allow(dead_code)] Option<Quota>);
// SAFETY: a quota is for any thread.
unsafe impl Send for QuotaPtr {}
unsafe impl Sync for QuotaPtr {}
impl Drop for QuotaPtr {
    fn drop(&mut self) {
        // SAFETY: heaps and groups below keep it, so none is left. The parent goes after it.
        unsafe { sys::hak_quota_delete(self.0.as_ptr()) }
    }
}

/// A limit for a group of heaps and groups. For any thread.
#[derive(Clone)]
pub struct Quota(Arc<QuotaPtr>);

impl Quota {
    /// `hard`: committed bytes, 0 = only count. `None`: no memory.
    pub fn new(hard: usize) -> Option<Quota> {
        Quota::make(None, hard)
    }

    /// A group within this one.
    pub fn below(&self, hard: usize) -> Option<Quota> {
        Quota::make(Some(self.clone()), hard)
    }

    fn make(parent: Option<Quota>, hard: usize) -> Option<Quota> {
        // SAFETY: the parent lives as long as this.
        let quota = unsafe { sys::hak_quota_new(parent.as_ref().map_or(null_mut(), Quota::as_ptr), hard) };
        Some(Quota(Arc::new(QuotaPtr(NonNull::new(quota)?, parent))))
    }

    pub fn as_ptr(&self) -> *mut sys::hak_quota {
        self.0 .0.as_ptr()
    }

    /// Committed bytes of the group.
    pub fn used(&self) -> usize {
        // SAFETY: for any thread.
        unsafe { sys::hak_quota_used(self.as_ptr()) }
    }

    /// The most that was used.
    pub fn peak(&self) -> usize {
        // SAFETY: for any thread.
        unsafe { sys::hak_quota_peak(self.as_ptr()) }
    }

    /// A new limit; below what is used it only stops growth.
    pub fn set(&self, hard: usize) {
        // SAFETY: for any thread.
        unsafe { sys::hak_quota_set(self.as_ptr(), hard) }
    }
}
