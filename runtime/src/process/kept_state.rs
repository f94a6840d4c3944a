//! The state of a session's shell at its start and at its end.

use std::sync::{Mutex, PoisonError};

use abi::Errno;

/// The host's first byte: the caller selected the directory of this call.
const DIRECTORY_IS_GIVEN: u8 = 1;

/// The state of a session during a call. Only the call's first process may access it.
#[derive(Debug)]
pub(crate) struct KeptState {
    given: Vec<u8>,
    left: Mutex<Option<Vec<u8>>>,
    limit: u32,
}

impl KeptState {
    /// Creates the state with the result of the last call, if any; the new state may have at most `limit` bytes.
    pub(crate) fn new(last: Option<&[u8]>, directory_is_given: bool, limit: u64) -> Self {
        let mut given = vec![if directory_is_given { DIRECTORY_IS_GIVEN } else { 0 }];
        given.extend_from_slice(last.unwrap_or_default());
        Self { given, left: Mutex::default(), limit: u32::try_from(limit).unwrap_or(u32::MAX) }
    }

    /// Returns the initial state of the shell; none after a state was stored, so that a program that replaces it continues
    /// without a session.
    pub(crate) fn given(&self) -> Option<&[u8]> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).is_none().then_some(&self.given)
    }

    /// Returns the maximum size of the new state, or an error.
    pub(crate) fn check(&self, length: u32) -> Result<u32, Errno> {
        if length > self.limit { Err(Errno::TOOBIG) } else { Ok(self.limit) }
    }

    /// Stores the new state.
    pub(crate) fn leave(&self, state: Vec<u8>) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }

    /// Returns the new state.
    pub(crate) fn into_left(self) -> Option<Vec<u8>> {
        self.left.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
