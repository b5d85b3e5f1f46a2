//! A managed queue in a live run.
//!
//! Frames arrive on the line undecided, with their arrivals. The egress stage offers them
//! to the link, and keeps their bytes while they are queued or wait for their release.

use longwire_engine::{
    Delivery, DropReason, FrameAccess, FrameMeta, Lane, LaneHost, Link, Nanos, ReleaseQueue,
    Verdict,
};
use longwire_io::delay_line::{DelayLineReader, Descriptor, HeldFrame};
use slab::Slab;

use super::account::Account;
use super::decider::{Decider, LinkAccounts};

/// A frame taken off the line.
struct TakenFrame {
    frame: HeldFrame,
    /// Number among recorded offers.
    offered: u64,
    /// Number of handles, in the queue or waiting for release.
    handles: u32,
}

/// A handle of a [`TakenFrame`].
#[derive(Clone, Copy, Debug)]
struct ManagedFrame(usize);

/// A due delivery.
pub(super) struct DueDelivery {
    frame: ManagedFrame,
    release: Nanos,
}

/// A link with a managed queue, and the frames in and after it.
pub(super) struct ManagedLine {
    lane: Lane<ManagedFrame>,
    accounts: LinkAccounts,
    taken: Slab<TakenFrame>,
    released: ReleaseQueue<ManagedFrame>,
    /// Maximum decision delay.
    slack: Nanos,
}

/// The host of the lane.
struct ManagedHost<'a> {
    accounts: &'a mut LinkAccounts,
    taken: &'a mut Slab<TakenFrame>,
    released: &'a mut ReleaseQueue<ManagedFrame>,
    line: &'a mut DelayLineReader,
    account: &'a mut Account,
}

/// Maximum decision delay. Frames that the kernel holds longer count as having arrived
/// later.
const SLACK_MAX: Nanos = Nanos::from_micros(200);

impl ManagedLine {
    pub fn new(decider: Decider) -> ManagedLine {
        let Decider { link, accounts } = decider;
        ManagedLine {
            slack: link.poll_slack().min(SLACK_MAX),
            lane: Lane::new(link),
            accounts,
            taken: Slab::new(),
            released: ReleaseQueue::new(),
        }
    }

    fn borrow<'a>(
        &'a mut self,
        line: &'a mut DelayLineReader,
        account: &'a mut Account,
    ) -> (&'a mut Lane<ManagedFrame>, ManagedHost<'a>) {
        let host = ManagedHost {
            accounts: &mut self.accounts,
            taken: &mut self.taken,
            released: &mut self.released,
            line,
            account,
        };
        (&mut self.lane, host)
    }

    /// Takes in all frames on the line. If the queue has already decided beyond a frame's
    /// arrival, the link moves the arrival, and the frame is late by the difference.
    pub fn take_in(&mut self, line: &mut DelayLineReader, account: &mut Account) {
        let (lane, mut host) = self.borrow(line, account);
        while let Some(frame) = host.line.take() {
            let meta = host.meta(&frame);
            let arrival = meta.arrival;
            host.accounts.log_offer(meta);
            lane.poll(..=arrival, &mut host);
            let frame = ManagedFrame(host.taken.insert(TakenFrame {
                frame,
                offered: 0,
                handles: 1,
            }));
            lane.offer(meta, frame, &mut host);
            let moved = lane.link().last_arrival().saturating_sub(arrival);
            let account = &mut host.account;
            if moved > account.judge.tolerance {
                let (cause, _) = account.judge.cause(arrival, moved);
                if let Some(artifact) = cause.artifact() {
                    account.cells().artifacts[artifact].add(1);
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
        let (lane, mut host) = self.borrow(line, account);
        if lane.next_at().is_some_and(|next| next <= until) {
            host.accounts.log_time(until);
            lane.poll(..=until, &mut host);
        }
    }

    /// Returns release and tag of the next delivery.
    pub fn peek(&mut self, line: &DelayLineReader) -> Option<(Nanos, u32)> {
        let (release, frame) = self.released.peek()?;
        let taken = self.taken.get(frame.0)?;
        Some((release, line.descriptor(&taken.frame).tag))
    }

    /// Returns the next delivery due at `now`.
    pub fn pop_due(&mut self, now: Nanos) -> Option<DueDelivery> {
        let (_, release, frame) = self.released.pop_due(now)?;
        Some(DueDelivery { frame, release })
    }

    /// Returns the frame in the form that ports accept.
    pub fn frame<'a>(
        &'a self,
        due: &DueDelivery,
        line: &'a DelayLineReader,
    ) -> (Descriptor, &'a [u8]) {
        let frame = &self.taken[due.frame.0].frame;
        let release = due.release;
        (
            Descriptor {
                release,
                ..line.descriptor(frame)
            },
            line.bytes(frame),
        )
    }

    /// Returns a delivery to the queue after the port rejected it. It loses its place
    /// among equal releases; acceptable, as a port with space does not reject frames.
    pub fn put_back(&mut self, due: DueDelivery) {
        let link_id = self.accounts.link_id;
        self.released.push(link_id, due.release, due.frame);
    }

    /// Records that a delivery left.
    pub fn sent(&mut self, due: DueDelivery, line: &mut DelayLineReader, account: &mut Account) {
        let (_, mut host) = self.borrow(line, account);
        host.free(due.frame);
    }

    /// Returns the time of the next decision or delivery.
    pub fn next_at(&mut self) -> Option<Nanos> {
        let decision = self.lane.next_at();
        let decision = decision.map(|at| at.saturating_add(self.slack));
        decision.into_iter().chain(self.released.next_at()).min()
    }

    /// Ends the recording.
    pub fn finish(&mut self) {
        self.accounts.finish(self.lane.link());
    }

    /// Publishes the accounts.
    pub fn publish(&mut self) {
        self.accounts.publish(self.lane.link());
    }
}

impl ManagedHost<'_> {
    /// Returns arrival and length of a frame on the line.
    fn meta(&self, frame: &HeldFrame) -> FrameMeta {
        let descriptor = self.line.descriptor(frame);
        FrameMeta {
            arrival: descriptor.release,
            len: descriptor.wire_len,
        }
    }

    /// Drops a handle; the last one frees the frame.
    fn free(&mut self, frame: ManagedFrame) {
        let taken = &mut self.taken[frame.0];
        self.account.taken_off(&self.line.descriptor(&taken.frame));
        taken.handles -= 1;
        if taken.handles == 0 {
            let taken = self.taken.remove(frame.0);
            self.line.free(taken.frame);
        }
    }
}

impl FrameAccess<ManagedFrame> for ManagedHost<'_> {
    fn bytes<'a>(&'a self, frame: &'a ManagedFrame) -> &'a [u8] {
        self.line.bytes(&self.taken[frame.0].frame)
    }

    fn edit(&mut self, frame: &mut ManagedFrame, edit: &mut dyn FnMut(&mut [u8])) {
        edit(self.line.bytes_mut(&mut self.taken[frame.0].frame));
    }

    fn copy(&mut self, frame: &mut ManagedFrame) -> ManagedFrame {
        self.taken[frame.0].handles += 1;
        *frame
    }
}

impl LaneHost<ManagedFrame> for ManagedHost<'_> {
    fn offered(&mut self, frame: &mut ManagedFrame, meta: FrameMeta, link: &Link) {
        if self.accounts.records() {
            let taken = &mut self.taken[frame.0];
            let bytes = self.line.bytes(&taken.frame);
            taken.offered = self.accounts.record_offer(link, meta.len, bytes);
        }
    }

    fn icmp_error(&mut self, _frame: &ManagedFrame, at: Nanos, error: &[u8]) {
        self.accounts.send_icmp_error(at, error);
    }

    fn delivered(&mut self, frame: ManagedFrame, delivery: &Delivery, is_duplicate: bool) {
        let taken = &self.taken[frame.0];
        let verdict = Verdict::Deliver(*delivery);
        self.accounts.decided(taken.offered, verdict, is_duplicate);
        if is_duplicate {
            self.account.shared.link.stage.crossed.add(1);
        } else {
            let meta = self.meta(&taken.frame);
            self.accounts.log_delivery(meta, delivery);
        }
        let link_id = self.accounts.link_id;
        self.released.push(link_id, delivery.release, frame);
    }

    fn dropped(&mut self, frame: ManagedFrame, reason: DropReason) {
        let offered = self.taken[frame.0].offered;
        self.accounts.decided(offered, Verdict::Drop(reason), false);
        self.free(frame);
    }
}
