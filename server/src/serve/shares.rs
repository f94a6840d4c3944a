//! Things of which each tenant has a bounded number at a time, counted until they are given back (T-NET-08).
//!
//! Independent of the resource that is counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The counts of all tenants. Clones share them.
#[derive(Clone)]
pub(crate) struct Shares {
    most: usize,
    most_of_tenant: usize,
    counts: Arc<Mutex<HashMap<String, usize>>>,
}

/// A tenant's share, until it is dropped.
pub(crate) struct Share {
    shares: Shares,
    tenant: String,
    count: usize,
}

impl Shares {
    /// Bounds the number of all tenants together, and that of each.
    pub(crate) fn new(most: usize, most_of_tenant: usize) -> Self {
        Self { most, most_of_tenant, counts: Arc::default() }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more of a tenant; `None` if it has as many as it may have, or if there are no more.
    pub(crate) fn take(&self, tenant: &str) -> Option<Share> {
        self.take_many(tenant, 1)
    }

    /// Counts several more: all of them or none.
    pub(crate) fn take_many(&self, tenant: &str, count: usize) -> Option<Share> {
        let mut counts = self.counts();
        let own = counts.get(tenant).copied().unwrap_or(0).saturating_add(count);
        // Few tenants have any at a time, so that the sum is short.
        let all = counts.values().fold(count, |all, own| all.saturating_add(*own));
        if own > self.most_of_tenant || all > self.most {
            return None;
        }
        counts.insert(tenant.to_owned(), own);
        Some(Share { shares: self.clone(), tenant: tenant.to_owned(), count })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.shares.counts();
        match counts.get_mut(&self.tenant) {
            Some(count) if *count > self.count => *count -= self.count,
            _ => drop(counts.remove(&self.tenant)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // T-NET-08.
    #[test]
    fn a_tenant_has_few_and_leaves_the_rest_to_others() {
        let shares = Shares::new(3, 2);
        let own = [shares.take("a"), shares.take("a")];
        assert!(own.iter().all(Option::is_some) && shares.take("a").is_none());
        let other = shares.take("b");
        assert!(other.is_some() && shares.take("c").is_none(), "three are all there are");
        drop(own);
        assert!(shares.take("a").is_some() && shares.take("c").is_some());
        drop(other);
        assert!(shares.counts().is_empty());
    }

    // T-NET-04.
    #[test]
    fn several_are_taken_and_given_back_together() {
        let shares = Shares::new(10, 6);
        let own = shares.take_many("a", 5);
        assert!(own.is_some() && shares.take_many("a", 2).is_none() && shares.take_many("b", 6).is_none());
        let more = [shares.take_many("a", 1), shares.take_many("a", 0), shares.take_many("b", 4)];
        assert!(more.iter().all(Option::is_some) && shares.take_many("b", usize::MAX).is_none());
        drop(own);
        assert!(shares.take_many("a", 6).is_none() && shares.take_many("a", 5).is_some());
        drop(more);
        assert!(shares.counts().is_empty());
    }
}
