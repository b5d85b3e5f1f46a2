//! The reading thread of a replay: keeps delay lines filled ahead of time.

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

/// The maximum sleep, so that a stop is noticed.
const SLEEP_MAX: Nanos = Nanos::from_millis(50);

/// Waits shorter than this are spun.
const SPIN_MAX: Nanos = Nanos::from_micros(50);

/// The reading thread: feeding stages in turn.
pub(crate) struct Reader {
    pub feedings: Vec<FeedStage>,
    /// The bells of the threads that send the frames.
    pub fed: Vec<Arc<Bell>>,
    pub control: Arc<Control>,
    /// The time at which reading begins.
    pub begin: Nanos,
}

/// The result of one turn of the loop.
#[derive(Default)]
struct ReaderTurn {
    fed: bool,
    ended: bool,
    /// The time at which there may be space again.
    full_until: Option<Nanos>,
    /// Indices of feeds without data for the moment.
    later: Vec<usize>,
}

/// Notifies the sending threads that reading has ended, also by a panic:
/// otherwise they would wait for ever.
struct EndNotice {
    control: Arc<Control>,
    fed: Vec<Arc<Bell>>,
}

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.control.inputs_ended.fetch_add(1, Ordering::SeqCst);
        self.fed.iter().for_each(|bell| bell.ring());
    }
}

impl Reader {
    /// Reads until the end of every trace, until stopped, or until one cannot
    /// be read further: the frames read before are still sent.
    pub fn run(mut self) -> ThreadEnd {
        let _notice = EndNotice {
            control: Arc::clone(&self.control),
            fed: self.fed.clone(),
        };
        self.wait_to_begin();
        let error = self.turns().err();
        for feeding in &mut self.feedings {
            feeding.finish();
        }
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
            sleep(left.min(SLEEP_MAX), &[]);
        }
    }

    /// Reads until the end. The first error ends all reading, for the traces
    /// share one time base.
    fn turns(&mut self) -> Result<(), PortError> {
        while !self.stopped() {
            let turn = self.turn()?;
            if turn.fed {
                self.fed.iter().for_each(|bell| bell.ring_if_asleep());
                continue;
            }
            if turn.ended {
                break;
            }
            self.wait(&turn);
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<ReaderTurn, PortError> {
        let mut turn = ReaderTurn {
            ended: true,
            ..ReaderTurn::default()
        };
        for (number, feeding) in self.feedings.iter_mut().enumerate() {
            let step = feeding.step()?;
            turn.ended &= step == FeedStep::Ended;
            match step {
                FeedStep::Fed => turn.fed = true,
                FeedStep::Full(until) => {
                    turn.full_until = Some(turn.full_until.map_or(until, |other| other.min(until)));
                }
                FeedStep::Later => turn.later.push(number),
                FeedStep::Ended => {}
            }
        }
        Ok(turn)
    }

    /// Waits for space, or for a slow input.
    fn wait(&self, turn: &ReaderTurn) {
        // The last frames of a slow input.
        self.fed.iter().for_each(|bell| bell.ring_if_asleep());
        let now = monotonic_now();
        let until = turn.full_until.unwrap_or(Nanos::MAX);
        let left = until.saturating_sub(now).min(SLEEP_MAX);
        if left <= SPIN_MAX {
            while monotonic_now() < until {
                std::hint::spin_loop();
            }
            return;
        }
        // Feeds with enough data are not polled: they would wake the thread at
        // once.
        let slow = turn.later.iter().map(|number| &self.feedings[*number]);
        let sources: Vec<BorrowedFd<'_>> = slow.filter_map(FeedStage::readable).collect();
        sleep(left, &sources);
    }
}

fn sleep(time: Nanos, sources: &[BorrowedFd<'_>]) {
    let polled = sources
        .iter()
        .map(|source| PollFd::new(*source, PollFlags::POLLIN));
    let mut polled: Vec<PollFd<'_>> = polled.collect();
    let timeout = TimeSpec::from(Duration::from_nanos(time.as_nanos()));
    // Early or late: the caller checks again.
    let _ = ppoll(&mut polled, Some(timeout), None);
}
