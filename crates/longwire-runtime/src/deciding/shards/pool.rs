//! A thread pool for short rounds.
//!
//! A round takes 10 us to 10 ms. General-purpose pools would wake their threads for each
//! round; these threads spin first.

use std::hint::spin_loop;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::host;

/// Number of spins, and then of yields, before an idle thread parks.
const SPINS: u32 = 2_000;
const YIELDS: u32 = 50;

/// States of a slot.
const EMPTY: u8 = 0;
const READY: u8 = 1;
const TAKEN: u8 = 2;
const DONE: u8 = 3;

/// An item of a round and its state.
struct Place<T> {
    state: AtomicU8,
    item: Mutex<Option<Box<T>>>,
}

/// State shared by the threads.
struct PoolState<T> {
    places: Vec<Place<T>>,
    /// Round counter; threads poll it for new work.
    round: AtomicU32,
    /// Unfinished items of the round.
    left: AtomicUsize,
    ends: AtomicBool,
    /// Whether each thread is parked.
    asleep: Vec<AtomicBool>,
    work: fn(&mut T),
}

/// Threads that process items together with the calling thread.
pub(super) struct Pool<T> {
    shared: Arc<PoolState<T>>,
    workers: Vec<JoinHandle<()>>,
}

impl<T> PoolState<T> {
    /// Returns the number of threads, including the calling one.
    fn threads(&self) -> usize {
        self.asleep.len() + 1
    }

    /// Processes ready items as thread `own`: first its own, then those that no thread has
    /// started.
    fn help(&self, own: usize) {
        let threads = self.threads();
        let places = self.places.iter().zip(1..);
        let mine = places.clone().filter(|(_, index)| index % threads == own);
        let others = places.filter(|(_, index)| index % threads != own);
        for (place, _) in mine.chain(others) {
            let took =
                place
                    .state
                    .compare_exchange(READY, TAKEN, Ordering::Acquire, Ordering::Relaxed);
            if took.is_ok() {
                self.process(place);
            }
        }
    }

    fn process(&self, place: &Place<T>) {
        let mut item = place.item.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(item) = item.as_deref_mut() {
            (self.work)(item);
        }
        drop(item);
        place.state.store(DONE, Ordering::Release);
        self.left.fetch_sub(1, Ordering::Release);
    }

    /// Serves rounds until the pool ends.
    fn serve(&self, own: usize) {
        let mut seen = 0;
        loop {
            let mut tries = 0;
            while self.round.load(Ordering::Acquire) == seen {
                if self.ends.load(Ordering::Acquire) {
                    return;
                }
                tries += 1;
                self.rest(tries, own, seen);
            }
            seen = self.round.load(Ordering::Acquire);
            self.help(own);
        }
    }

    fn rest(&self, tries: u32, own: usize, seen: u32) {
        if tries < SPINS {
            return spin_loop();
        }
        if tries < SPINS + YIELDS {
            return thread::yield_now();
        }
        let asleep = &self.asleep[own - 1];
        asleep.store(true, Ordering::SeqCst);
        // A round that began before this thread was marked asleep does not wake it.
        if self.round.load(Ordering::SeqCst) == seen && !self.ends.load(Ordering::SeqCst) {
            thread::park();
        }
        asleep.store(false, Ordering::SeqCst);
    }
}

impl<T: Send + 'static> Pool<T> {
    /// Starts worker threads for rounds of one item and `others` more: `threads` in total,
    /// including the calling one, but at most one per item. `work` runs once per item of a
    /// round. With `realtime`, workers request a higher priority.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(
        others: usize,
        threads: NonZero<usize>,
        realtime: bool,
        work: fn(&mut T),
    ) -> std::io::Result<Pool<T>> {
        let helpers = (threads.get() - 1).min(others);
        let place = |_| Place {
            state: AtomicU8::new(EMPTY),
            item: Mutex::new(None),
        };
        let shared = Arc::new(PoolState {
            places: (0..others).map(place).collect(),
            round: AtomicU32::new(0),
            left: AtomicUsize::new(0),
            ends: AtomicBool::new(false),
            asleep: (0..helpers).map(|_| AtomicBool::new(false)).collect(),
            work,
        });
        let mut pool = Pool {
            shared,
            workers: Vec::new(),
        };
        for own in 1..=helpers {
            let shared = Arc::clone(&pool.shared);
            let worker = thread::Builder::new()
                .name(format!("longwire-shard{own}"))
                .spawn(move || {
                    // If this request is refused, so is the calling thread's, which is
                    // reported.
                    let _ = host::prepare_thread(None, realtime);
                    host::give_up_rights();
                    let served = catch_unwind(AssertUnwindSafe(|| shared.serve(own)));
                    if served.is_err() {
                        // Otherwise, the calling thread would wait forever.
                        std::process::abort();
                    }
                })?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Processes all items and returns when they are done. Only the calling thread
    /// processes `first`.
    pub fn round(&mut self, first: &mut T, others: &mut Vec<Box<T>>) {
        debug_assert_eq!(others.len(), self.shared.places.len());
        let shared = &*self.shared;
        shared.left.store(others.len(), Ordering::Relaxed);
        for (place, item) in shared.places.iter().zip(others.drain(..)) {
            *place.item.lock().unwrap_or_else(PoisonError::into_inner) = Some(item);
            place.state.store(READY, Ordering::Release);
        }
        shared.round.fetch_add(1, Ordering::SeqCst);
        for (asleep, worker) in shared.asleep.iter().zip(&self.workers) {
            if asleep.load(Ordering::SeqCst) {
                worker.thread().unpark();
            }
        }
        (shared.work)(first);
        shared.help(0);
        let mut tries = 0;
        while shared.left.load(Ordering::Acquire) > 0 {
            tries += 1;
            if tries < SPINS {
                spin_loop();
            } else {
                thread::yield_now();
            }
        }
        for place in &shared.places {
            let mut item = place.item.lock().unwrap_or_else(PoisonError::into_inner);
            others.extend(item.take());
            place.state.store(EMPTY, Ordering::Relaxed);
        }
    }
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A panic would have ended the process.
            let _ = worker.join();
        }
    }
}

/// Measures the median time of an empty round.
///
/// # Errors
/// If a thread cannot be started.
pub fn shard_round(threads: NonZero<usize>) -> std::io::Result<Duration> {
    const ROUNDS: usize = 2_001;
    let mut pool = Pool::start(threads.get() - 1, threads, false, |(): &mut ()| {})?;
    let mut others: Vec<Box<()>> = (1..threads.get()).map(|_| Box::new(())).collect();
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            pool.round(&mut (), &mut others);
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    Ok(times[ROUNDS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Item {
        number: u64,
        sum: u64,
    }

    fn add(item: &mut Item) {
        item.sum += item.number;
    }

    #[test]
    fn every_item_is_processed_once_a_round_in_its_place() {
        for threads in [1, 2, 3, 8] {
            let threads = NonZero::new(threads).unwrap();
            let mut pool = Pool::start(6, threads, false, add).unwrap();
            let item = |number| Item { number, sum: 0 };
            let mut first = item(7);
            let mut others: Vec<Box<Item>> = (0..6).map(|number| Box::new(item(number))).collect();
            for round in 1..=500 {
                pool.round(&mut first, &mut others);
                if round % 100 == 0 {
                    // Sleep long enough for the threads to park.
                    thread::sleep(std::time::Duration::from_millis(5));
                }
                assert_eq!((others.len(), first.sum), (6, round * first.number));
                for (place, item) in others.iter().enumerate() {
                    assert_eq!((item.number, item.sum), (place as u64, round * item.number));
                }
            }
        }
    }
}
