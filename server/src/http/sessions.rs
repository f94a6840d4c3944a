//! Sessions: an ID issued when a client initializes, which lets it cancel its own requests. It grants nothing else: every request
//! sends the key, so a stolen ID is worthless (T-NET-03).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, StatusCode};

use super::key::random_hex;
use super::{Refusal, SESSION_HEADER};

/// Maximum number of sessions; the one that was idle longest is evicted.
const MOST: usize = 256;
/// How long a session may be idle.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// The sessions, with the time of their last request.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Instant>>);

/// Returns the session ID of a request, if it has one.
pub(super) fn named_in(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let name = HeaderName::from_static(SESSION_HEADER);
    if !headers.contains_key(&name) {
        return Ok(None);
    }
    match super::guard::only(headers, &name) {
        Some(id) if id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => Ok(Some(id.to_owned())),
        _ => Err(unknown()),
    }
}

fn unknown() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "unknown session: initialize again")
}

impl Sessions {
    fn known(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.known_at(Instant::now())
    }

    fn known_at(&self, now: Instant) -> MutexGuard<'_, HashMap<String, Instant>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, last| now.saturating_duration_since(*last) < IDLE);
        known
    }

    /// Records a request of a session; only IDs issued by this server are known.
    pub(super) fn touch(&self, id: &str) -> Result<(), Refusal> {
        *self.known().get_mut(id).ok_or_else(unknown)? = Instant::now();
        Ok(())
    }

    /// Reserves an ID for a session that may start.
    pub(super) fn reserve(&self) -> Result<Reserved<'_>, Refusal> {
        let id = random_hex::<16>().map_err(|_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "cannot get random bytes"))?;
        Ok(Reserved { sessions: self, id })
    }

    /// Ends a session.
    pub(super) fn end(&self, id: &str) {
        self.known().remove(id);
    }
}

/// A session that has not started; dropping it discards the ID.
pub(super) struct Reserved<'a> {
    sessions: &'a Sessions,
    id: String,
}

impl Reserved<'_> {
    /// Returns the ID.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Starts the session.
    pub(super) fn keep(self) {
        let mut known = self.sessions.known();
        if known.len() >= MOST
            && let Some(quietest) = known.iter().min_by_key(|(_, last)| **last).map(|(id, _)| id.clone())
        {
            known.remove(&quietest);
        }
        known.insert(self.id, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // T-NET-03.
    #[test]
    fn only_issued_ids_are_sessions() {
        let sessions = Sessions::default();
        let reserved = sessions.reserve().unwrap();
        let id = reserved.id().to_owned();
        assert!(id.len() == 32 && sessions.touch(&id).is_err(), "it has not begun");
        reserved.keep();
        assert!(sessions.touch(&id).is_ok());
        assert!(sessions.touch(&"0".repeat(32)).is_err());
        sessions.end(&id);
        assert!(sessions.touch(&id).is_err());
    }

    // T-NET-03.
    #[test]
    fn a_session_ends_when_it_is_idle() {
        let sessions = Sessions::default();
        let reserved = sessions.reserve().unwrap();
        let id = reserved.id().to_owned();
        reserved.keep();
        assert!(sessions.known_at(Instant::now() + IDLE - Duration::from_secs(60)).contains_key(&id));
        assert!(!sessions.known_at(Instant::now() + IDLE).contains_key(&id));
        assert!(sessions.touch(&id).is_err());
    }

    // T-NET-03.
    #[test]
    fn the_session_that_was_idle_longest_makes_room() {
        let sessions = Sessions::default();
        let ids: Vec<String> = (0..MOST)
            .map(|_| {
                let reserved = sessions.reserve().unwrap();
                let id = reserved.id().to_owned();
                reserved.keep();
                id
            })
            .collect();
        sessions.touch(&ids[0]).unwrap();
        sessions.reserve().unwrap().keep();
        assert!(sessions.touch(&ids[0]).is_ok() && sessions.touch(&ids[1]).is_err());
    }

    // T-NET-03.
    #[test]
    fn the_table_of_sessions_is_bounded() {
        let sessions = Sessions::default();
        for _ in 0..MOST + 10 {
            sessions.reserve().unwrap().keep();
        }
        assert_eq!(sessions.known().len(), MOST);
    }
}
