//! Lua by mlua, in a heap of its own: the state is made here, and mlua works with it (`Lua::get_or_init_from_ptr`).
//!
//! ```
//! let lua = hakmem_adapters::lua::LuaHeap::new("script", 8 << 20).expect("memory");
//! let n: usize = lua.load("local t = {} for i = 1, 100 do t[i] = {i} end return #t").eval().unwrap();
//! assert_eq!(n, 100);
//! let error = lua.load("local t = {} while true do t[#t + 1] = ('x'):rep(10000 + #t) end").exec();
//! assert!(matches!(error, Err(mlua::Error::MemoryError(_))), "{error:?}");
//! assert!(lua.heap().stats().committed_bytes <= 8 << 20);
//! ```
//!
//! mlua's own limit (`Lua::set_memory_limit`) is not needed, and there is none for such a state: mlua's limit is off
//! around some of its calls, and where memory then really ends the process ends with it. For a state that it did not
//! make itself, mlua runs each call that may allocate protected, so that the limit of the heap is a `MemoryError` in
//! all of them. Lua collects its garbage once before it gives up.

use std::ffi::c_void;
use std::ops::Deref;

use hakmem::{Context, Heap, Options};
use hakmem_sys as sys;
use mlua::ffi;

/// Lua tells the size of what it frees.
unsafe extern "C" fn allocate(ctx: *mut c_void, p: *mut c_void, old: usize, n: usize) -> *mut c_void {
    let ctx = ctx.cast::<sys::hak_ctx>();
    if n == 0 {
        if !p.is_null() {
            sys::hak_free_sized(ctx, p, old);
        }
        return std::ptr::null_mut();
    }
    if p.is_null() {
        // `old` is what the block is for.
        return sys::hak_alloc(ctx, n);
    }
    sys::hak_realloc_sized(ctx, p, old, n)
}

/// A Lua state and its heap, for one thread at a time. [`mlua::Lua`] by `Deref`; a clone of it must not outlive this.
pub struct LuaHeap {
    state: *mut ffi::lua_State,
    heap: Context,
}

impl LuaHeap {
    /// A state with the standard libraries, and a limit on committed bytes, 0 = none, from then on. `None`: no memory.
    pub fn new(name: &str, limit: usize) -> Option<LuaHeap> {
        let heap = Context::with_options(Options::new().name(name))?;
        // SAFETY: the heap lives longer than the state.
        let state = unsafe { ffi::lua_newstate(allocate, heap.as_ptr().cast()) };
        if state.is_null() {
            return None;
        }
        let lua = LuaHeap { state, heap };
        // SAFETY: the state is new, and nobody else has it.
        unsafe {
            ffi::luaL_openlibs(state);
            // Here, before there is a limit: mlua does not expect that this fails.
            let _ = mlua::Lua::get_or_init_from_ptr(state);
        }
        lua.heap.limit(limit);
        Some(lua)
    }

    /// For figures and limits.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// For functions of Lua's C interface.
    pub fn state(&self) -> *mut ffi::lua_State {
        self.state
    }
}

impl Deref for LuaHeap {
    type Target = mlua::Lua;
    fn deref(&self) -> &mlua::Lua {
        // SAFETY: the state lives as long as this.
        unsafe { mlua::Lua::get_or_init_from_ptr(self.state) }
    }
}

impl Drop for LuaHeap {
    fn drop(&mut self) {
        // SAFETY: nobody uses the state any more. Finalizers run, and may need memory to do so.
        unsafe {
            self.heap.limit(0);
            ffi::lua_close(self.state);
        }
    }
}
