//! Guests within limits, and back to their snapshots. HAKMEM_GUEST: the compiled tests/guest.wat.

use hakmem_wasmtime::{Error, Guest, Host, Limits, ModuleLimits, Reason, Tenant};
use wasmtime::{Config, Engine, Linker, Module};

const PAGE: usize = 64 << 10;

struct Setup {
    host: Host,
    linker: Linker<hakmem_wasmtime::State<()>>,
    module: Module,
}

fn setup(limits: Limits) -> Option<Setup> {
    let path = std::env::var_os("HAKMEM_GUEST")?;
    let host = Host::new(limits).unwrap();
    let engine = Engine::new(host.configure(&mut Config::new())).unwrap();
    // SAFETY: wasmtime made it, a moment ago.
    let module = unsafe { Module::deserialize_file(&engine, path).unwrap() };
    Some(Setup { host, linker: Linker::new(&engine), module })
}

fn call(guest: &mut Guest<()>, name: &str, argument: i32) -> wasmtime::Result<i32> {
    let f = guest.instance().get_func(guest.store(), name).unwrap();
    let takes = f.ty(guest.store()).params().len();
    let gives = f.ty(guest.store()).results().len();
    let mut results = vec![wasmtime::Val::I32(0); gives];
    f.call(guest.store(), &vec![wasmtime::Val::I32(argument); takes], &mut results)?;
    Ok(results.first().map_or(0, wasmtime::Val::unwrap_i32))
}

fn make(setup: &Setup, tenant: &Tenant) -> Result<Guest<()>, Error> {
    tenant.guest(&setup.linker, &setup.module, ())
}

fn linear(tenant: &Tenant) -> usize {
    tenant.stats().linear_bytes
}

#[test]
fn a_guest_goes_back_to_its_snapshot() {
    let Some(s) = setup(Limits::default()) else { return };
    let tenant = s.host.tenant("alice", Limits { linear_bytes: 16 * PAGE, instances: 4 }).unwrap();
    let mut guest = make(&s, &tenant).unwrap();
    call(&mut guest, "put", 3).unwrap();
    let snapshot = guest.snapshot().unwrap();
    for n in 0..100 {
        call(&mut guest, "put", 1000 + n).unwrap();
        assert!(call(&mut guest, "outside", 0).is_err());
        assert!(call(&mut guest, "deep", 0).is_err());
        assert_eq!(call(&mut guest, "get", 0).unwrap(), 1000 + n);
        guest.reset(&snapshot).unwrap();
        assert_eq!((call(&mut guest, "get", 0).unwrap(), call(&mut guest, "global", 0).unwrap()), (3, 3));
    }
    // Another guest of the module may use it, too.
    let mut other = make(&s, &tenant).unwrap();
    other.reset(&snapshot).unwrap();
    assert_eq!(call(&mut other, "get", 0).unwrap(), 3);
    // What grew stays as it is, and wasmtime goes on with it.
    call(&mut other, "put", 5).unwrap();
    assert_eq!(call(&mut other, "grow", 1).unwrap(), 1);
    assert_eq!(other.reset(&snapshot).unwrap_err().reason(), Reason::Reset);
    assert_eq!((call(&mut other, "get", 0).unwrap(), call(&mut other, "grow", 0).unwrap()), (5, 2));
    assert_eq!(call(&mut guest, "widen", 1).unwrap(), 1);
    assert_eq!(guest.reset(&snapshot).unwrap_err().reason(), Reason::Reset);
    drop((guest, other, snapshot));
    assert_eq!((linear(&tenant), tenant.stats().instances), (0, 0));
    assert_eq!(s.host.stats().live, 0);
}

#[test]
fn never_a_byte_over_the_limit_and_the_neighbour_is_served() {
    let Some(s) = setup(Limits { linear_bytes: 64 * PAGE, instances: 10 }) else { return };
    let limits = Limits { linear_bytes: 10 * PAGE, instances: 2 };
    let hostile = s.host.tenant("mallory", limits).unwrap();
    let child = hostile.child("part", Limits::default()).unwrap();
    let neighbour = s.host.tenant("alice", limits).unwrap();
    for _ in 0..20 {
        let mut guest = make(&s, &hostile).unwrap();
        while call(&mut guest, "grow", 1).unwrap() != -1 {
            assert!(linear(&hostile) <= 10 * PAGE);
        }
        assert!(linear(&hostile) >= 9 * PAGE);
        while call(&mut guest, "widen", 100).unwrap() != -1 {
            assert!(linear(&hostile) <= 10 * PAGE);
        }
        assert_eq!(call(&mut guest, "widen", i32::MAX).unwrap(), -1);
        assert_eq!(call(&mut guest, "grow", 999).unwrap(), -1);
        assert!(call(&mut guest, "deep", 0).is_err());
        assert_eq!(make(&s, &child).err().map(|e| e.reason()), Some(Reason::Memory));
        assert_eq!(guest.snapshot().err().map(|e| e.reason()), Some(Reason::Memory));
        let mut served = make(&s, &neighbour).unwrap();
        call(&mut served, "put", 1).unwrap();
        assert_eq!(call(&mut served, "get", 0).unwrap(), 1);
    }
    let one = make(&s, &hostile).unwrap();
    let two = make(&s, &child).unwrap();
    let error = make(&s, &child).err().unwrap();
    assert_eq!(error.reason(), Reason::Instances);
    assert_eq!(error.to_string(), "hakmem: \"part\" has as many instances as it may");
    drop((one, two));
    assert_eq!((linear(&hostile), hostile.stats().instances), (0, 0));
}

#[test]
fn a_guest_that_rests_gives_its_pages_back() {
    let Some(s) = setup(Limits::default()) else { return };
    let tenant = s.host.tenant("alice", Limits::default()).unwrap();
    // SAFETY: for any thread.
    let resident = || unsafe { hakmem_sys::hak_wasm_tenant_resident(tenant.as_ptr()) };
    let mut guest = make(&s, &tenant).unwrap();
    call(&mut guest, "put", 3).unwrap();
    let snapshot = guest.snapshot().unwrap();
    for n in 0..3 {
        call(&mut guest, "put", 1000 + n).unwrap();
        assert!(resident() > 0);
        guest.rest(&snapshot).unwrap();
        assert_eq!(s.host.stats().resting, 1);
        s.host.trim();
        assert_eq!(resident(), 0);
        assert_eq!(call(&mut guest, "get", 0).unwrap(), 3);
        assert_eq!(s.host.stats().resting, 0);
        call(&mut guest, "put", 7).unwrap();
        s.host.trim();
        assert_eq!(call(&mut guest, "get", 0).unwrap(), 7);
    }
    guest.rest(&snapshot).unwrap();
    drop((guest, snapshot));
    assert_eq!((linear(&tenant), s.host.stats().live), (0, 0));
}

/// Polls on a new thread each time, as a runtime that steals work may.
fn block_on<F: std::future::Future + Send>(future: F) -> F::Output
where
    F::Output: Send,
{
    let mut future = std::pin::pin!(future);
    loop {
        let polled = std::thread::scope(|scope| {
            let poll = || future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
            scope.spawn(poll).join().unwrap()
        });
        if let std::task::Poll::Ready(value) = polled {
            return value;
        }
    }
}

#[test]
fn a_future_makes_guests_for_its_tenant() {
    let Some(s) = setup(Limits::default()) else { return };
    let limits = Limits { linear_bytes: 2 * PAGE, instances: 9 };
    let (alice, bob) = (s.host.tenant("alice", limits).unwrap(), s.host.tenant("bob", limits).unwrap());
    let guest = block_on(alice.guest_async(&s.linker, &s.module, ())).unwrap();
    assert!(linear(&alice) >= PAGE && linear(&bob) == 0);
    let error = block_on(alice.guest_async(&s.linker, &s.module, ())).err().unwrap();
    assert_eq!(error.reason(), Reason::Memory);
    let other = block_on(bob.guest_async(&s.linker, &s.module, ())).unwrap();
    assert_eq!(other.tenant().name(), "bob");
    drop((guest, other));
    assert_eq!((linear(&alice), linear(&bob)), (0, 0));
}

#[test]
fn modules_are_checked_before_anything_is_compiled() {
    let host = Host::new(Limits::default()).unwrap();
    let tenant = host.tenant("alice", Limits::default()).unwrap();
    let module = b"\0asm\x01\0\0\0";
    assert!(tenant.check(module).is_ok());
    tenant.limit_modules(ModuleLimits { bytes: 4, ..Default::default() });
    let error = tenant.check(module).unwrap_err();
    assert_eq!(error.reason(), Reason::Module);
    assert!(error.to_string().contains("hak_wasm_module_limits.bytes of \"alice\" is 4"), "{error}");
    assert_eq!(host.tenant("a\0b", Limits::default()).err().map(|e| e.reason()), Some(Reason::Options));
}
