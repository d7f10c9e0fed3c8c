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
    /// The same for the stack of an async call, or the call was not run by [`Tenant::run`](crate::Tenant::run), so that
    /// nobody would pay for the stack.
    Stack,
    /// A call ran for as long as its tenant may: [`Tenant::limit_time`](crate::Tenant::limit_time).
    Time,
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

/// What this crate refuses to wasmtime, which gives it back as its own error.
#[derive(Debug)]
pub(crate) struct Refused(pub Reason, pub &'static str);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }
}

impl std::error::Error for Refused {}

impl From<wasmtime::Error> for Error {
    fn from(from: wasmtime::Error) -> Error {
        let text = format!("{from:#}");
        let reason = match from.downcast_ref::<Refused>() {
            Some(refused) => refused.0,
            // The memory creator can give back a text alone.
            None if text.contains(crate::memory::REFUSED) => Reason::Memory,
            None => Reason::Wasmtime,
        };
        Error { reason, text, from: Some(from) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
