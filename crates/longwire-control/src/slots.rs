//! Connection slots of an address. When all are taken, a new connection evicts the one that has
//! been idle longest.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, recv};
use tokio::sync::Notify;
use tokio::time::interval;

/// Period for checking whether a stream's client has closed its half.
const POLL_PERIOD: Duration = Duration::from_secs(1);

/// Slots of an address.
pub struct SlotTable {
    most: usize,
    started: Instant,
    taken: Mutex<TakenSlots>,
    /// Signals that a slot was freed, or that a connection became idle.
    freed: Notify,
}

#[derive(Default)]
struct TakenSlots {
    next: u64,
    slots: HashMap<u64, Arc<Slot>>,
}

/// Slot of a connection.
pub struct Slot {
    number: u64,
    places: Arc<SlotTable>,
    /// Time of the last byte in either direction, in nanoseconds since `started`.
    active_ns: AtomicU64,
    /// Number of its requests in progress.
    working: AtomicUsize,
    evicted: Notify,
    /// Duplicate of the connection's descriptor.
    socket: OnceLock<OwnedFd>,
}

/// A taken slot. Dropping it frees the slot.
pub struct SlotGuard(pub Arc<Slot>);

/// A request in progress, which protects its connection from eviction.
pub struct BusyGuard(Arc<Slot>);

impl SlotTable {
    /// Creates `most` slots.
    pub fn new(most: usize) -> Arc<SlotTable> {
        Arc::new(SlotTable {
            most,
            started: Instant::now(),
            taken: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Takes a slot. Waits only while all connections have a request in progress.
    pub async fn take(self: &Arc<SlotTable>) -> SlotGuard {
        loop {
            if let Some(held) = self.try_take() {
                return held;
            }
            self.freed.notified().await;
        }
    }

    fn try_take(self: &Arc<SlotTable>) -> Option<SlotGuard> {
        let mut taken = self.taken();
        if taken.slots.len() >= self.most {
            let idle = taken.slots.values().filter(|slot| !slot.is_working());
            let longest = idle.min_by_key(|slot| slot.active_ns.load(Ordering::Relaxed));
            let number = longest?.number;
            let slot = taken.slots.remove(&number)?;
            slot.evicted.notify_one();
        }
        taken.next += 1;
        let slot = Arc::new(Slot {
            number: taken.next,
            places: Arc::clone(self),
            active_ns: AtomicU64::new(self.now_ns()),
            working: AtomicUsize::new(0),
            evicted: Notify::new(),
            socket: OnceLock::new(),
        });
        taken.slots.insert(slot.number, Arc::clone(&slot));
        Some(SlotGuard(slot))
    }

    fn taken(&self) -> MutexGuard<'_, TakenSlots> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        // Wraps after 584 years.
        self.started.elapsed().as_nanos() as u64
    }
}

impl Slot {
    /// Notes traffic on the connection.
    pub fn touch(&self) {
        let now = self.places.now_ns();
        self.active_ns.store(now, Ordering::Relaxed);
    }

    /// Protects the connection from eviction until the guard is dropped.
    pub fn work(self: &Arc<Slot>) -> BusyGuard {
        self.working.fetch_add(1, Ordering::Relaxed);
        BusyGuard(Arc::clone(self))
    }

    fn is_working(&self) -> bool {
        self.working.load(Ordering::Relaxed) > 0
    }

    /// Stores a duplicate of the connection's descriptor.
    pub fn keep_socket(&self, socket: BorrowedFd<'_>) {
        if let Ok(socket) = socket.try_clone_to_owned() {
            let _ = self.socket.set(socket);
        }
    }

    /// Waits until the client closes its half. A connection that sends a stream does not read, and
    /// would not notice.
    pub async fn half_closed(&self) {
        let Some(socket) = self.socket.get() else {
            return std::future::pending().await;
        };
        let mut look = interval(POLL_PERIOD);
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        while recv(socket.as_raw_fd(), &mut [0], flags) != Ok(0) {
            look.tick().await;
        }
    }

    /// Waits until the connection is evicted.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl BusyGuard {
    /// Waits until the client closes its half.
    pub async fn half_closed(&self) {
        self.0.half_closed().await;
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let places = &self.0.places;
        places.taken().slots.remove(&self.0.number);
        places.freed.notify_one();
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.touch();
        self.0.working.fetch_sub(1, Ordering::Relaxed);
        self.0.places.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(held: &SlotGuard) -> u64 {
        held.0.number
    }

    #[test]
    fn the_longest_idle_connection_is_evicted() {
        let places = SlotTable::new(3);
        let held: Vec<SlotGuard> = (0..3)
            .map(|_| places.try_take().expect("a place"))
            .collect();
        let [first, second, third] = [0, 1, 2].map(|at: usize| number(&held[at]));
        held[0].0.touch();
        let working = held[1].0.work();
        let left = || {
            let mut left: Vec<u64> = places.taken().slots.keys().copied().collect();
            left.sort_unstable();
            left
        };
        // The third has been idle longest, then the first.
        let fourth = places.try_take().expect("one gives way");
        assert_eq!(left(), [first, second, number(&fourth)]);
        let fifth = places.try_take().expect("one gives way");
        assert_eq!(left(), [second, number(&fourth), number(&fifth)]);
        // An evicted connection does not free its slot again.
        let (_still_held, gone): (Vec<SlotGuard>, Vec<SlotGuard>) =
            held.into_iter().partition(|held| number(held) == second);
        drop(gone);
        assert_eq!(left(), [second, number(&fourth), number(&fifth)]);
        assert!(third > first);
        // Connections with a request in progress are not evicted.
        let more = [fourth.0.work(), fifth.0.work()];
        assert!(places.try_take().is_none());
        drop(more);
        assert!(places.try_take().is_some());
        drop(working);
    }
}
