//! What a session's shell is given at its start and leaves at its end.

use std::sync::{Mutex, PoisonError};

use abi::Errno;

/// The host's first byte: the caller chose the directory of this call.
const DIRECTORY_IS_GIVEN: u8 = 1;

/// The state of a session while one of its calls runs. Only the call's first process may touch it.
#[derive(Debug)]
pub(crate) struct KeptState {
    given: Vec<u8>,
    left: Mutex<Option<Vec<u8>>>,
    limit: u32,
}

impl KeptState {
    /// What the last call left, if there was one; at most `limit` bytes may be left in turn.
    pub(crate) fn new(last: Option<&[u8]>, directory_is_given: bool, limit: u64) -> Self {
        let mut given = vec![if directory_is_given { DIRECTORY_IS_GIVEN } else { 0 }];
        given.extend_from_slice(last.unwrap_or_default());
        Self { given, left: Mutex::default(), limit: u32::try_from(limit).unwrap_or(u32::MAX) }
    }

    /// What the shell begins with; nothing once a state was left: a program that takes its place goes on without a session.
    pub(crate) fn given(&self) -> Option<&[u8]> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).is_none().then_some(&self.given)
    }

    /// How much may be left, or why not.
    pub(crate) fn check(&self, length: u32) -> Result<u32, Errno> {
        if length > self.limit { Err(Errno::TOOBIG) } else { Ok(self.limit) }
    }

    /// Leaves a state.
    pub(crate) fn leave(&self, state: Vec<u8>) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }

    /// What was left.
    pub(crate) fn into_left(self) -> Option<Vec<u8>> {
        self.left.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
