//! A pool of memory as DataFusion's `MemoryPool`: operators announce what they are going to use. What they announce is
//! an estimate, and much is never announced. This pool also knows what really lives: that of a [`Scope`] in which the
//! query runs.
//!
//! ```ignore
//! impl datafusion_execution::memory_pool::MemoryPool for Truth {
//!     fn grow(&self, _: &MemoryReservation, additional: usize) {
//!         self.0.grow(additional)
//!     }
//!     fn shrink(&self, _: &MemoryReservation, less: usize) {
//!         self.0.shrink(less)
//!     }
//!     fn try_grow(&self, _: &MemoryReservation, additional: usize) -> Result<()> {
//!         self.0.try_grow(additional).map_err(|over| DataFusionError::ResourcesExhausted(over.to_string()))
//!     }
//!     fn reserved(&self) -> usize {
//!         self.0.reserved()
//!     }
//! }
//! ```

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use hakmem::Scope;

/// A pool that a query's operators share. Nothing in it allocates.
pub struct ScopePool {
    scope: Scope,
    limit: usize,
    reserved: AtomicUsize,
}

/// What was refused, so that an operator can spill, or the query end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    pub additional: usize,
    pub reserved: usize,
    pub live: usize,
    pub limit: usize,
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Over { additional, reserved, live, limit } = self;
        write!(f, "{additional} bytes more are over {limit}: {reserved} are reserved, {live} in use")
    }
}

impl std::error::Error for Over {}

impl ScopePool {
    /// Of a scope, with a limit in bytes. Give the scope a hard limit above this one, for what nobody announces.
    pub fn new(scope: &Scope, limit: usize) -> ScopePool {
        ScopePool { scope: scope.clone(), limit, reserved: AtomicUsize::new(0) }
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// What operators have announced.
    pub fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// What counts against the limit: what was announced, or what lives if that is more. An operator announces before
    /// it allocates, so the sum of both would count everything twice.
    pub fn used(&self) -> usize {
        self.reserved().max(self.scope.live_bytes())
    }

    /// Cannot be refused.
    pub fn grow(&self, additional: usize) {
        self.reserved.fetch_add(additional, Ordering::Relaxed);
    }

    pub fn shrink(&self, less: usize) {
        self.reserved.fetch_sub(less, Ordering::Relaxed);
    }

    /// Refused, with nothing changed, if more would be used than the limit.
    pub fn try_grow(&self, additional: usize) -> Result<(), Over> {
        let live = self.scope.live_bytes();
        let fits = |reserved: usize| {
            let sum = reserved.max(live).checked_add(additional)?;
            (sum <= self.limit).then(|| reserved + additional)
        };
        self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map(|_| ()).map_err(|reserved| Over {
            additional,
            reserved,
            live,
            limit: self.limit,
        })
    }
}

impl fmt::Debug for ScopePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopePool({:?}: {} of {})", self.scope.name(), self.used(), self.limit)
    }
}
