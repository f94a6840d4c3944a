//! May this be done to that file? One function decides, and the view alone calls it.
//!
//! The permission bits of directories are checked where their rows are read (`Transaction::obey_modes`): a second look here would
//! cost a row for each name of a path. Rules on paths and views of principals will be further arguments of [`decide`].

use sqlite_fs::FsError;

/// Who wants something done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Principal {
    /// The embedding program: permission bits do not bind it.
    Embedder,
    /// A program in the sandbox. Its user owns everything there, so the owner's bits decide.
    Guest,
}

/// Where a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// In the database, or in a directory of the host under a layer of rows; not in the fixed world or in another such directory.
    pub(super) writable: bool,
    /// Something is mounted there, or below.
    pub(super) pinned: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Open a file of this mode.
    Open {
        /// Its permission bits.
        mode: u32,
        /// For reading.
        read: bool,
        /// For changing what is in it.
        write: bool,
    },
    /// Change what is in a file, its metadata, or the names in a directory.
    Change,
    /// Remove a name, move it, or put another file in its place.
    Displace,
}

/// Decides whether an operation may go on.
///
/// # Errors
///
/// Returns [`FsError::ReadOnly`], [`FsError::Access`] or [`FsError::Busy`] if it may not.
pub(super) fn decide(principal: Principal, place: Place, operation: Operation) -> Result<(), FsError> {
    match operation {
        Operation::Open { mode, read, write } => {
            let is_denied = (read && mode & 0o400 == 0) || (write && mode & 0o200 == 0);
            if principal == Principal::Guest && is_denied { Err(FsError::Access) } else { Ok(()) }
        }
        Operation::Displace if place.pinned => Err(FsError::Busy),
        Operation::Change | Operation::Displace if !place.writable => Err(FsError::ReadOnly),
        Operation::Change | Operation::Displace => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDINARY: Place = Place { writable: true, pinned: false };

    #[test]
    fn permission_bits_bind_guests_alone() {
        let open = |mode, read, write| Operation::Open { mode, read, write };
        let check = |operation, expected| {
            assert_eq!(decide(Principal::Guest, ORDINARY, operation), expected, "{operation:?}");
            assert_eq!(decide(Principal::Embedder, ORDINARY, operation), Ok(()), "{operation:?}");
        };
        check(open(0o400, true, false), Ok(()));
        check(open(0o200, true, false), Err(FsError::Access));
        check(open(0o200, false, true), Ok(()));
        check(open(0o444, true, true), Err(FsError::Access));
        check(open(0o000, false, false), Ok(()));
    }

    #[test]
    fn only_what_is_writable_changes_and_what_is_pinned_stays() {
        let check = |writable, pinned, change, displace| {
            let place = Place { writable, pinned };
            for principal in [Principal::Guest, Principal::Embedder] {
                assert_eq!(decide(principal, place, Operation::Change), change, "{place:?}");
                assert_eq!(decide(principal, place, Operation::Displace), displace, "{place:?}");
            }
        };
        check(true, false, Ok(()), Ok(()));
        check(false, false, Err(FsError::ReadOnly), Err(FsError::ReadOnly));
        check(true, true, Ok(()), Err(FsError::Busy));
        check(false, true, Err(FsError::ReadOnly), Err(FsError::Busy));
    }
}
