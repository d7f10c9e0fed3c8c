//! A store and an instance for a tenant, and the way back to what they were.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use hakmem_sys as sys;
use wasmtime::{Extern, Func, Global, Instance, Linker, Memory, Module, Ref, ResourceLimiter, Store, Table, Val};

use crate::clock::{self, Timer};
use crate::error::{Error, Reason};
use crate::expose;
use crate::host::Host;
use crate::tenant::{Entered, Tenant};

/// A table's element takes 8 bytes; while the table grows there are an old and a new one.
const ELEMENT: usize = 16;

/// The data of a guest's store: the embedder's own, and what the tenant pays.
pub struct State<T> {
    pub data: T,
    tenant: Tenant,
    charged: usize,
    refused: bool,
    /// Of engines with a clock.
    timer: Option<Timer>,
}

impl<T> State<T> {
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    pub(crate) fn timer(&mut self) -> Option<&mut Timer> {
        self.timer.as_mut()
    }
}

impl<T> Drop for State<T> {
    fn drop(&mut self) {
        self.tenant.uncharge(self.charged);
        self.tenant.dismiss();
    }
}

impl<T: Send> ResourceLimiter for State<T> {
    /// The memory's slot asks the tenant.
    fn memory_growing(&mut self, _: usize, _: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // One that cannot grow fails anyway, and wasmtime says nothing of it afterwards.
        if maximum.is_some_and(|most| desired > most) {
            return Ok(false);
        }
        let Some(bytes) = desired.saturating_sub(current).checked_mul(ELEMENT) else { return Ok(false) };
        if !self.tenant.charge(bytes) {
            self.refused = true;
            return Ok(false);
        }
        self.charged += bytes;
        Ok(true)
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        Ok(())
    }
}

/// `hak_wasm_memory_reset` or `_rest`.
type Back = unsafe extern "C" fn(*mut sys::hak_wasm_host, *mut c_void, *mut sys::hak_wasm_image) -> c_int;

struct ImagePtr(NonNull<sys::hak_wasm_image>, #[allow(dead_code)] Host);
// SAFETY: an image is for any thread.
unsafe impl Send for ImagePtr {}
unsafe impl Sync for ImagePtr {}

impl Drop for ImagePtr {
    fn drop(&mut self) {
        // SAFETY: nobody uses it for resets any more. Memories that are attached to it live on.
        unsafe { sys::hak_wasm_image_drop(self.0.as_ptr()) }
    }
}

/// What a guest was like: its memory, its globals that can change, and what its tables hold. For all guests of the same
/// module.
pub struct Snapshot {
    image: Option<ImagePtr>,
    globals: Vec<Val>,
    /// Numbers of functions, from 1; 0 = none.
    tables: Vec<Vec<usize>>,
    module: Module,
}

/// An instance in a store of its own, paid by a tenant. Its drop frees all of it.
pub struct Guest<T: 'static> {
    store: Store<State<T>>,
    instance: Instance,
    module: Module,
    /// Whether the module shows all of its state; else what follows is empty.
    exposed: bool,
    memory: Option<Memory>,
    globals: Vec<Global>,
    tables: Vec<Table>,
    functions: Vec<Func>,
    rests: bool,
}

impl Tenant {
    fn store<T: Send + 'static>(&self, module: &Module, data: T, yields: bool) -> Result<Store<State<T>>, Error> {
        let period = self.host().period(module.engine());
        if period.is_none() && self.time().is_some() {
            let text = "hakmem: the tenant's time is limited, and the engine has no clock: see Host::timed_engine";
            return Err(Error::new(Reason::Options, text));
        }
        self.admit()?;
        let timer = period.map(|period| Timer::new(period, yields));
        let state = State { data, tenant: self.clone(), charged: 0, refused: false, timer };
        let mut store = Store::new(module.engine(), state);
        store.limiter(|state| state);
        if period.is_some() {
            clock::watch(&mut store);
        }
        Ok(store)
    }

    /// A store and an instance. Its start function runs.
    pub fn guest<T: Send + 'static>(
        &self,
        linker: &Linker<State<T>>,
        module: &Module,
        data: T,
    ) -> Result<Guest<T>, Error> {
        let mut store = self.store(module, data, false)?;
        let made = self.enter(|| linker.instantiate(&mut store, module));
        Guest::new(store, made, module)
    }

    /// The same for engines with async calls. In an engine with a clock it has no other calls.
    pub async fn guest_async<T: Send + 'static>(
        &self,
        linker: &Linker<State<T>>,
        module: &Module,
        data: T,
    ) -> Result<Guest<T>, Error> {
        let mut store = self.store(module, data, true)?;
        let made = Entered { tenant: self.clone(), future: linker.instantiate_async(&mut store, module) }.await;
        Guest::new(store, made, module)
    }
}

impl<T: Send + 'static> Guest<T> {
    fn new(store: Store<State<T>>, made: wasmtime::Result<Instance>, module: &Module) -> Result<Guest<T>, Error> {
        let instance = match made {
            Ok(instance) => instance,
            Err(_) if store.data().refused => {
                return Err(Error::new(Reason::Memory, "hakmem: the tables do not fit into the tenant's limit"));
            }
            Err(error) => return Err(error.into()),
        };
        let mut guest = Guest {
            store,
            instance,
            module: module.clone(),
            exposed: module.exports().any(|export| export.name().starts_with(expose::PREFIX)),
            memory: None,
            globals: Vec::new(),
            tables: Vec::new(),
            functions: Vec::new(),
            rests: false,
        };
        guest.find_state();
        Ok(guest)
    }

    fn find_state(&mut self) {
        self.memory = self.instance.get_memory(&mut self.store, expose::MEMORY);
        while let Some(global) = self.numbered(expose::GLOBAL, self.globals.len()).and_then(Extern::into_global) {
            self.globals.push(global);
        }
        while let Some(table) = self.numbered(expose::TABLE, self.tables.len()).and_then(Extern::into_table) {
            self.tables.push(table);
        }
        while let Some(function) = self.numbered(expose::FUNCTION, self.functions.len()).and_then(Extern::into_func) {
            self.functions.push(function);
        }
    }

    fn numbered(&mut self, kind: &str, n: usize) -> Option<Extern> {
        if !self.exposed {
            return None;
        }
        self.instance.get_export(&mut self.store, &format!("{kind}{n}"))
    }

    /// For every use of the guest. Ends its [rest](Guest::rest), and its [time](Tenant::limit_time) begins anew.
    pub fn store(&mut self) -> &mut Store<State<T>> {
        if let Some(timer) = self.store.data_mut().timer() {
            timer.again();
            self.store.set_epoch_deadline(1);
        }
        if std::mem::take(&mut self.rests) {
            if let Some(memory) = self.memory {
                let (host, base) = (self.tenant().host().as_ptr(), memory.data_ptr(&self.store));
                // SAFETY: the memory is the host's, or refused.
                unsafe { sys::hak_wasm_memory_wake(host, base.cast()) };
            }
        }
        &mut self.store
    }

    pub fn instance(&self) -> Instance {
        self.instance
    }

    pub fn tenant(&self) -> &Tenant {
        &self.store.data().tenant
    }

    /// What the guest is like now. The module was compiled from what [`expose`](crate::expose) returned: others have state
    /// that this crate does not see, and are refused. So is a guest with a function in a table that its module does not refer
    /// to, one of the host's for instance.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error> {
        if !self.exposed {
            let text =
                "hakmem: a guest whose module does not show its state cannot be reset: see hakmem_wasmtime::expose";
            return Err(Error::new(Reason::Reset, text));
        }
        let store = &mut self.store;
        let globals = self.globals.iter().map(|global| global.get(&mut *store)).collect();
        let mut known = HashMap::new();
        for (at, function) in self.functions.iter().enumerate() {
            known.insert(function.to_raw(&mut *store) as usize, at + 1);
        }
        let mut tables = Vec::new();
        for table in &self.tables {
            let mut elements = Vec::new();
            for at in 0..table.size(&*store) {
                elements.push(match table.get(&mut *store, at) {
                    Some(Ref::Func(None)) => 0,
                    Some(Ref::Func(Some(function))) => {
                        let raw = function.to_raw(&mut *store) as usize;
                        let text = "hakmem: a table has a function that is none of the module's";
                        *known.get(&raw).ok_or_else(|| Error::new(Reason::Reset, text))?
                    }
                    _ => return Err(Error::new(Reason::Reset, "hakmem: a table has a reference to something else")),
                });
            }
            tables.push(elements);
        }
        let image = match self.memory {
            None => None,
            Some(memory) => {
                let (host, base) = (self.tenant().host().clone(), memory.data_ptr(&self.store));
                // SAFETY: the memory is the host's, or refused.
                let image = self.tenant().enter(|| unsafe { sys::hak_wasm_image_take(host.as_ptr(), base.cast()) });
                let image = NonNull::new(image)
                    .ok_or_else(|| Error::new(Reason::Memory, "hakmem: no snapshot: over a limit, or no memory"))?;
                Some(ImagePtr(image, host))
            }
        };
        Ok(Snapshot { image, globals, tables, module: self.module.clone() })
    }

    /// The guest is as it was when the snapshot was taken. Refused, with nothing changed, where it cannot be: the
    /// snapshot is of another module, or a memory or a table has grown, which wasmtime would not learn.
    pub fn reset(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        self.go_back(snapshot, sys::hak_wasm_memory_reset)
    }

    /// As [`reset`](Guest::reset), for a guest that waits for its next request: if it waits for one to two periods of
    /// decay, [`Host::tick`] gives the pages of its memory back. [`store`](Guest::store) ends the rest: nobody
    /// writes by a pointer into the memory before that.
    pub fn rest(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        self.go_back(snapshot, sys::hak_wasm_memory_rest)?;
        self.rests = snapshot.image.is_some();
        Ok(())
    }

    fn go_back(&mut self, snapshot: &Snapshot, back: Back) -> Result<(), Error> {
        self.store();
        if !Module::same(&self.module, &snapshot.module) {
            return Err(Error::new(Reason::Reset, "hakmem: the snapshot is of another module"));
        }
        let grown =
            self.tables.iter().zip(&snapshot.tables).any(|(table, then)| table.size(&self.store) != then.len() as u64);
        if grown {
            return Err(Error::new(Reason::Reset, "hakmem: a table has grown, and cannot become smaller"));
        }
        if let (Some(image), Some(memory)) = (&snapshot.image, self.memory) {
            let (host, base) = (self.tenant().host().as_ptr(), memory.data_ptr(&self.store));
            // SAFETY: the image is of the same host as the memory, which the module's engine belongs to, or refused.
            unsafe {
                if sys::hak_wasm_image_size(image.0.as_ptr()) != memory.data_size(&self.store) {
                    return Err(Error::new(Reason::Reset, "hakmem: the memory has grown, and cannot become smaller"));
                }
                if back(host, base.cast(), image.0.as_ptr()) != 0 {
                    return Err(Error::new(Reason::Memory, "hakmem: no memory for the reset"));
                }
            }
        }
        for (global, value) in self.globals.iter().zip(&snapshot.globals) {
            global.set(&mut self.store, *value)?;
        }
        for (table, then) in self.tables.iter().zip(&snapshot.tables) {
            for (at, number) in then.iter().enumerate() {
                let wanted = number.checked_sub(1).map(|n| self.functions[n]);
                let now = table.get(&mut self.store, at as u64);
                let now = now.as_ref().and_then(Ref::as_func).flatten().map(|f| f.to_raw(&mut self.store));
                if now != wanted.map(|f| f.to_raw(&mut self.store)) {
                    table.set(&mut self.store, at as u64, Ref::Func(wanted))?;
                }
            }
        }
        Ok(())
    }
}
