//! Connection slots: few and short-lived ones for unauthenticated clients, others for authenticated ones (T-NET-04, T-NET-08).
//!
//! An unauthenticated client never waits for a slot: it evicts another one, the oldest of the address with the most connections.
//! Idle connections therefore cannot lock out a client with the key, even if all clients share one address.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Maximum number of unauthenticated connections.
const STRANGERS: usize = 64;
/// Maximum number of unauthenticated connections from one address.
const STRANGERS_OF_ADDRESS: usize = 32;
/// Maximum number of authenticated connections.
const KNOWN: usize = 64;

/// The same where many clients are expected.
const KNOWN_OF_MANY: usize = 4096;
/// Maximum number of them that one tenant has.
const KNOWN_OF_TENANT: usize = 1024;

/// All connections.
#[derive(Clone)]
pub(crate) struct Places(Arc<Mutex<Table>>);

struct Table {
    most_known: usize,
    most_of_tenant: usize,
    last: u64,
    /// In order of arrival.
    strangers: BTreeMap<u64, Stranger>,
    known: usize,
    /// Those of `known` by their tenants.
    of_tenant: HashMap<String, usize>,
}

struct Stranger {
    address: IpAddr,
    evicted: CancellationToken,
}

/// The slot of a connection, until it is dropped.
pub(crate) struct Place {
    places: Places,
    number: u64,
    state: Mutex<State>,
    evicted: CancellationToken,
}

#[derive(Clone, PartialEq, Eq)]
enum State {
    Stranger,
    /// Authenticated, first as this tenant.
    Known(String),
}

impl Default for Places {
    fn default() -> Self {
        Self::new(KNOWN, KNOWN)
    }
}

impl Places {
    fn new(most_known: usize, most_of_tenant: usize) -> Self {
        let (strangers, of_tenant) = (BTreeMap::new(), HashMap::new());
        Self(Arc::new(Mutex::new(Table { most_known, most_of_tenant, last: 0, strangers, known: 0, of_tenant })))
    }

    /// Places for the clients of many tenants.
    pub(crate) fn for_many() -> Self {
        Self::new(KNOWN_OF_MANY, KNOWN_OF_TENANT)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates a slot for a new connection.
    pub(crate) fn enter(&self, address: IpAddr) -> Place {
        let mut table = self.table();
        table.make_room(address);
        table.last += 1;
        let (number, evicted) = (table.last, CancellationToken::new());
        table.strangers.insert(number, Stranger { address, evicted: evicted.clone() });
        Place { places: self.clone(), number, state: Mutex::new(State::Stranger), evicted }
    }
}

impl Table {
    fn make_room(&mut self, address: IpAddr) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        self.strangers.values().for_each(|stranger| *counts.entry(stranger.address).or_default() += 1);
        let crowded = if counts.get(&address).is_some_and(|&count| count >= STRANGERS_OF_ADDRESS) {
            Some(address)
        } else if self.strangers.len() >= STRANGERS {
            counts.into_iter().max_by_key(|&(_, count)| count).map(|(crowded, _)| crowded)
        } else {
            None
        };
        let oldest = crowded.and_then(|crowded| {
            self.strangers.iter().find(|(_, stranger)| stranger.address == crowded).map(|(&number, _)| number)
        });
        if let Some(stranger) = oldest.and_then(|number| self.strangers.remove(&number)) {
            stranger.evicted.cancel();
        }
    }
}

impl Place {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this connection is authenticated.
    pub(crate) fn is_known(&self) -> bool {
        matches!(*self.state(), State::Known(_))
    }

    /// Moves an authenticated connection to its own slots. Returns `false` if all of them, or all that the tenant may have, are in use.
    pub(crate) fn admit(&self, tenant: &str) -> bool {
        let mut state = self.state();
        if matches!(*state, State::Known(_)) {
            return true;
        }
        let mut table = self.places.table();
        let own = table.of_tenant.get(tenant).copied().unwrap_or(0);
        if table.known >= table.most_known || own >= table.most_of_tenant {
            return false;
        }
        table.known += 1;
        table.of_tenant.insert(tenant.to_owned(), own + 1);
        table.strangers.remove(&self.number);
        *state = State::Known(tenant.to_owned());
        true
    }

    /// Waits until another connection evicts this one.
    pub(crate) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.places.table();
        match &*self.state.get_mut().unwrap_or_else(PoisonError::into_inner) {
            State::Stranger => drop(table.strangers.remove(&self.number)),
            State::Known(tenant) => {
                table.known -= 1;
                match table.of_tenant.get_mut(tenant) {
                    Some(count) if *count > 1 => *count -= 1,
                    _ => drop(table.of_tenant.remove(tenant)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn other(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 1, number])
    }

    fn is_evicted(place: &Place) -> bool {
        place.evicted.is_cancelled()
    }

    // T-NET-08.
    #[test]
    fn strangers_of_one_address_push_out_their_own_oldest() {
        let places = Places::default();
        let quiet = places.enter(other(1));
        let many: Vec<Place> = (0..STRANGERS_OF_ADDRESS + 5).map(|_| places.enter(ONE)).collect();
        assert!(!is_evicted(&quiet));
        assert_eq!(many.iter().map(is_evicted).collect::<Vec<_>>(), (0..many.len()).map(|at| at < 5).collect::<Vec<_>>());
        assert_eq!(places.table().strangers.len(), STRANGERS_OF_ADDRESS + 1);
    }

    // T-NET-08.
    #[test]
    fn strangers_of_many_addresses_push_out_the_most_crowded() {
        let places = Places::default();
        let crowd: Vec<Place> = (0..STRANGERS_OF_ADDRESS).map(|_| places.enter(ONE)).collect();
        let others: Vec<Place> = (0..100).map(|number| places.enter(other(number))).collect();
        assert_eq!(places.table().strangers.len(), STRANGERS);
        assert!(crowd.iter().take(30).all(is_evicted));
        assert!(!others.last().is_none_or(is_evicted));
    }

    // T-NET-08.
    #[test]
    fn a_connection_that_has_shown_the_key_is_never_pushed_out() {
        let places = Places::default();
        let client = places.enter(ONE);
        assert!(!client.is_known() && client.admit("a") && client.is_known() && client.admit("a"));
        let many: Vec<Place> = (0..500).map(|_| places.enter(ONE)).collect();
        assert!(!is_evicted(&client));
        let known: Vec<&Place> = many.iter().rev().take(KNOWN).filter(|place| place.admit("a")).collect();
        assert_eq!(known.len(), KNOWN - 1, "one place is taken");
        drop(client);
        assert!(places.enter(ONE).admit("a"));
        drop(many);
        let table = places.table();
        assert_eq!((table.known, table.strangers.len()), (0, 0));
    }

    // T-NET-08.
    #[test]
    fn one_tenant_leaves_connections_to_the_others() {
        let places = Places::new(4, 2);
        let own: Vec<Place> = (0..3).map(|_| places.enter(ONE)).collect();
        assert_eq!(own.iter().map(|place| place.admit("a")).collect::<Vec<_>>(), [true, true, false]);
        let others: Vec<Place> = ["b", "b", "b", "c"]
            .into_iter()
            .map(|tenant| {
                let place = places.enter(other(1));
                place.admit(tenant);
                place
            })
            .collect();
        assert_eq!(others.iter().map(Place::is_known).collect::<Vec<_>>(), [true, true, false, false], "four are all there are");
        drop(own);
        assert!(places.enter(ONE).admit("a"));
        drop(others);
        assert!(places.table().of_tenant.is_empty());
    }
}
