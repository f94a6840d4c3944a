//! Access decisions. One function decides, and only the view calls it.
//!
//! The permission bits of directories are checked when their rows are read (`Transaction::obey_modes`), because checking them
//! here would cost a row for each name of a path. The rules of policies for a path are evaluated by `rules.rs` and cached by
//! `guard.rs`.

mod binding;
mod guard;
mod rules;

use presets::Access;
use sqlite_fs::FsError;

pub(crate) use binding::Binding;
pub(crate) use guard::Guard;

/// The caller of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Principal {
    /// The embedding program: permission bits do not apply to it.
    Embedder,
    /// A program in the sandbox. Its user owns everything there, so the owner's bits apply.
    Guest,
}

/// The location of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Whether it is in the database, or in an overlay; not in the fixed world or a read-only mount.
    pub(super) writable: bool,
    /// Whether something is mounted there, or below.
    pub(super) pinned: bool,
    /// The access that rules allow.
    pub(super) access: Access,
}

impl Place {
    /// A location where only a rule can forbid anything.
    const FREE: Self = Self { writable: true, pinned: false, access: Access::Write };
}

/// The requested operation.
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
        /// Only for adding at its end.
        grow: bool,
    },
    /// Create a name that is unused, as far as the caller can see.
    Create,
    /// Put a file at a name, replacing an existing one.
    Replace,
    /// Add to the end of a file.
    Grow,
    /// Change a file, its metadata, or the names in a directory.
    Change,
    /// Remove a name, move it, or replace it by another file.
    Displace,
}

/// Decides whether an operation is allowed.
///
/// # Errors
///
/// Returns [`FsError::ReadOnly`], [`FsError::Access`], [`FsError::NotPermitted`] or [`FsError::Busy`] if it is not, and
/// [`FsError::NoEntry`] if the path does not exist for the caller. A hidden name is never reported as existing: creating it fails
/// whether or not it exists.
pub(super) fn decide(principal: Principal, place: Place, operation: Operation) -> Result<(), FsError> {
    match (operation, place.access) {
        (Operation::Create | Operation::Replace, Access::Hidden | Access::Read) => return Err(FsError::Access),
        (_, Access::Hidden) => return Err(FsError::NoEntry),
        (Operation::Open { write: true, .. } | Operation::Grow | Operation::Change | Operation::Displace, Access::Read) => {
            return Err(FsError::Access);
        }
        (Operation::Open { write: true, grow: false, .. }, Access::Append)
        | (Operation::Change | Operation::Displace | Operation::Replace, Access::Append) => return Err(FsError::NotPermitted),
        _ => {}
    }
    match operation {
        Operation::Open { mode, read, write, .. } => {
            let is_denied = (read && mode & 0o400 == 0) || (write && mode & 0o200 == 0);
            if principal == Principal::Guest && is_denied { Err(FsError::Access) } else { Ok(()) }
        }
        Operation::Displace if place.pinned => Err(FsError::Busy),
        _ if !place.writable => Err(FsError::ReadOnly),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDINARY: Place = Place::FREE;

    #[test]
    fn permission_bits_apply_only_to_guests() {
        let open = |mode, read, write| Operation::Open { mode, read, write, grow: false };
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
    fn only_writable_paths_change_and_pinned_ones_stay() {
        let check = |writable, pinned, change, displace| {
            let place = Place { writable, pinned, ..Place::FREE };
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

    // T-POL-01, T-POL-02.
    #[test]
    fn each_access_level_allows_its_operations() {
        let open = |write, grow| Operation::Open { mode: 0o777, read: true, write, grow };
        let operations = [
            open(false, false),
            open(true, true),
            open(true, false),
            Operation::Create,
            Operation::Grow,
            Operation::Replace,
            Operation::Change,
            Operation::Displace,
        ];
        let check = |access, expected: [Result<(), FsError>; 8]| {
            for principal in [Principal::Guest, Principal::Embedder] {
                let place = Place { access, ..Place::FREE };
                assert_eq!(operations.map(|operation| decide(principal, place, operation)), expected, "{access:?}");
            }
        };
        let (no, never, gone) = (Err(FsError::Access), Err(FsError::NotPermitted), Err(FsError::NoEntry));
        check(Access::Write, [Ok(()); 8]);
        check(Access::Append, [Ok(()), Ok(()), never, Ok(()), Ok(()), never, never, never]);
        check(Access::Read, [Ok(()), no, no, no, no, no, no, no]);
        check(Access::Hidden, [gone, gone, gone, no, gone, no, gone, gone]);
    }
}
