//! Guests within limits, and back to their snapshots. HAKMEM_GUEST: the compiled tests/guest.wat.

use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hakmem_wasmtime::{Error, Guest, Host, Limits, ModuleLimits, Reason, State, Tenant};
use wasmtime::{Config, Engine, Linker, Module};

const PAGE: usize = 64 << 10;

struct Setup {
    host: Host,
    linker: Linker<State<()>>,
    module: Module,
}

fn setup(limits: Limits) -> Option<Setup> {
    setup_of("guest", limits, |_| ())
}

/// A guest beside HAKMEM_GUEST.
fn setup_of(guest: &str, limits: Limits, define: impl FnOnce(&mut Linker<State<()>>)) -> Option<Setup> {
    let host = Host::new(limits).unwrap();
    let engine = Engine::new(host.configure(&mut Config::new())).unwrap();
    let mut setup = load(guest, host, &engine)?;
    define(&mut setup.linker);
    Some(setup)
}

fn load(guest: &str, host: Host, engine: &Engine) -> Option<Setup> {
    let path = PathBuf::from(std::env::var_os("HAKMEM_GUEST")?).with_file_name(format!("{guest}.cwasm"));
    // SAFETY: wasmtime made it, a moment ago.
    let module = unsafe { Module::deserialize_file(engine, path).unwrap() };
    Some(Setup { host, linker: Linker::new(engine), module })
}

const PERIOD: Duration = Duration::from_millis(5);
const TIME: Duration = Duration::from_millis(50);

/// The guest of [`setup`], in an engine with a clock.
fn timed() -> Option<Setup> {
    let host = Host::new(Limits::default()).unwrap();
    let engine = host.timed_engine(&mut Config::new(), PERIOD).unwrap();
    load("timed", host, &engine)
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
fn what_no_export_shows_comes_back_too() {
    let Some(s) = setup(Limits::default()) else { return };
    let tenant = s.host.tenant("alice", Limits::default()).unwrap();
    let (mut guest, mut other) = (make(&s, &tenant).unwrap(), make(&s, &tenant).unwrap());
    let fresh = call(&mut guest, "hidden", 0).unwrap();
    let snapshot = guest.snapshot().unwrap();
    call(&mut guest, "hide", 0).unwrap();
    let hidden = call(&mut guest, "hidden", 0).unwrap();
    assert_ne!(hidden, fresh);
    let later = guest.snapshot().unwrap();
    for _ in 0..3 {
        for guest in [&mut guest, &mut other] {
            guest.reset(&snapshot).unwrap();
            assert_eq!(call(guest, "hidden", 0).unwrap(), fresh);
            guest.reset(&later).unwrap();
            assert_eq!(call(guest, "hidden", 0).unwrap(), hidden);
            call(guest, "hide", 0).unwrap();
        }
    }
    // A function of the host's is none that another guest could have.
    let table = guest.instance().get_table(guest.store(), "table").unwrap();
    let function = wasmtime::Func::wrap(guest.store(), || ());
    table.set(guest.store(), 0, function.into()).unwrap();
    assert_eq!(guest.snapshot().err().map(|e| e.reason()), Some(Reason::Reset));
    guest.reset(&snapshot).unwrap();
    assert!(guest.snapshot().is_ok());
    // Nor is there one of a module that hides its state.
    let Some(s) = setup_of("hidden", Limits::default(), |_| ()) else { return };
    let tenant = s.host.tenant("bob", Limits::default()).unwrap();
    let error = make(&s, &tenant).unwrap().snapshot().err().unwrap();
    assert_eq!(error.reason(), Reason::Reset);
    assert!(error.to_string().contains("hakmem_wasmtime::expose"), "{error}");
}

#[test]
fn a_module_is_copied_or_refused_with_the_reason() {
    let empty = b"\0asm\x01\0\0\0";
    let memory = [&empty[..], b"\x05\x03\x01\x00\x01"].concat();
    let copy = hakmem_wasmtime::expose(&memory).unwrap();
    assert!(copy.windows(10).any(|name| name == b"hak:memory"));
    let imports = [&empty[..], b"\x02\x08\x01\x01a\x01m\x02\x00\x01"].concat();
    let error = hakmem_wasmtime::expose(&imports).unwrap_err();
    assert_eq!(error.reason(), Reason::Reset);
    assert_eq!(error.to_string(), "hakmem: the module cannot be reset: it imports its memory");
    assert_eq!(hakmem_wasmtime::expose(b"").unwrap_err().reason(), Reason::Reset);
    assert_eq!(hakmem_wasmtime::expose(&copy).unwrap_err().reason(), Reason::Reset);
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
fn block_on<F: Future + Send>(future: F) -> F::Output
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

/// Lets the future go on at its next poll.
struct Yield(bool);
impl Future for Yield {
    type Output = ();
    fn poll(mut self: std::pin::Pin<&mut Self>, task: &mut std::task::Context) -> std::task::Poll<()> {
        task.waker().wake_by_ref();
        match std::mem::replace(&mut self.0, true) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    }
}

fn pausing(limits: Limits) -> Option<Setup> {
    setup_of("pause", limits, |linker| {
        linker.func_wrap_async("host", "pause", |_, ()| Box::new(Yield(false))).unwrap();
    })
}

async fn call_async(guest: &mut Guest<()>, name: &str, argument: i32) -> Result<i32, Error> {
    let f = guest.instance().get_typed_func::<i32, i32>(guest.store(), name)?;
    Ok(f.call_async(guest.store(), argument).await?)
}

const STACK: usize = 2 << 20;

#[test]
fn stacks_of_async_calls_are_the_tenants() {
    let Some(s) = pausing(Limits::default()) else { return };
    let limits = Limits { linear_bytes: 2 * (STACK + 2 * PAGE), instances: 2 };
    let (alice, bob) = (s.host.tenant("alice", limits).unwrap(), s.host.tenant("bob", Limits::default()).unwrap());
    let mut guest = block_on(alice.guest_async(&s.linker, &s.module, ())).unwrap();
    let before = linear(&alice);
    let snapshot = guest.snapshot().unwrap();
    for _ in 0..3 {
        // On another thread at each poll.
        assert_eq!(block_on(alice.run(call_async(&mut guest, "run", 20))).unwrap(), 20);
        // The store keeps its stack.
        assert!((before + STACK..=before + STACK + 2 * PAGE).contains(&linear(&alice)), "{}", linear(&alice));
        assert_eq!(linear(&bob), 0);
        // The end of the stack is a trap, and the guest can be reset.
        let trap = block_on(alice.run(call_async(&mut guest, "deep", 0))).unwrap_err();
        assert_eq!(trap.reason(), Reason::Wasmtime);
        guest.reset(&snapshot).unwrap();
    }
    // A call that is given up in its middle.
    for _ in 0..3 {
        let mut second = block_on(alice.guest_async(&s.linker, &s.module, ())).unwrap();
        {
            let mut future = std::pin::pin!(alice.run(call_async(&mut second, "run", 20)));
            let mut task = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(future.as_mut().poll(&mut task).is_pending());
            assert!(linear(&alice) >= before + 2 * STACK);
        }
        drop(second);
        assert!(linear(&alice) < before + 2 * STACK);
    }
    drop((guest, snapshot));
    assert_eq!((linear(&alice), alice.stats().instances, s.host.stats().live), (0, 0, 0));
}

#[test]
fn a_stack_over_the_limit_is_an_error_and_leaves_nothing() {
    let Some(s) = pausing(Limits { linear_bytes: 4 * STACK, instances: 100 }) else { return };
    let neighbour = s.host.tenant("alice", Limits::default()).unwrap();
    let mut kinds = [0; 3];
    // Whatever is the first that does not fit: the memory, the stack, or nothing.
    for pages in (0..=40).chain(33..=34) {
        let limits = Limits { linear_bytes: (pages * PAGE).max(1), instances: 1 };
        let tenant = s.host.tenant("mallory", limits).unwrap();
        match block_on(tenant.guest_async(&s.linker, &s.module, ())) {
            Err(error) => {
                assert_eq!(error.reason(), Reason::Memory, "{error}");
                kinds[0] += 1;
            }
            Ok(mut guest) => match block_on(tenant.run(call_async(&mut guest, "run", 3))) {
                Err(error) => {
                    assert_eq!(error.reason(), Reason::Stack, "{error}");
                    assert!(error.to_string().contains("the stack of an async call is over a limit"), "{error}");
                    // The guest is as it was, and goes on where there is room.
                    tenant.limit(Limits { linear_bytes: 40 * PAGE, instances: 1 });
                    assert_eq!(block_on(tenant.run(call_async(&mut guest, "run", 3))).unwrap(), 3);
                    kinds[1] += 1;
                }
                Ok(value) => {
                    assert_eq!(value, 3);
                    kinds[2] += 1;
                }
            },
        }
        assert_eq!((linear(&tenant), tenant.stats().instances), (0, 0));
        let mut served = block_on(neighbour.guest_async(&s.linker, &s.module, ())).unwrap();
        assert_eq!(block_on(neighbour.run(call_async(&mut served, "run", 1))).unwrap(), 1);
    }
    assert!(kinds.iter().all(|&n| n > 0), "{kinds:?}");
    // The host's limit holds for all: two stacks of other guests, and their memories, leave no room for two more.
    let mut guests = Vec::new();
    let error = loop {
        assert!(guests.len() < 5);
        let mut guest = block_on(neighbour.guest_async(&s.linker, &s.module, ())).unwrap();
        match block_on(neighbour.run(call_async(&mut guest, "run", 1))) {
            Ok(_) => guests.push(guest),
            Err(error) => break error,
        }
    };
    assert_eq!((error.reason(), guests.len()), (Reason::Stack, 3));
    drop(guests);
    assert_eq!(s.host.stats().live, 0);
}

#[test]
fn a_call_outside_of_the_tenant_has_no_stack() {
    let Some(s) = pausing(Limits::default()) else { return };
    let tenant = s.host.tenant("alice", Limits::default()).unwrap();
    let mut guest = block_on(tenant.guest_async(&s.linker, &s.module, ())).unwrap();
    let error = block_on(call_async(&mut guest, "run", 1)).unwrap_err();
    assert_eq!(error.reason(), Reason::Stack);
    assert!(error.to_string().contains("outside of Tenant::run"), "{error}");
    // A tenant of another host is nobody, too.
    let other = Host::new(Limits::default()).unwrap();
    let stranger = other.tenant("bob", Limits::default()).unwrap();
    assert_eq!(block_on(stranger.run(call_async(&mut guest, "run", 1))).unwrap_err().reason(), Reason::Stack);
    assert_eq!(block_on(tenant.run(call_async(&mut guest, "run", 1))).unwrap(), 1);
    // By now it has one, and who calls needs none.
    assert_eq!(block_on(call_async(&mut guest, "run", 1)).unwrap(), 2);
}

#[test]
fn a_call_that_runs_too_long_ends_and_its_guest_goes_back() {
    let Some(s) = timed() else { return };
    let tenant = s.host.tenant("mallory", Limits::default()).unwrap();
    let child = tenant.child("part", Limits::default()).unwrap();
    tenant.limit_time(Some(TIME));
    for owner in [&tenant, &child] {
        let mut guest = make(&s, owner).unwrap();
        call(&mut guest, "put", 3).unwrap();
        let snapshot = guest.snapshot().unwrap();
        for n in 0..3 {
            call(&mut guest, "put", 1000 + n).unwrap();
            let begun = Instant::now();
            let error = Error::from(call(&mut guest, "spin", 0).unwrap_err());
            assert_eq!(error.reason(), Reason::Time, "{error}");
            assert!(error.to_string().contains("for as long as its tenant may"), "{error}");
            assert!(begun.elapsed() >= TIME);
            guest.reset(&snapshot).unwrap();
            assert_eq!(call(&mut guest, "get", 0).unwrap(), 3);
        }
    }
    // The smaller limit of both counts, and each call has all of it.
    child.limit_time(Some(PERIOD));
    let mut guest = make(&s, &child).unwrap();
    let begun = Instant::now();
    while begun.elapsed() < 4 * TIME {
        call(&mut guest, "put", 3).unwrap();
    }
    let error = Error::from(call(&mut guest, "spin", 0).unwrap_err());
    assert_eq!(error.reason(), Reason::Time);
}

#[test]
fn a_guest_in_a_loop_lets_others_run() {
    let Some(s) = timed() else { return };
    let (mallory, alice) =
        (s.host.tenant("mallory", Limits::default()).unwrap(), s.host.tenant("alice", Limits::default()).unwrap());
    let mut guest = block_on(mallory.guest_async(&s.linker, &s.module, ())).unwrap();
    let spin = guest.instance().get_typed_func::<(), ()>(guest.store(), "spin").unwrap();
    let mut other = block_on(alice.guest_async(&s.linker, &s.module, ())).unwrap();
    {
        let mut call = std::pin::pin!(mallory.run(spin.call_async(guest.store(), ())));
        let mut task = std::task::Context::from_waker(std::task::Waker::noop());
        for n in 0..20 {
            assert!(call.as_mut().poll(&mut task).is_pending());
            assert_eq!(block_on(alice.run(call_async(&mut other, "next", n))).unwrap(), n + 1);
        }
        // A limit that comes while it runs.
        mallory.limit_time(Some(TIME));
        let ended = loop {
            if let std::task::Poll::Ready(ended) = call.as_mut().poll(&mut task) {
                break ended;
            }
        };
        assert_eq!(Error::from(ended.unwrap_err()).reason(), Reason::Time);
    }
    drop((guest, other));
    assert_eq!((linear(&mallory), linear(&alice), s.host.stats().live), (0, 0, 0));
}

#[test]
fn what_cannot_be_limited_in_time_does_not_start() {
    let Some(s) = setup(Limits::default()) else { return };
    let tenant = s.host.tenant("alice", Limits::default()).unwrap();
    let _before = make(&s, &tenant).unwrap();
    tenant.limit_time(Some(TIME));
    let error = make(&s, &tenant).err().unwrap();
    assert_eq!(error.reason(), Reason::Options);
    assert!(error.to_string().contains("Host::timed_engine"), "{error}");
    assert_eq!(tenant.stats().instances, 1);
    tenant.limit_time(None);
    assert!(make(&s, &tenant).is_ok());
    let error = s.host.timed_engine(&mut Config::new(), Duration::ZERO).err().unwrap();
    assert_eq!(error.reason(), Reason::Options);
    // A module that does not look at the clock is none of such an engine.
    let engine = s.host.timed_engine(&mut Config::new(), PERIOD).unwrap();
    let path = std::env::var_os("HAKMEM_GUEST").unwrap();
    // SAFETY: as above.
    assert!(unsafe { Module::deserialize_file(&engine, path) }.is_err());
}

#[test]
fn snapshots_are_shared_out_among_their_guests() {
    let Some(s) = setup(Limits::default()) else { return };
    let (alice, bob) =
        (s.host.tenant("alice", Limits::default()).unwrap(), s.host.tenant("bob", Limits::default()).unwrap());
    let mut guest = make(&s, &alice).unwrap();
    call(&mut guest, "put", 3).unwrap();
    let snapshot = guest.snapshot().unwrap();
    let alone = alice.proportional();
    assert!(alone >= 4096 && alice.resident() == 0);
    let mut other = make(&s, &bob).unwrap();
    other.reset(&snapshot).unwrap();
    assert_eq!((alice.proportional(), bob.proportional()), (alone / 2, alone / 2));
    call(&mut other, "put", 4).unwrap();
    assert_eq!(bob.proportional(), alone / 2 + bob.resident());
    assert!(bob.resident() > 0);
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
