//! The places of an address's connections. When all are taken and another
//! connection comes, the one that has been idle longest gives way to it.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, recv};
use tokio::sync::Notify;
use tokio::time::interval;

/// Interval between looks whether the client of a stream has closed its half.
const LOOK: Duration = Duration::from_secs(1);

/// The places there are.
pub struct Places {
    most: usize,
    started: Instant,
    taken: Mutex<Taken>,
    /// That a place, or a connection that may give way, is there.
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    next: u64,
    seats: HashMap<u64, Arc<Seat>>,
}

/// A connection's place.
pub struct Seat {
    number: u64,
    places: Arc<Places>,
    /// The time of the last byte in either direction, in nanoseconds since the places' start.
    active_ns: AtomicU64,
    /// Its requests that are being worked on.
    working: AtomicUsize,
    evicted: Notify,
    /// Another descriptor of its socket.
    socket: OnceLock<OwnedFd>,
}

/// A place that is taken; dropped, it is free.
pub struct Held(pub Arc<Seat>);

/// A request that is being worked on: its connection does not give way.
pub struct Working(Arc<Seat>);

impl Places {
    /// Returns this many places.
    pub fn new(most: usize) -> Arc<Places> {
        Arc::new(Places {
            most,
            started: Instant::now(),
            taken: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Takes a place. Waits only while every connection has a request that is
    /// being worked on.
    pub async fn take(self: &Arc<Places>) -> Held {
        loop {
            if let Some(held) = self.try_take() {
                return held;
            }
            self.freed.notified().await;
        }
    }

    fn try_take(self: &Arc<Places>) -> Option<Held> {
        let mut taken = self.taken();
        if taken.seats.len() >= self.most {
            let idle = taken.seats.values().filter(|seat| !seat.is_working());
            let longest = idle.min_by_key(|seat| seat.active_ns.load(Ordering::Relaxed));
            let number = longest?.number;
            let seat = taken.seats.remove(&number)?;
            seat.evicted.notify_one();
        }
        taken.next += 1;
        let seat = Arc::new(Seat {
            number: taken.next,
            places: Arc::clone(self),
            active_ns: AtomicU64::new(self.now_ns()),
            working: AtomicUsize::new(0),
            evicted: Notify::new(),
            socket: OnceLock::new(),
        });
        taken.seats.insert(seat.number, Arc::clone(&seat));
        Some(Held(seat))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        // 584 years.
        self.started.elapsed().as_nanos() as u64
    }
}

impl Seat {
    /// Notes that bytes came or went.
    pub fn touch(&self) {
        let now = self.places.now_ns();
        self.active_ns.store(now, Ordering::Relaxed);
    }

    /// Keeps the place until what is returned is dropped.
    pub fn work(self: &Arc<Seat>) -> Working {
        self.working.fetch_add(1, Ordering::Relaxed);
        Working(Arc::clone(self))
    }

    fn is_working(&self) -> bool {
        self.working.load(Ordering::Relaxed) > 0
    }

    /// Keeps another descriptor of the connection's socket.
    pub fn keep_socket(&self, socket: BorrowedFd<'_>) {
        if let Ok(socket) = socket.try_clone_to_owned() {
            let _ = self.socket.set(socket);
        }
    }

    /// Waits until the other side sends no more. The connection reads nothing while it
    /// sends a stream, and would not notice.
    pub async fn half_closed(&self) {
        let Some(socket) = self.socket.get() else {
            return std::future::pending().await;
        };
        let mut look = interval(LOOK);
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        while recv(socket.as_raw_fd(), &mut [0], flags) != Ok(0) {
            look.tick().await;
        }
    }

    /// Waits until the connection has to give way.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Working {
    /// Waits until the other side of the connection sends no more.
    pub async fn half_closed(&self) {
        self.0.half_closed().await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let places = &self.0.places;
        places.taken().seats.remove(&self.0.number);
        places.freed.notify_one();
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.touch();
        self.0.working.fetch_sub(1, Ordering::Relaxed);
        self.0.places.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(held: &Held) -> u64 {
        held.0.number
    }

    #[test]
    fn the_one_idle_longest_gives_way_and_none_that_works() {
        let places = Places::new(3);
        let held: Vec<Held> = (0..3)
            .map(|_| places.try_take().expect("a place"))
            .collect();
        let [first, second, third] = [0, 1, 2].map(|at: usize| number(&held[at]));
        held[0].0.touch();
        let working = held[1].0.work();
        let left = || {
            let mut left: Vec<u64> = places.taken().seats.keys().copied().collect();
            left.sort_unstable();
            left
        };
        // The third has been idle longest, then the first.
        let fourth = places.try_take().expect("one gives way");
        assert_eq!(left(), [first, second, number(&fourth)]);
        let fifth = places.try_take().expect("one gives way");
        assert_eq!(left(), [second, number(&fourth), number(&fifth)]);
        // Those that gave way free no place again.
        let (_still_held, gone): (Vec<Held>, Vec<Held>) =
            held.into_iter().partition(|held| number(held) == second);
        drop(gone);
        assert_eq!(left(), [second, number(&fourth), number(&fifth)]);
        assert!(third > first);
        // With all at work, none gives way until one has done.
        let more = [fourth.0.work(), fifth.0.work()];
        assert!(places.try_take().is_none());
        drop(more);
        assert!(places.try_take().is_some());
        drop(working);
    }
}
