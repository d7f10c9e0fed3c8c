//! A server of tenants: each customer has its guests, its limits and its figures. One that takes all it can get is refused
//! what goes beyond its limits, and the others are served. A request may run for half a second.
//!
//!     cargo run --example server GUEST.cwasm [ADDRESS]
//!
//! GUEST.cwasm is what wasmtime compiled, with `Config::epoch_interruption`, of a module that `hakmem_wasmtime::expose`
//! returned.
//!
//!     POST /call/CUSTOMER/FUNCTION/NUMBER   calls the guest's function (i32) -> i32, or without either
//!     GET  /stats                           figures of all customers
//!
//! Each request has a guest in the state of the snapshot: an idle one that was reset after the request before, or a new
//! one. A guest that cannot be reset, because its memory grew, ends with its request.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::Router;
use hakmem_wasmtime::{Error, Guest, Host, Limits, Reason, Snapshot, Tenant};
use wasmtime::{Config, Linker, Module, Val};

const MIB: usize = 1 << 20;
/// Guests of a customer at once, each with a stack of 2 MiB, and how many wait for requests.
const GUESTS: usize = 4;
const IDLE: usize = 2;
const LIMITS: Limits = Limits { linear_bytes: 16 * MIB, instances: GUESTS };
const CUSTOMERS: usize = 1000;
/// How long a request may run, and after which time others have their turn.
const TIME: Duration = Duration::from_millis(500);
const TURN: Duration = Duration::from_millis(10);

type Answer = Result<String, (StatusCode, String)>;

struct Customer {
    tenant: Tenant,
    idle: Mutex<Vec<Guest<()>>>,
}

struct Server {
    host: Host,
    module: Module,
    linker: Linker<hakmem_wasmtime::State<()>>,
    snapshot: Snapshot,
    customers: Mutex<HashMap<String, Arc<Customer>>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a client is told of an error.
fn status(error: Error) -> (StatusCode, String) {
    let code = match error.reason() {
        Reason::Instances => StatusCode::SERVICE_UNAVAILABLE,
        Reason::Memory | Reason::Stack => StatusCode::INSUFFICIENT_STORAGE,
        Reason::Time => StatusCode::GATEWAY_TIMEOUT,
        Reason::Wasmtime => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (code, format!("{error}\n"))
}

async fn run(guest: &mut Guest<()>, function: &str, number: i32) -> Answer {
    let found = guest.instance().get_func(guest.store(), function);
    let found = found.filter(|_| !function.starts_with("hak:"));
    let f = found.ok_or_else(|| (StatusCode::NOT_FOUND, format!("no function {function}\n")))?;
    let kind = f.ty(guest.store());
    let (takes, gives) = (kind.params().len(), kind.results().len());
    let (arguments, mut results) = (vec![Val::I32(number); takes], vec![Val::I32(0); gives]);
    match f.call_async(guest.store(), &arguments, &mut results).await {
        Ok(()) => Ok(results.first().and_then(Val::i32).map_or("\n".into(), |value| format!("{value}\n"))),
        Err(error) => Err(status(error.into())),
    }
}

impl Server {
    fn customer(&self, name: &str) -> Result<Arc<Customer>, (StatusCode, String)> {
        let mut all = lock(&self.customers);
        if let Some(known) = all.get(name) {
            return Ok(known.clone());
        }
        if name.len() > 32 || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            return Err((StatusCode::BAD_REQUEST, "a name has up to 32 of a-z, 0-9 and -\n".into()));
        }
        if all.len() == CUSTOMERS {
            return Err((StatusCode::SERVICE_UNAVAILABLE, "there is no room for another customer\n".into()));
        }
        let tenant = self.host.tenant(name, LIMITS).map_err(status)?;
        tenant.limit_time(Some(TIME));
        let customer = Arc::new(Customer { tenant, idle: Mutex::new(Vec::new()) });
        all.insert(name.into(), customer.clone());
        Ok(customer)
    }

    /// An idle guest, or a new one.
    async fn guest(&self, customer: &Customer) -> Result<Guest<()>, Error> {
        let idle = lock(&customer.idle).pop();
        if let Some(guest) = idle {
            return Ok(guest);
        }
        let mut guest = customer.tenant.guest_async(&self.linker, &self.module, ()).await?;
        guest.reset(&self.snapshot)?;
        Ok(guest)
    }
}

async fn call(State(server): State<Arc<Server>>, path: Path<(String, String, i32)>) -> Answer {
    let Path((name, function, number)) = path;
    let customer = server.customer(&name)?;
    let mut guest = server.guest(&customer).await.map_err(status)?;
    let answer = customer.tenant.run(run(&mut guest, &function, number)).await;
    // Pages of guests that wait go back at a tick.
    if guest.rest(&server.snapshot).is_ok() {
        let mut idle = lock(&customer.idle);
        if idle.len() < IDLE {
            idle.push(guest);
        }
    }
    answer
}

async fn stats(State(server): State<Arc<Server>>) -> String {
    let customers: Vec<_> = lock(&server.customers).values().cloned().collect();
    let mut text = String::new();
    for customer in customers {
        let (tenant, stats) = (&customer.tenant, customer.tenant.stats());
        let _ = writeln!(
            text,
            "{} linear_bytes={} peak={} instances={} resident={} proportional={} refused={}",
            tenant.name(),
            stats.linear_bytes,
            stats.linear_peak,
            stats.instances,
            tenant.resident(),
            tenant.proportional(),
            stats.linear_refused + stats.instances_refused,
        );
    }
    text
}

async fn serve(server: Arc<Server>, address: &str) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let ticking = server.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            ticking.host.tick();
        }
    });
    let routes = Router::new().route("/call/{customer}/{function}/{number}", post(call)).route("/stats", get(stats));
    axum::serve(listener, routes.with_state(server)).await
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: server GUEST.cwasm [ADDRESS]")?;
    let address = arguments.next().unwrap_or("127.0.0.1:0".into());
    let host = Host::new(Limits { linear_bytes: 1024 * MIB, instances: 0 })?;
    let engine = host.timed_engine(&mut Config::new(), TURN)?;
    // SAFETY: the operator answers for the file: what wasmtime compiled, unchanged.
    let module = unsafe { Module::deserialize_file(&engine, path)? };
    let linker = Linker::new(&engine);
    // The guest that all others are like. The server pays for it.
    let own = host.tenant("server", Limits::default())?;
    let snapshot = own.guest(&linker, &module, ())?.snapshot()?;
    let server = Arc::new(Server { host, module, linker, snapshot, customers: Mutex::default() });
    // New requests are looked for after each turn of a guest, and not after 61.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).event_interval(1).enable_all().build()?;
    Ok(runtime.block_on(serve(server, &address))?)
}
