//! Load limits of a server: the number of concurrent requests and their total size (T-NET-04).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of requests, whether running or queued.
const REQUESTS: usize = 64;
/// Maximum total weight in kilobytes: four of the largest messages.
const KILOBYTES: usize = 4 * crate::message::LARGEST / 1024;

/// The remaining capacity. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    requests: Arc<Semaphore>,
    kilobytes: Arc<Semaphore>,
}

/// An accepted request, until its last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    _places: Arc<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl Default for Load {
    fn default() -> Self {
        Self { requests: Arc::new(Semaphore::new(REQUESTS)), kilobytes: Arc::new(Semaphore::new(KILOBYTES)) }
    }
}

impl Load {
    /// Accepts a request of this weight in bytes; `None` if the capacity is exhausted.
    pub(crate) fn take(&self, bytes: usize) -> Option<Taken> {
        let kilobytes = u32::try_from(bytes.div_ceil(1024)).ok()?;
        let request = Arc::clone(&self.requests).try_acquire_owned().ok()?;
        let weight = Arc::clone(&self.kilobytes).try_acquire_many_owned(kilobytes).ok()?;
        Some(Taken { _places: Arc::new((request, weight)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // T-NET-04.
    #[test]
    fn requests_are_bounded_in_number_and_in_weight() {
        let load = Load::default();
        let many: Vec<_> = (0..REQUESTS).map(|_| load.take(10).unwrap()).collect();
        assert!(load.take(0).is_none());
        drop(many);
        let heavy: Vec<_> = (0..4).map(|_| load.take(crate::message::LARGEST).unwrap()).collect();
        assert!(load.take(1).is_none());
        let kept = heavy.first().cloned();
        drop(heavy);
        assert!(load.take(3 * crate::message::LARGEST).is_some() && load.take(4 * crate::message::LARGEST).is_none());
        drop(kept);
        assert!(load.take(4 * crate::message::LARGEST).is_some());
    }
}
