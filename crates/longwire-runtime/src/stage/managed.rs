//! A managed queue in a live run.
//!
//! Frames arrive over the line undecided, each with its arrival. The egress
//! stage offers them to the link and keeps their bytes while they are queued
//! and until they are released.

use std::collections::VecDeque;

use longwire_engine::{Delivery, FrameBytes, FrameMeta, Nanos, ReleaseQueue, Verdict};
use longwire_io::delay_line::{DelayLineReader, Descriptor, HeldFrame};

use super::account::Account;
use super::decider::Decider;

/// A frame that was taken off the line.
struct ManagedFrame {
    frame: HeldFrame,
    /// Its number among all offered frames.
    offered: u64,
    /// It is delivered at least once.
    delivered: bool,
    /// Deliveries that have not left.
    waiting: u16,
    /// No more deliveries will follow.
    decided: bool,
}

/// Frames by their numbers on the link.
struct HeldFrames {
    first: u64,
    frames: VecDeque<Option<ManagedFrame>>,
}

/// Gives the link access to the bytes of queued frames.
struct QueuedBytes<'a> {
    held: &'a HeldFrames,
    line: &'a DelayLineReader,
}

impl FrameBytes for QueuedBytes<'_> {
    fn bytes(&self, number: u64) -> &[u8] {
        match self.held.get(number) {
            Some(held) => self.line.bytes(&held.frame),
            None => &[],
        }
    }
}

/// A delivery that is due.
pub(super) struct DueDelivery {
    number: u64,
    release: Nanos,
}

/// A link with a managed queue, and the frames that wait in and after it.
pub(super) struct ManagedLine {
    decider: Decider,
    held: HeldFrames,
    released: ReleaseQueue<u64>,
    /// Maximum time between an event and its decision.
    slack: Nanos,
}

/// Maximum time between an event and its decision: frames that the kernel holds
/// back for this long count as having arrived later than they did.
const SLACK_MAX: Nanos = Nanos::from_micros(200);

impl ManagedLine {
    pub fn new(decider: Decider) -> ManagedLine {
        ManagedLine {
            slack: decider.link.poll_slack().min(SLACK_MAX),
            decider,
            held: HeldFrames {
                first: 0,
                frames: VecDeque::new(),
            },
            released: ReleaseQueue::new(),
        }
    }

    /// Takes in all frames on the line. A frame whose arrival the link moves to
    /// a later time, because the queue was decided beyond its arrival, is late
    /// by as much.
    pub fn take_in(&mut self, line: &mut DelayLineReader, account: &mut Account) {
        while let Some(frame) = line.take() {
            let next = line.descriptor(&frame);
            let arrival = next.release;
            self.decide_until(arrival, line, account);
            let meta = FrameMeta {
                arrival,
                len: next.wire_len,
            };
            let verdict = self.decider.offer(meta, line.bytes(&frame));
            let moved = self.decider.link.last_arrival().saturating_sub(arrival);
            if moved > account.judge.tolerance {
                let (cause, _) = account.judge.cause(arrival, moved);
                if let Some(artifact) = cause.artifact() {
                    account.cells().artifacts[artifact].add(1);
                }
            }
            match verdict {
                Verdict::Drop(_) => {
                    account.taken_off(&next);
                    line.free(frame);
                }
                Verdict::Queued | Verdict::Deliver(_) => {
                    self.held.push(frame, self.decider.last_offered());
                }
            }
        }
    }

    /// Makes the decisions due by `now`.
    pub fn decide(&mut self, now: Nanos, line: &mut DelayLineReader, account: &mut Account) {
        let until = match now {
            Nanos::MAX => Nanos::MAX,
            now => now.saturating_sub(self.slack),
        };
        if self
            .decider
            .link
            .next_at()
            .is_some_and(|next| next <= until)
        {
            self.decide_until(until, line, account);
        }
    }

    fn decide_until(&mut self, until: Nanos, line: &mut DelayLineReader, account: &mut Account) {
        loop {
            let bytes = QueuedBytes {
                held: &self.held,
                line,
            };
            let Some((number, verdict)) = self.decider.link.poll(until, &bytes) else {
                return;
            };
            self.decider.decided_until(until);
            let Some(held) = self.held.get(number) else {
                continue;
            };
            let (offered, copy) = (held.offered, held.delivered);
            self.decider.decided_later(offered, verdict, copy);
            if let (Verdict::Deliver(delivery), false) = (&verdict, copy) {
                let frame = line.descriptor(&held.frame);
                let meta = FrameMeta {
                    arrival: frame.release,
                    len: frame.wire_len,
                };
                self.decider.log_delivery(meta, delivery);
            }
            match verdict {
                Verdict::Deliver(delivery) => {
                    if copy {
                        account.shared.link.stage.crossed.add(1);
                    }
                    self.deliver(number, &delivery, line);
                }
                Verdict::Drop(_) => {
                    if let Some(held) = self.held.get(number) {
                        account.taken_off(&line.descriptor(&held.frame));
                    }
                    self.free(number, line);
                }
                Verdict::Queued => {}
            }
        }
    }

    fn deliver(&mut self, number: u64, delivery: &Delivery, line: &mut DelayLineReader) {
        let Some(held) = self.held.get_mut(number) else {
            return;
        };
        if !held.delivered && delivery.edits.any() {
            let bytes = line.bytes_mut(&mut held.frame);
            self.decider.link.edit(delivery, bytes);
        }
        held.delivered = true;
        held.waiting += 1;
        held.decided = !delivery.more;
        let link_id = self.decider.link_id;
        self.released.push(link_id, delivery.release, number);
    }

    /// Returns the release and the tag of the next delivery.
    pub fn peek(&mut self, line: &DelayLineReader) -> Option<(Nanos, u32)> {
        let (release, number) = self.released.peek()?;
        let held = self.held.get(*number)?;
        Some((release, line.descriptor(&held.frame).tag))
    }

    /// Returns the next delivery due at `now`.
    pub fn pop_due(&mut self, now: Nanos) -> Option<DueDelivery> {
        let (_, release, number) = self.released.pop_due(now)?;
        Some(DueDelivery { number, release })
    }

    /// Returns the frame for the port.
    pub fn frame<'a>(
        &'a self,
        due: &DueDelivery,
        line: &'a DelayLineReader,
    ) -> (Descriptor, &'a [u8]) {
        let held = self.held.get(due.number);
        let (descriptor, bytes) = match held {
            Some(held) => (line.descriptor(&held.frame), line.bytes(&held.frame)),
            None => unreachable!("a frame is held until its last delivery has left"),
        };
        let release = due.release;
        (
            Descriptor {
                release,
                ..descriptor
            },
            bytes,
        )
    }

    /// Puts a delivery back after the port was full. Its place among frames of
    /// the same release is lost; a port with space does not report itself full.
    pub fn put_back(&mut self, due: DueDelivery) {
        let link_id = self.decider.link_id;
        self.released.push(link_id, due.release, due.number);
    }

    /// Notes that a delivery has left.
    pub fn sent(&mut self, due: DueDelivery, line: &mut DelayLineReader, account: &mut Account) {
        let Some(held) = self.held.get_mut(due.number) else {
            return;
        };
        account.taken_off(&line.descriptor(&held.frame));
        held.waiting -= 1;
        if held.waiting == 0 && held.decided {
            self.free(due.number, line);
        }
    }

    /// Returns the time of the next decision or delivery.
    pub fn next_at(&mut self) -> Option<Nanos> {
        let decision = self.decider.link.next_at();
        let decision = decision.map(|at| at.saturating_add(self.slack));
        decision.into_iter().chain(self.released.next_at()).min()
    }

    /// Ends the recording.
    pub fn finish(&mut self) {
        self.decider.finish();
    }

    /// Publishes the accounts.
    pub fn publish(&mut self) {
        self.decider.publish();
    }

    fn free(&mut self, number: u64, line: &mut DelayLineReader) {
        if let Some(held) = self.held.take(number) {
            line.free(held.frame);
        }
    }
}

impl HeldFrames {
    fn push(&mut self, frame: HeldFrame, offered: u64) {
        self.frames.push_back(Some(ManagedFrame {
            frame,
            offered,
            delivered: false,
            waiting: 0,
            decided: false,
        }));
    }

    fn index(&self, number: u64) -> Option<usize> {
        Some(number.checked_sub(self.first)? as usize)
    }

    fn get(&self, number: u64) -> Option<&ManagedFrame> {
        self.frames.get(self.index(number)?)?.as_ref()
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut ManagedFrame> {
        let index = self.index(number)?;
        self.frames.get_mut(index)?.as_mut()
    }

    fn take(&mut self, number: u64) -> Option<ManagedFrame> {
        let index = self.index(number)?;
        let held = self.frames.get_mut(index)?.take();
        while let Some(None) = self.frames.front() {
            self.frames.pop_front();
            self.first += 1;
        }
        held
    }
}
