//! Keys and sessions of versions: which of them differ, and restoring them.

use sqlite_fs::{ChangedValues, FsError, Reader, Transaction};

use super::compare::{DifferenceKind, ValueDifference, ValueKind};
use crate::{Error, session};

// The keys and sessions that differ between two states; `None` if another program may have changed them unseen.
pub(super) fn changed_values(
    range: (&Reader, Option<i64>),
    from: &Reader,
    to: &Reader,
) -> Result<Option<Vec<ValueDifference>>, Error> {
    match values_between(range, from, to) {
        Err(error) if error.fs_error() == Some(FsError::Unknown) => Ok(None),
        found => found.map(Some),
    }
}

pub(super) fn unknown_values(reference: &str) -> Error {
    let reason = "another program wrote to the file since then; name the paths to restore, such as `/`";
    Error::Invalid(format!("cannot restore the keys of version `{reference}`: {reason}"))
}

fn values_between(range: (&Reader, Option<i64>), from: &Reader, to: &Reader) -> Result<Vec<ValueDifference>, Error> {
    differing_values(candidates(range, from, to)?, from, to)
}

pub(super) fn differing_values(mut changed: ChangedValues, from: &Reader, to: &Reader) -> Result<Vec<ValueDifference>, Error> {
    changed.keys.sort();
    changed.sessions.sort();
    changed.keys.dedup();
    changed.sessions.dedup();
    let mut found = Vec::new();
    let mut add = |value, name, is_before: bool, is_after: bool| {
        let kind = match (is_before, is_after) {
            (false, _) => DifferenceKind::Added,
            (true, true) => DifferenceKind::Modified,
            (true, false) => DifferenceKind::Deleted,
        };
        found.push(ValueDifference { value, name, kind });
    };
    for key in changed.keys {
        let (old, new) = (from.get(&key)?, to.get(&key)?);
        let content = |value: &Option<sqlite_fs::Value>| value.as_ref().map(|value| (value.json.clone(), value.secret));
        if content(&old) != content(&new) {
            add(ValueKind::Key, key, old.is_some(), new.is_some());
        }
    }
    for name in changed.sessions {
        let parts = |reader: &Reader| -> Result<Vec<Vec<u8>>, Error> {
            let parts = [session::SHELL, session::PYTHON].map(|part| reader.session(&name, part));
            Ok(parts.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        };
        let (old, new) = (parts(from)?, parts(to)?);
        if old != new {
            add(ValueKind::Session, name, !old.is_empty(), !new.is_empty());
        }
    }
    Ok(found)
}

// The keys and sessions that changed after a version up to another one, or all of them if another program wrote to the file.
fn candidates((older, until): (&Reader, Option<i64>), one: &Reader, other: &Reader) -> Result<ChangedValues, Error> {
    Ok(match older.changed_values(until)? {
        Some(changed) => changed,
        None => ChangedValues {
            keys: one.keys("")?.into_iter().chain(other.keys("")?).collect(),
            sessions: one.sessions()?.into_iter().chain(other.sessions()?).collect(),
        },
    })
}

// Restores keys and sessions: those that changed since, or all of them if another program wrote to the file.
pub(super) fn restore_values(transaction: &Transaction, now: &Reader, then: &Reader) -> Result<(), Error> {
    let changed = candidates((then, None), now, then)?;
    let kv = transaction.kv();
    for key in &changed.keys {
        let (old, present) = (then.get(key)?, kv.get(key)?);
        let Some(old) = old else {
            if present.is_some() {
                kv.delete(key)?;
            }
            continue;
        };
        if present.as_ref().is_none_or(|value| value.json != old.json) {
            kv.set(key, &old.json)?;
        }
        if present.is_none_or(|value| value.secret != old.secret) {
            kv.set_secret(key, old.secret)?;
        }
    }
    let sessions = transaction.sessions();
    for name in &changed.sessions {
        let mut parts = Vec::new();
        for part in [session::SHELL, session::PYTHON] {
            parts.push((part, then.session(name, part)?, sessions.get(name, part)?));
        }
        // A part that did not exist goes, and only a whole session can be removed.
        if parts.iter().any(|(_, old, present)| old.is_none() && present.is_some()) {
            sessions.remove(name)?;
        }
        for (part, old, _) in parts {
            if let Some(old) = old {
                sessions.set(name, part, &old)?;
            }
        }
    }
    Ok(())
}
