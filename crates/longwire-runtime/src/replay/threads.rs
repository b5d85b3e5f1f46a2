//! A replay's threads: one reads ahead and fills the delay lines; the other waits for each
//! departure and sends it, on all ports in the feed's order.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use longwire_engine::Nanos;
use longwire_io::port::AnyTx;
use longwire_io::{PortError, TxPort};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::pacer::Pacer;
use crate::clock::monotonic_now;
use crate::host;
use crate::stage::{
    BURST, DeparturePlace, Egress, FeedNumbers, FeedStage, FeedStep, OutputStage, RETRY_AFTER,
    Step, Turn,
};
use crate::thread::{Bell, Control, ThreadEnd, thread_cpu_time};

/// The sending thread.
pub(crate) struct Pump {
    pub outputs: Outputs,
    pub pacer: Pacer,
    pub bell: Arc<Bell>,
    pub control: Arc<Control>,
    /// Whether to request a real-time class.
    pub fifo: bool,
}

/// Awake share above which a thread leaves its real-time class, and below which it returns. The
/// kernel throttles real-time threads for 50 ms per second if they occupy a core that other threads
/// need.
const LEAVE_FIFO: f64 = 0.85;
const RETURN_TO_FIFO: f64 = 0.7;

impl Pump {
    /// Sends until the input has ended and drained, the run is stopped, or a port fails.
    pub fn run(mut self) -> ThreadEnd {
        self.pacer.witness.begin();
        let error = self.turns().err();
        let failed = error.is_some();
        self.control.failed.fetch_or(failed, Ordering::SeqCst);
        let mut remarks = self.outputs.finish();
        remarks.extend(self.pacer.spun_for_others().map(|time| {
            format!(
                "other programs delayed the sending thread's wake-ups, so it spun for {time} \
                 instead of sleeping"
            )
        }));
        ThreadEnd {
            error,
            core_wait: self.pacer.witness.waited(),
            margin: self.pacer.margin(),
            cpu: thread_cpu_time(),
            remarks,
        }
    }

    fn turns(&mut self) -> Result<(), PortError> {
        let mut fifo = self.fifo;
        while !self.control.stop.load(Ordering::Relaxed) && !self.control.faults.any() {
            let step = self.outputs.step()?;
            let next_at = step.next_at;
            if step.frames > 0 && next_at.is_none_or(|next| next <= monotonic_now()) {
                continue;
            }
            if next_at.is_none() && self.is_done() {
                break;
            }
            self.wait(next_at);
            self.heed_throttling(&mut fifo);
        }
        Ok(())
    }

    /// Leaves the real-time class while the thread occupies most of a core.
    fn heed_throttling(&mut self, fifo: &mut bool) {
        if !self.fifo {
            return;
        }
        let awake = self.pacer.awake(monotonic_now());
        let awake_max = if *fifo { LEAVE_FIFO } else { RETURN_TO_FIFO };
        let wanted = awake < awake_max;
        if wanted != *fifo {
            *fifo = wanted;
            // Unlikely to fail, because the class was permitted before.
            let _ = if wanted {
                host::enter_fifo()
            } else {
                host::leave_fifo()
            };
        }
    }

    /// Returns whether the input has ended and all frames have left.
    fn is_done(&mut self) -> bool {
        self.control.inputs_ended.load(Ordering::SeqCst) > 0 && self.outputs.is_empty()
    }

    fn wait(&mut self, next_at: Option<Nanos>) {
        let now = monotonic_now();
        let Some(until) = self.pacer.sleeps_until(next_at, now) else {
            if let Some(next) = next_at {
                self.look_beyond(next, now);
                self.pacer.spin_until(next);
            }
            return;
        };
        // Announce the sleep, then check once more. Otherwise, a frame published between check and
        // announcement would be missed.
        self.bell.asleep();
        let next = self.outputs.next_release();
        let until = match next {
            Some(next) => until.min(next.saturating_sub(self.pacer.margin())),
            None => until,
        };
        if until > now && !self.ended_unseen(next_at) {
            if let Some(next) = next {
                self.pacer.arm(next, until);
                self.arm_after(next);
            }
            self.pacer.sleep(next, until, self.bell.event());
        }
        self.bell.awake();
    }

    /// Before a departure at `next` for which the thread slept, arms an alarm for the second
    /// departure after it, if that is known and there is time.
    fn look_beyond(&mut self, next: Nanos, now: Nanos) {
        if self.pacer.may_look_ahead(next, now)
            && let Some(second) = self.departure_after(next)
            && self.pacer.is_armed(second)
        {
            self.arm_after(second);
        }
    }

    /// Arms the alarm for the departure after `next`.
    fn arm_after(&mut self, next: Nanos) {
        if let Some(after) = self.departure_after(next) {
            self.pacer.arm_ahead(next, after);
        }
    }

    /// Returns the first departure after `next` that is worth a separate sleep.
    fn departure_after(&mut self, next: Nanos) -> Option<Nanos> {
        let from = self.pacer.apart_from(next);
        self.outputs.release_beyond(from)
    }

    /// Returns whether the input has ended and no departure is known, so that the thread may be
    /// done.
    fn ended_unseen(&self, next_at: Option<Nanos>) -> bool {
        next_at.is_none() && self.control.inputs_ended.load(Ordering::SeqCst) > 0
    }
}

/// Maximum sleep, after which the thread checks for a stop.
const SLEEP_MAX: Nanos = Nanos::from_millis(50);

/// Maximum wait for which the thread spins instead of sleeping.
const SPIN_MAX: Nanos = Nanos::from_micros(50);

/// The reading thread.
pub(crate) struct Reader {
    pub feeding: FeedStage,
    /// The sending thread's bell.
    pub fed: Arc<Bell>,
    pub control: Arc<Control>,
    /// Time at which reading starts.
    pub begin: Nanos,
}

/// Notifies the sending thread on drop that reading has ended, also after a panic. Otherwise, the
/// sending thread would wait forever.
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
    /// Reads until the feed ends or fails, or the run is stopped. Frames already read are still
    /// sent.
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
        self.control.stop.load(Ordering::Relaxed) || self.control.must_end()
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

    /// Waits for room or for a slow input. A feed with enough data is not polled, because it would
    /// wake the thread immediately.
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

/// A replay's egress stages on one thread. Frames leave in order of handover over all ports. Ties
/// keep the feed's order.
pub(super) struct Outputs {
    pub egress: Vec<Egress<AnyTx>>,
    /// Number of published frames over all lines, modulo 2^32.
    pub numbers: Arc<FeedNumbers>,
}

/// Maximum number of frames per step, after which the thread checks for a stop.
const STEP_MAX: usize = 8 * BURST;

impl Outputs {
    /// Sends due frames, at most about [`STEP_MAX`].
    ///
    /// # Errors
    /// A port's flush fails.
    #[inline]
    pub fn step(&mut self) -> Result<Step, PortError> {
        match &mut self.egress[..] {
            [only] => only.step(),
            _ => self.step_in_order(),
        }
    }

    /// Alternates between the ports in order of departure. A full port blocks all ports.
    fn step_in_order(&mut self) -> Result<Step, PortError> {
        // Read this before the lines, so that they contain every frame below this number.
        let published = self.numbers.published();
        let now = monotonic_now();
        let mut frames = 0;
        let mut waits = false;
        for egress in &mut self.egress {
            egress.prepare(now);
            if egress.port().unsent() > 0 {
                // Accepted frames leave first.
                frames += egress.flush(now)?;
                waits |= egress.port().unsent() > 0;
            }
        }
        while frames < STEP_MAX
            && !waits
            && let Some((index, next, before)) = self.next()
        {
            let turn = Turn { before, published };
            if next.at > now || !turn.is_published(next) {
                break;
            }
            let egress = &mut self.egress[index];
            let burst = egress.send(now, Some(&turn))?;
            frames += burst.frames;
            waits = burst.full || egress.port().unsent() > 0;
        }
        let mut next_at = waits.then(|| now.saturating_add(RETRY_AFTER));
        for egress in &mut self.egress {
            if waits {
                // The frames wait for this port, or for a full one that must send first.
                egress.account.full_at = now;
            }
            if frames == 0 {
                egress.idle(now);
            }
            if egress.port().needs_idle_fill() {
                frames += egress.flush(now)?;
                next_at = Some(now);
            }
        }
        let next_at = next_at.or_else(|| self.next_release());
        Ok(Step {
            frames,
            next_at,
            ended: false,
        })
    }

    /// Returns the stage with the next departure, its place, and the first departure in any other
    /// stage.
    fn next(&mut self) -> Option<(usize, DeparturePlace, Option<DeparturePlace>)> {
        let mut next: Option<(usize, DeparturePlace)> = None;
        let mut before = None;
        for (index, egress) in self.egress.iter_mut().enumerate() {
            let Some(place) = egress.next_place() else {
                continue;
            };
            match next {
                Some((_, first)) if first < place => {
                    before = Some(before.map_or(place, |other| place.min(other)));
                }
                _ => before = next.replace((index, place)).map(|(_, first)| first),
            }
        }
        next.map(|(index, place)| (index, place, before))
    }

    /// Returns the handover time of the next published frame.
    pub fn next_release(&mut self) -> Option<Nanos> {
        let stages = self.egress.iter_mut();
        stages.filter_map(Egress::next_release).min()
    }

    /// Returns the first release after `time`, if known without sorting.
    pub fn release_beyond(&mut self, time: Nanos) -> Option<Nanos> {
        let stages = self.egress.iter_mut();
        stages
            .filter_map(|egress| egress.release_beyond(time))
            .min()
    }

    /// Returns whether no frames are queued.
    pub fn is_empty(&mut self) -> bool {
        self.egress.iter_mut().all(Egress::is_empty)
    }

    /// Publishes the last counts and returns the ports' remarks.
    pub fn finish(&mut self) -> Vec<String> {
        for egress in &mut self.egress {
            egress.finish();
        }
        self.egress.iter().flat_map(Egress::remarks).collect()
    }
}
