//! The reading thread of a replay: fills delay lines ahead of time.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use longwire_engine::Nanos;
use longwire_io::PortError;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::monotonic_now;
use crate::stage::{FeedStage, FeedStep};
use crate::thread::{Bell, Control, ThreadEnd, thread_cpu_time};

/// Maximum sleep, so that a stop is noticed.
const SLEEP_MAX: Nanos = Nanos::from_millis(50);

/// Shorter waits are spun.
const SPIN_MAX: Nanos = Nanos::from_micros(50);

/// The reading thread.
pub(crate) struct Reader {
    pub feeding: FeedStage,
    /// The bell of the sending thread.
    pub fed: Arc<Bell>,
    pub control: Arc<Control>,
    /// Start of reading.
    pub begin: Nanos,
}

/// Notifies the sending thread on drop that reading has ended, also after a panic:
/// otherwise it would wait forever.
struct EndNotice {
    control: Arc<Control>,
    fed: Arc<Bell>,
}

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.control.inputs_ended.fetch_add(1, Ordering::SeqCst);
        self.fed.ring();
    }
}

impl Reader {
    /// Reads until the feed ends or fails, or the run is stopped; frames read before are
    /// still sent.
    pub fn run(mut self) -> ThreadEnd {
        let _notice = EndNotice {
            control: Arc::clone(&self.control),
            fed: Arc::clone(&self.fed),
        };
        self.wait_to_begin();
        let error = self.turns().err();
        self.feeding.finish();
        ThreadEnd {
            error,
            cpu: thread_cpu_time(),
            ..ThreadEnd::default()
        }
    }

    fn stopped(&self) -> bool {
        let Control {
            stop,
            failed,
            faults,
            ..
        } = &*self.control;
        stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) || faults.any()
    }

    fn wait_to_begin(&self) {
        while !self.stopped() {
            let left = self.begin.saturating_sub(monotonic_now());
            if left == Nanos::ZERO {
                break;
            }
            sleep(left.min(SLEEP_MAX), None);
        }
    }

    fn turns(&mut self) -> Result<(), PortError> {
        while !self.stopped() {
            match self.feeding.step()? {
                FeedStep::Fed => self.fed.ring_if_asleep(),
                FeedStep::Full(until) => self.wait(until, None),
                FeedStep::Later => self.wait(Nanos::MAX, self.feeding.readable()),
                FeedStep::Ended => break,
            }
        }
        Ok(())
    }

    /// Waits for space or for a slow input. A feed with enough data is not polled, as it
    /// would wake the thread at once.
    fn wait(&self, until: Nanos, source: Option<BorrowedFd<'_>>) {
        // A slow input may have published its last frames.
        self.fed.ring_if_asleep();
        let now = monotonic_now();
        let left = until.saturating_sub(now).min(SLEEP_MAX);
        if left <= SPIN_MAX {
            while monotonic_now() < until {
                std::hint::spin_loop();
            }
            return;
        }
        sleep(left, source);
    }
}

fn sleep(time: Nanos, source: Option<BorrowedFd<'_>>) {
    let polled = source.map(|source| PollFd::new(source, PollFlags::POLLIN));
    let mut polled: Vec<PollFd<'_>> = polled.into_iter().collect();
    let timeout = TimeSpec::from(Duration::from_nanos(time.as_nanos()));
    // The caller checks again.
    let _ = ppoll(&mut polled, Some(timeout), None);
}
