//! A Lua state in a heap: its limit, and each allocation of a run failing once.
#![cfg(feature = "lua")]

use std::ffi::c_void;

use hakmem_adapters::lua::LuaHeap;
use mlua::{ffi, Error, Function, Table};

#[test]
fn the_limit_is_an_error_and_the_state_goes_on() {
    for kib in (512..4096).step_by(311) {
        let lua = LuaHeap::new("limited", kib << 10).unwrap();
        for _ in 0..3 {
            let error = lua.load("t = {} while true do t[#t + 1] = ('x'):rep(1000 + #t) end").exec();
            assert!(matches!(error, Err(Error::MemoryError(_))), "{error:?}");
            assert!(lua.heap().stats().committed_bytes <= kib << 10);
            let sum: i64 = lua.load("t = nil collectgarbage() return 40 + 2").eval().unwrap();
            assert_eq!(sum, 42);
        }
        // What mlua makes by itself is within the limit, too.
        let made: Result<Vec<Table>, Error> = (0..1_000_000).map(|_| lua.create_table_with_capacity(100, 0)).collect();
        assert!(matches!(made, Err(Error::MemoryError(_))));
        drop(made);
        lua.gc_collect().unwrap();
        assert_eq!(lua.load("return 1").eval::<i32>().unwrap(), 1);
    }
}

/// In front of the heap's function: the n-th request fails.
struct Nth {
    inner: ffi::lua_Alloc,
    ud: *mut c_void,
    countdown: usize,
}

unsafe extern "C" fn fails(nth: *mut c_void, p: *mut c_void, old: usize, n: usize) -> *mut c_void {
    let nth = &mut *nth.cast::<Nth>();
    // Lua relies on it that a block that shrinks stays.
    if n > 0 && (p.is_null() || n > old) {
        nth.countdown = nth.countdown.wrapping_sub(1);
        // Twice, as Lua collects its garbage and asks again.
        if nth.countdown == 0 || nth.countdown == usize::MAX {
            return std::ptr::null_mut();
        }
    }
    (nth.inner)(nth.ud, p, old, n)
}

fn work(lua: &LuaHeap) -> mlua::Result<i64> {
    let double = lua.create_function(|_, n: i64| Ok(n * 2))?;
    lua.globals().set("double", &double)?;
    let table = lua.create_table()?;
    table.set("name", "a name that is long enough to be a string of its own, beyond forty bytes")?;
    table.set("of", lua.create_string("bytes")?)?;
    lua.globals().set("t", &table)?;
    let f: Function = lua
        .load("local s = 0 for i = 1, 20 do t[i] = {double(i), tostring(i)} s = s + t[i][1] end return s")
        .into_function()?;
    let co: Function =
        lua.load("return coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)").eval()?;
    let first: i64 = co.call(())?;
    Ok(f.call::<i64>(())? + first)
}

#[test]
fn each_allocation_may_fail() {
    let mut failed = 0;
    for n in 1.. {
        let lua = LuaHeap::new("fails", 0).unwrap();
        let mut nth = Nth { inner: fails, ud: std::ptr::null_mut(), countdown: n };
        // SAFETY: the state's own function goes on, and is set again.
        unsafe {
            nth.inner = ffi::lua_getallocf(lua.state(), &mut nth.ud);
            ffi::lua_setallocf(lua.state(), fails, (&raw mut nth).cast());
        }
        let result = work(&lua);
        let over = nth.countdown > 0 && nth.countdown < usize::MAX / 2;
        // SAFETY: as above.
        unsafe { ffi::lua_setallocf(lua.state(), nth.inner, nth.ud) };
        match result {
            Ok(sum) => assert_eq!(sum, 421),
            Err(error) => {
                failed += 1;
                assert!(error.to_string().contains("not enough memory"), "{n}: {error}");
            }
        }
        assert_eq!(work(&lua).unwrap(), 421);
        let live = lua.heap().live_bytes();
        assert!(live > 10_000);
        if over {
            break;
        }
    }
    assert!(failed > 50, "{failed}");
}

#[test]
fn nothing_is_left() {
    let space = hakmem::Space::new().unwrap();
    drop(space);
    for _ in 0..50 {
        let lua = LuaHeap::new("ends", 1 << 20).unwrap();
        let _ = lua.load("t = {} while true do t[#t + 1] = {} end").exec();
        // Finalizers run at the end, over the limit or not.
        let _ = lua.load("setmetatable({}, {__gc = function() t = ('x'):rep(1000000) end})").exec();
    }
}
