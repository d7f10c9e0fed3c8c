//! Engines with a clock: their guests run in turns, and no longer than their tenants may.

use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use wasmtime::{Engine, EngineWeak, Store, UpdateDeadline};

use crate::error::{Error, Reason, Refused};
use crate::guest::State;

/// The clocks of a host's engines.
#[derive(Default)]
pub(crate) struct Clocks(RwLock<Vec<(EngineWeak, Duration)>>);

impl Clocks {
    /// Begins a thread that ends at the first tick after the engine is gone.
    pub fn begin(&self, engine: &Engine, period: Duration) -> Result<(), Error> {
        let ticking = engine.weak();
        let clock = move || loop {
            thread::sleep(period);
            match ticking.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        };
        let begun = thread::Builder::new().name("hakmem-clock".into()).spawn(clock);
        begun.map_err(|error| Error::new(Reason::Memory, format!("hakmem: no thread for a clock: {error}")))?;
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(engine, _)| engine.upgrade().is_some());
        all.push((engine.weak(), period));
        Ok(())
    }

    /// The period of the engine's clock, if it has one.
    pub fn period(&self, engine: &Engine) -> Option<Duration> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mine = |with: &EngineWeak| with.upgrade().is_some_and(|with| Engine::same(&with, engine));
        all.iter().find(|(with, _)| mine(with)).map(|&(_, period)| period)
    }
}

/// How long the call that a guest is in has run.
pub(crate) struct Timer {
    period: Duration,
    /// Ticks of the clock that came while the guest ran.
    ticks: u32,
    /// Whether other futures get the processor at each tick.
    yields: bool,
}

impl Timer {
    pub fn new(period: Duration, yields: bool) -> Timer {
        Timer { period, ticks: 0, yields }
    }

    pub fn again(&mut self) {
        self.ticks = 0;
    }

    /// At a tick, which may come at once after a call began: it runs for `most` at least.
    fn tick(&mut self, most: Option<Duration>) -> wasmtime::Result<UpdateDeadline> {
        self.ticks = self.ticks.saturating_add(1);
        if most.is_some_and(|most| self.period.saturating_mul(self.ticks - 1) >= most) {
            let text = "hakmem: the call has run for as long as its tenant may";
            return Err(wasmtime::Error::new(Refused(Reason::Time, text)));
        }
        Ok(if self.yields { UpdateDeadline::Yield(1) } else { UpdateDeadline::Continue(1) })
    }
}

/// The guest of this store, whose state has a timer, stops at each tick.
pub(crate) fn watch<T: Send + 'static>(store: &mut Store<State<T>>) {
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|mut store| {
        let state = store.data_mut();
        let most = state.tenant().time();
        state.timer().map_or(Ok(UpdateDeadline::Continue(1)), |timer| timer.tick(most))
    });
}
