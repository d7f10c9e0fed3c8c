//! What can go wrong, so that a host can tell a limit from a fault.

use std::fmt;

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Options or a name that cannot be.
    Options,
    /// The tenant, or a parent of it, has as many instances as it may.
    Instances,
    /// Over a limit on linear bytes, or no memory.
    Memory,
    /// The module exceeds what the tenant may have.
    Module,
    /// The guest has changed so that it cannot go back: its memory grew, or there is something that a reset cannot reach.
    Reset,
    /// wasmtime said so; the error has its own.
    Wasmtime,
}

/// An error with its reason.
#[derive(Debug)]
pub struct Error {
    reason: Reason,
    text: String,
    from: Option<wasmtime::Error>,
}

impl Error {
    pub(crate) fn new(reason: Reason, text: impl Into<String>) -> Error {
        Error { reason, text: text.into(), from: None }
    }

    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// What wasmtime said: a trap, for instance.
    pub fn into_wasmtime(self) -> Option<wasmtime::Error> {
        self.from
    }
}

impl From<wasmtime::Error> for Error {
    fn from(from: wasmtime::Error) -> Error {
        // What the memory creator refused comes back through wasmtime.
        let text = format!("{from:#}");
        let reason = if text.contains(crate::memory::REFUSED) { Reason::Memory } else { Reason::Wasmtime };
        Error { reason, text, from: Some(from) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
