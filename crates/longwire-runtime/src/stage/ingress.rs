//! The ingress stage: reads a burst, offers each wire frame to the link, and puts delivered frames
//! on the delay line.

use longwire_engine::Nanos;
use longwire_io::{PortError, ReceiveResult, RxFrame, RxPort, TxPort};

use super::admission::{Admission, AdmissionParts};
use super::{BURST, Step};
use crate::clock::Clock;
use crate::counters::Artifact;
use crate::deciding::InPlaceLane;
use crate::port_loss::OnPortLoss;

/// Returns whether the output port can send from the input port's memory.
pub fn shares_memory(input: &impl RxPort, output: &impl TxPort) -> bool {
    input.region().is_some() && input.region() == output.region()
}

/// One direction's ingress stage.
pub struct Ingress<R> {
    port: R,
    pub(crate) admission: Admission,
    clock: Clock,
    ended: bool,
    /// Time at which the port's losses were last read.
    losses_read: Nanos,
    /// The reaction to a port loss. If the network continues, the stage ends as it does at the end
    /// of input.
    pub(crate) on_port_loss: OnPortLoss,
    /// How long a frame may wait at the port without being released late.
    pub(crate) slack: Nanos,
}

/// Polling interval for the kernel's losses. Reading them takes a system call.
const LOSSES_EVERY: Nanos = Nanos::from_millis(100);

impl<R: RxPort> Ingress<R> {
    /// Returns the stage of an input port.
    pub(crate) fn new(port: R, clock: Clock, parts: AdmissionParts) -> Ingress<R> {
        Ingress {
            port,
            admission: Admission::new(parts),
            clock,
            ended: false,
            losses_read: Nanos::ZERO,
            on_port_loss: OnPortLoss::End,
            slack: Nanos::ZERO,
        }
    }

    /// Sets the minimum time from arrival to release. A no-op unless the port stamps arrivals.
    pub(crate) fn release_after(mut self, least: Nanos) -> Ingress<R> {
        if self.port.stamps_arrivals() {
            self.slack = least;
        }
        self
    }

    /// Returns the input port.
    pub fn port(&self) -> &R {
        &self.port
    }

    /// Returns the memory used by queued frames, in bytes.
    pub fn memory_in_use(&self) -> u64 {
        self.admission.entry.line.memory_in_use()
    }

    /// Returns whether the input has ended.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Processes one burst.
    ///
    /// # Errors
    /// The input port failed. A loss that the network survives counts as the end of input instead.
    pub fn step(&mut self) -> Result<Step, PortError> {
        if self.admission.undecided {
            self.step_undecided()
        } else if self.admission.decides_directly() {
            self.step_with(|admission, frame| admission.admit_directly(frame))
        } else {
            self.step_with(|admission, frame| admission.admit(frame))
        }
    }

    /// [`Ingress::step`] for a stage without a link.
    // Not inlined, so that the loop of the other stages keeps its registers.
    #[inline(never)]
    fn step_undecided(&mut self) -> Result<Step, PortError> {
        self.step_with(|admission, frame| admission.admit_undecided(frame))
    }

    /// Processes one burst for a stage without a link, on the thread of the link's stage.
    pub(crate) fn step_by(&mut self, lane: &mut InPlaceLane<'_>) -> Result<Step, PortError> {
        self.step_with(|admission, frame| admission.admit_by(frame, lane))
    }

    #[inline]
    fn step_with(
        &mut self,
        mut admit: impl FnMut(&mut Admission, RxFrame<'_>),
    ) -> Result<Step, PortError> {
        if self.ended {
            return Ok(Step {
                ended: true,
                ..Step::default()
            });
        }
        let now = self.clock.now();
        let admission = &mut self.admission;
        let received = self
            .port
            .receive(now, BURST, &mut |frame| admit(admission, frame));
        let received = match received {
            Err(error) if self.on_port_loss.outlives(&error) => {
                self.admission.shared.loss.set(now, &error);
                ReceiveResult {
                    frames: 0,
                    end: true,
                }
            }
            received => received?,
        };
        self.after_burst(now, received);
        Ok(Step {
            frames: received.frames,
            next_at: None,
            ended: received.end,
        })
    }

    fn after_burst(&mut self, now: Nanos, received: ReceiveResult) {
        let admission = &mut self.admission;
        if received.frames > 0 {
            admission.publish();
            // Set this after publishing: a thread that sees this time must see the frames.
            self.clock.advance(admission.latest);
        }
        if received.end {
            self.ended = true;
            self.clock.advance(Nanos::MAX);
        }
        // A partial burst means that the port was drained, unless it is behind.
        admission.shared.seen_until.set(match received.frames {
            _ if received.end => Nanos::MAX,
            BURST.. => admission.latest,
            _ if self.port.is_behind() => admission.latest,
            _ => now,
        });
        if received.end || now.saturating_sub(self.losses_read) >= LOSSES_EVERY {
            self.read_losses(now);
        }
        if received.frames > 0 || received.end {
            self.admission.publish_counts();
        }
    }

    fn read_losses(&mut self, now: Nanos) {
        self.losses_read = now;
        let losses = self.port.losses();
        for (kind, lost) in [
            (Artifact::RingFull, losses.ring_full),
            (Artifact::TooLong, losses.too_long),
            (Artifact::Unusable, losses.unusable + self.admission.unmade),
        ] {
            self.admission.shared.ingress.artifacts[kind].set(lost);
        }
        self.admission.publish_counts();
    }

    /// Records that the thread sleeps until a frame arrives.
    pub(crate) fn before_sleep(&self) {
        self.admission.shared.seen_until.asleep();
    }

    /// Publishes the last counts, including the port's own losses.
    pub(crate) fn finish(&mut self) {
        self.admission.finish();
        self.read_losses(self.clock.now());
    }
}
