//! Limits on requests: rate, connections, bodies and time.

use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use longwire_client::time_limit::{Deadline, TimeLimit};
use nix::sys::socket::{MsgFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::interval;

use crate::reply::Refusal;

/// Token bucket with a capacity of one second's requests. Exact, because it counts requests × 10^9.
#[derive(Debug)]
pub struct Limit {
    per_second: u64,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Credit in requests × 10^9.
    credit: u64,
    /// Time at which `credit` was computed, since the start.
    at: Duration,
}

/// Cost of a request.
const REQUEST: u64 = 1_000_000_000;

impl Limit {
    /// Creates a full bucket.
    pub fn new(per_second: u32) -> Limit {
        Limit {
            per_second: per_second.into(),
            started: Instant::now(),
            state: Mutex::new(State {
                credit: u64::from(per_second) * REQUEST,
                at: Duration::ZERO,
            }),
        }
    }

    /// Takes a request from the bucket.
    ///
    /// # Errors
    /// The time in seconds until the next request is admitted, rounded up.
    pub fn take(&self) -> Result<(), u64> {
        self.take_at(self.started.elapsed())
    }

    fn take_at(&self, now: Duration) -> Result<(), u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_sub(state.at).as_nanos();
        let gained = passed.saturating_mul(self.per_second.into());
        let full = self.per_second * REQUEST;
        let credit = u128::from(state.credit).saturating_add(gained);
        // Fits, because credit is at most `full`.
        state.credit = credit.min(full.into()) as u64;
        state.at = state.at.max(now);
        match state.credit.checked_sub(REQUEST) {
            Some(left) => {
                state.credit = left;
                Ok(())
            }
            None => {
                let lacking = REQUEST - state.credit;
                Err(lacking.div_ceil(self.per_second * REQUEST).max(1))
            }
        }
    }
}

/// Maximum body length, in bytes.
pub const BODY_MAX: usize = 16 << 20;

/// Time limit for receiving a body.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Bytes of each body that do not count towards [`TOGETHER_MAX`]; the connection limit bounds them.
const SMALL: usize = 64 << 10;

/// Maximum total bytes of all bodies, not counting the first [`SMALL`] bytes of each.
const TOGETHER_MAX: usize = 64 << 20;

/// Granularity of the budget, in bytes.
const UNIT: usize = 4 << 10;

/// Memory budget of request bodies.
pub struct Bodies(Arc<Semaphore>);

/// A body and its share of the budget.
pub struct RequestBody {
    pub bytes: Vec<u8>,
    share: Vec<OwnedSemaphorePermit>,
}

/// Returns whether a body is so large that its memory should be returned to the system.
pub fn is_large(body: &Incoming) -> bool {
    let most = body.size_hint().upper();
    most.is_none_or(|most| most > SMALL as u64)
}

impl Bodies {
    /// Creates an unused budget.
    pub fn new() -> Bodies {
        Bodies(Arc::new(Semaphore::new(TOGETHER_MAX / UNIT)))
    }

    /// Reads a body.
    ///
    /// # Errors
    /// 413 if it is too long, 408 on timeout, 503 if the budget is exhausted, 400 if it is
    /// truncated.
    pub async fn read(&self, mut body: Incoming) -> Result<RequestBody, Refusal> {
        // Refuse a body by its announced length, without reading it.
        if body.size_hint().lower() > BODY_MAX as u64 {
            return Err(too_large());
        }
        let mut received = RequestBody {
            bytes: Vec::new(),
            share: Vec::new(),
        };
        let mut room = SMALL;
        let mut limit = TimeLimit::new(BODY_TIME);
        loop {
            // Check after each frame, because many bodies may arrive simultaneously.
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame,
                () = limit.used_up() => return Err(late()),
            };
            let Some(frame) = frame else {
                return Ok(received);
            };
            let frame = frame.map_err(|_| Refusal::bad("truncated body"))?;
            let Some(data) = frame.data_ref() else {
                continue;
            };
            let length = received.bytes.len() + data.len();
            if length > BODY_MAX {
                return Err(too_large());
            }
            while length > room {
                // Double the capacity, as a growing vector does.
                let more = room.min(BODY_MAX - room);
                let units = more.div_ceil(UNIT) as u32;
                let share = Arc::clone(&self.0).try_acquire_many_owned(units);
                received.share.push(share.map_err(|_| busy())?);
                room += more;
                received.bytes.reserve_exact(room - received.bytes.len());
            }
            received.bytes.extend_from_slice(data);
        }
    }
}

fn late() -> Refusal {
    let error = format!("request body incomplete after {} s", BODY_TIME.as_secs());
    Refusal::new(StatusCode::REQUEST_TIMEOUT, error)
}

fn too_large() -> Refusal {
    let error = format!("the request body is longer than {} MiB", BODY_MAX >> 20);
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error)
}

fn busy() -> Refusal {
    Refusal::busy(format!(
        "request bodies in progress total {} MiB; try again",
        TOGETHER_MAX >> 20
    ))
}

/// Interval at which a stream checks whether the client has closed its sending direction.
const POLL_PERIOD: Duration = Duration::from_secs(1);

/// Connection slots of a listening address.
pub struct SlotTable {
    most: usize,
    started: Instant,
    taken: Mutex<Vec<Arc<Slot>>>,
    /// Signals that a slot was freed, or that a connection became idle.
    freed: Notify,
}

/// Slot of a connection.
pub struct Slot {
    places: Arc<SlotTable>,
    /// Time of the last byte in either direction, in nanoseconds since `started`.
    active_ns: AtomicU64,
    /// Number of requests in progress.
    working: AtomicUsize,
    /// Signals that the connection is evicted.
    pub evicted: Notify,
    /// Duplicate of the connection's descriptor.
    socket: OnceLock<OwnedFd>,
}

/// A taken slot, freed on drop.
pub struct SlotGuard(pub Arc<Slot>);

/// Marks a request as in progress, which protects its connection from eviction.
pub struct BusyGuard(pub Arc<Slot>);

impl SlotTable {
    /// Creates a table with `most` slots.
    pub fn new(most: usize) -> Arc<SlotTable> {
        Arc::new(SlotTable {
            most,
            started: Instant::now(),
            taken: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Takes a slot, evicting an idle connection if necessary. Waits only while every connection
    /// has a request in progress.
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
        if taken.len() >= self.most {
            let idle = (0..taken.len()).filter(|at| !taken[*at].is_working());
            let longest = idle.min_by_key(|at| taken[*at].active_ns.load(Ordering::Relaxed));
            taken.remove(longest?).evicted.notify_one();
        }
        let slot = Arc::new(Slot {
            places: Arc::clone(self),
            active_ns: AtomicU64::new(self.now_ns()),
            working: AtomicUsize::new(0),
            evicted: Notify::new(),
            socket: OnceLock::new(),
        });
        taken.push(Arc::clone(&slot));
        Some(SlotGuard(slot))
    }

    fn taken(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        // Wraps around after 584 years.
        self.started.elapsed().as_nanos() as u64
    }
}

impl Slot {
    /// Records traffic on the connection.
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

    /// Waits until the client closes its sending direction. A connection that sends a stream does
    /// not read, so it would not notice otherwise.
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
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let places = &self.0.places;
        places.taken().retain(|slot| !Arc::ptr_eq(slot, &self.0));
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

/// Maximum time for which a client may stop reading a response.
const STALL_TIME: Duration = Duration::from_secs(10);

/// A stream whose writes fail after a stall, so that a client that does not read its responses
/// cannot keep memory or a slot.
pub struct StallLimit<S> {
    stream: S,
    slot: Arc<Slot>,
    /// Deadline of stalled writes; `None` while writes progress.
    stalled: Option<Deadline>,
}

impl<S> StallLimit<S> {
    /// Wraps a stream; its slot records traffic.
    pub fn new(stream: S, slot: Arc<Slot>) -> StallLimit<S> {
        StallLimit {
            stream,
            slot,
            stalled: None,
        }
    }

    /// Returns the result of a write, or an error after a stall.
    fn judge<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.slot.touch();
            self.stalled = None;
            return written;
        }
        let new = || Deadline::after(STALL_TIME);
        // Polling again returns the error again.
        let ended = Pin::new(self.stalled.get_or_insert_with(new)).poll(cx);
        ended.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallLimit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
            self.slot.touch();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallLimit<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(written, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A no-op for sockets, which does not show whether the client reads.
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.judge(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_one_second_is_admitted() {
        let limit = Limit::new(10);
        let at = Duration::from_millis;
        for _ in 0..10 {
            assert_eq!(limit.take_at(at(0)), Ok(()));
        }
        assert_eq!(limit.take_at(at(99)), Err(1));
        assert_eq!(limit.take_at(at(100)), Ok(()));
        assert_eq!(limit.take_at(at(150)), Err(1));
        // Threads may read the clock out of order.
        assert_eq!(limit.take_at(at(10)), Err(1));
        assert_eq!(limit.take_at(at(200)), Ok(()));
        // Credit is limited to one second's requests.
        for _ in 0..10 {
            assert_eq!(limit.take_at(at(3_600_000)), Ok(()));
        }
        assert_eq!(limit.take_at(at(3_600_000)), Err(1));
    }

    #[test]
    fn the_largest_rate_does_not_overflow() {
        let limit = Limit::new(u32::MAX);
        assert_eq!(limit.take_at(Duration::from_secs(u64::MAX)), Ok(()));
    }

    #[test]
    fn the_longest_idle_connection_is_evicted() {
        let places = SlotTable::new(3);
        let take = || places.try_take().expect("a place");
        let [first, second, third] = [(); 3].map(|()| take());
        first.0.touch();
        let working = second.0.work();
        let are_left = |held: [&SlotGuard; 3]| {
            let taken = places.taken();
            let same = taken.iter().zip(held);
            let same = same.filter(|(slot, held)| Arc::ptr_eq(slot, &held.0));
            (taken.len(), same.count()) == (3, 3)
        };
        // Evicts the connection that has been idle longest: the third, then the first.
        let fourth = take();
        assert!(are_left([&first, &second, &fourth]));
        let fifth = take();
        assert!(are_left([&second, &fourth, &fifth]));
        // Dropping an evicted connection does not free its slot a second time.
        drop([first, third]);
        assert!(are_left([&second, &fourth, &fifth]));
        // Connections with a request in progress are not evicted.
        let more = [fourth.0.work(), fifth.0.work()];
        assert!(places.try_take().is_none());
        drop(more);
        assert!(places.try_take().is_some());
        drop(working);
    }
}
