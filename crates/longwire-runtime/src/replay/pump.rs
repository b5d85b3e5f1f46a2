//! The sending thread of a replay: waits for each departure and sends it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use longwire_engine::Nanos;
use longwire_io::PortError;

use super::outputs::Outputs;
use super::pacer::Pacer;
use crate::clock::monotonic_now;
use crate::host;
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

/// Awake fraction above which a thread leaves its real-time class: the kernel throttles
/// such threads for 50 ms per second if they occupy a core that others need. It returns
/// below the lower fraction.
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
                "other programs delayed wake-ups of the sending thread; it spun for {time} \
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
            // It was permitted before.
            let _ = if wanted {
                host::enter_fifo()
            } else {
                host::leave_fifo()
            };
        }
    }

    /// Whether the input has ended and all frames have left.
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
        // Announce the sleep, then check once more: otherwise a frame published between
        // check and announcement would be missed.
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

    /// Before a departure at `next` that was slept for, arms an alarm for the second one
    /// after it, if that is known and there is time.
    fn look_beyond(&mut self, next: Nanos, now: Nanos) {
        if self.pacer.may_look_ahead(next, now)
            && let Some(second) = self.departure_after(next)
            && self.pacer.is_armed(second)
        {
            self.arm_after(second);
        }
    }

    /// Arms the alarm of the departure after `next`.
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

    /// Whether the input has ended since the last check.
    fn ended_unseen(&self, next_at: Option<Nanos>) -> bool {
        next_at.is_none() && self.control.inputs_ended.load(Ordering::SeqCst) > 0
    }
}
