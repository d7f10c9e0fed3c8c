//! A store and an instance for a tenant, and the way back to what they were.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use hakmem_sys as sys;
use wasmtime::{Extern, Global, Instance, Linker, Memory, Module, Mutability, ResourceLimiter, Store, Table, Val};

use crate::error::{Error, Reason};
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
}

impl<T> State<T> {
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
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

/// What a guest was like: its memory, its exported globals that can change, and the sizes of its exported tables. For
/// all guests of the same module.
pub struct Snapshot {
    image: Option<ImagePtr>,
    globals: Vec<(usize, Val)>,
    tables: Vec<u64>,
    module: Module,
}

/// An instance in a store of its own, paid by a tenant. Its drop frees all of it.
pub struct Guest<T: 'static> {
    store: Store<State<T>>,
    instance: Instance,
    module: Module,
    memories: Vec<Memory>,
    globals: Vec<Global>,
    tables: Vec<Table>,
    rests: bool,
}

impl Tenant {
    fn store<T: Send + 'static>(&self, module: &Module, data: T) -> Result<Store<State<T>>, Error> {
        self.admit()?;
        let state = State { data, tenant: self.clone(), charged: 0, refused: false };
        let mut store = Store::new(module.engine(), state);
        store.limiter(|state| state);
        Ok(store)
    }

    /// A store and an instance. Its start function runs.
    pub fn guest<T: Send + 'static>(
        &self,
        linker: &Linker<State<T>>,
        module: &Module,
        data: T,
    ) -> Result<Guest<T>, Error> {
        let mut store = self.store(module, data)?;
        let made = self.enter(|| linker.instantiate(&mut store, module));
        Guest::new(store, made, module)
    }

    /// The same for engines with async calls.
    pub async fn guest_async<T: Send + 'static>(
        &self,
        linker: &Linker<State<T>>,
        module: &Module,
        data: T,
    ) -> Result<Guest<T>, Error> {
        let mut store = self.store(module, data)?;
        let made = Entered { tenant: self.clone(), future: linker.instantiate_async(&mut store, module) }.await;
        Guest::new(store, made, module)
    }
}

impl<T: Send + 'static> Guest<T> {
    fn new(mut store: Store<State<T>>, made: wasmtime::Result<Instance>, module: &Module) -> Result<Guest<T>, Error> {
        let instance = match made {
            Ok(instance) => instance,
            Err(_) if store.data().refused => {
                return Err(Error::new(Reason::Memory, "hakmem: the tables do not fit into the tenant's limit"));
            }
            Err(error) => return Err(error.into()),
        };
        let exports: Vec<Extern> = instance.exports(&mut store).map(|export| export.into_extern()).collect();
        let (mut memories, mut globals, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        for export in exports {
            match export {
                Extern::Memory(memory) => memories.push(memory),
                Extern::Global(global) => globals.push(global),
                Extern::Table(table) => tables.push(table),
                _ => (),
            }
        }
        globals.retain(|global| global.ty(&store).mutability() == Mutability::Var);
        Ok(Guest { store, instance, module: module.clone(), memories, globals, tables, rests: false })
    }

    /// For every use of the guest. Ends its [rest](Guest::rest).
    pub fn store(&mut self) -> &mut Store<State<T>> {
        if std::mem::take(&mut self.rests) {
            if let Some(memory) = self.memories.first() {
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

    /// What the guest is like now. The caller vouches that the module changes no global that is not exported, and no
    /// element of a table: those are not in it. Modules of C and Rust without `wasm-bindgen` export neither: build them
    /// with `--export=__stack_pointer`, and let calls return rather than trap before a reset otherwise.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error> {
        if self.memories.len() > 1 {
            return Err(Error::new(Reason::Reset, "hakmem: a guest with several memories cannot be reset"));
        }
        let mut globals = Vec::new();
        for (at, global) in self.globals.iter().enumerate() {
            let value = global.get(&mut self.store);
            if value.ref_().is_some() {
                return Err(Error::new(Reason::Reset, "hakmem: a global with a reference cannot be reset"));
            }
            globals.push((at, value));
        }
        let tables = self.tables.iter().map(|table| table.size(&self.store)).collect();
        let image = match self.memories.first() {
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
        let grown = self.tables.iter().zip(&snapshot.tables).any(|(table, size)| table.size(&self.store) != *size);
        if grown {
            return Err(Error::new(Reason::Reset, "hakmem: a table has grown, and cannot become smaller"));
        }
        if let (Some(image), Some(memory)) = (&snapshot.image, self.memories.first()) {
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
        for (at, value) in &snapshot.globals {
            self.globals[*at].set(&mut self.store, *value).map_err(Error::from)?;
        }
        Ok(())
    }
}
