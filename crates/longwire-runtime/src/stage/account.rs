//! An egress stage's accounting: counts, lateness, records and logs of departing frames.

use std::sync::Arc;

use longwire_engine::{LinkId, Nanos};
use longwire_io::delay_line::{DelayLineReader, Descriptor};
use longwire_io::port::offload::Joiner;
use longwire_io::{PortError, PushResult, TxFrame, TxPort};

use super::BURST;
use super::addresses::PortAddresses;
use super::lateness::{Departures, Judge, LATENESS_STEP, LatenessRecorder};
use super::segments::Cutter;
use crate::clock::Clock;
use crate::counters::LinkShared;
use crate::counters::{Artifact, BurstCounts, StageCells};
use crate::record::{Event, RecordHandle};
use crate::sent::SentLog;

/// Returns the number of wire frames in a buffer, and their total bytes.
#[inline]
pub(crate) fn wire_frames_of(frame: &Descriptor) -> (u32, u64) {
    let len = u64::from(frame.len());
    if frame.is_plain() {
        return (1, len);
    }
    match frame.offload().segments {
        None => (1, len),
        Some(segments) => {
            let frames = segments.wire_frames(len as usize).len() as u64;
            let repeated = (frames - 1) * u64::from(segments.header_len);
            (frames as u32, len + repeated)
        }
    }
}

/// Builds a descriptor's [`TxFrame`].
#[inline]
fn outgoing<'a>(frame: &Descriptor, bytes: &'a [u8]) -> TxFrame<'a> {
    TxFrame {
        bytes,
        release: frame.release(),
        offload: frame.offload(),
        lent: frame.lent(),
        wire_len: frame.wire_len(),
    }
}

/// Returns the artifact for a late frame: the port may have been full at `full_at`, after its
/// release, or the stage may be overloaded.
#[inline]
fn local_cause(
    cause: Option<Artifact>,
    release: Nanos,
    full_at: Nanos,
    overloaded: bool,
) -> Option<Artifact> {
    match cause {
        Some(Artifact::Late) if release <= full_at => Some(Artifact::LateReceiver),
        Some(Artifact::Late) if overloaded => Some(Artifact::Overload),
        cause => cause,
    }
}

/// Maximum distance between joined frames, even if both are overdue. Joining frames further apart
/// would save little, and a capture at the receiver should show frames as on the wire.
const JOINED_WITHIN: Nanos = Nanos::from_micros(20);

/// A frame pushed to the port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PushedFrame {
    release: Nanos,
    wire_frames: u32,
    wire_bytes: u32,
    /// The last link that the frame crossed if links are counted too, else [`NO_LINK`].
    link: LinkId,
    /// Whether the next frame in the batch shares this frame's buffer in the port.
    joined: bool,
}

const NO_LINK: LinkId = LinkId(u32::MAX);

/// Polling interval for the port's losses. Reading them may take a system call.
const LOSSES_EVERY: Nanos = Nanos::from_millis(100);

/// A frame that left late.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateFrame {
    /// The last link that the frame crossed, if links are counted too.
    pub link: Option<LinkId>,
    pub lateness: Nanos,
    /// Number of wire frames.
    pub wire_frames: u64,
    /// The artifact to count for the port.
    pub artifact: Artifact,
}

/// An egress stage's accounting.
#[derive(Default)]
pub(crate) struct Account {
    counts: BurstCounts,
    lateness: LatenessRecorder,
    /// Classifies lateness by its cause.
    pub judge: Judge,
    /// Whether late frames count as overload.
    pub overloaded: bool,
    /// Last time at which the port was full. Frames released before then have waited for its
    /// receiver.
    pub full_at: Nanos,
    /// Frames pushed to the port that have not left.
    pub batch: Vec<PushedFrame>,
    /// Parts of one train that are due together and not yet pushed. They are the tail of the batch.
    train: Joiner,
    /// Number of parts in `train`.
    in_train: usize,
    /// Whether frames in the batch share buffers.
    joined: bool,
    /// Time at which the port's losses were last read.
    losses_read: Nanos,
    record_handle: Option<Box<RecordHandle>>,
    /// Buffer for recorded frames cut from super-packets.
    piece: Vec<u8>,
    /// How long before its release a frame is pushed to a port that holds it. Zero for ports that
    /// send immediately.
    pub lead: Nanos,
    /// Logs each frame before it leaves.
    pub log: Option<Box<SentLog>>,
    pub departures: Option<Box<Departures>>,
    pub timeless: bool,
    /// Watches address requests that leave.
    pub addresses: Option<PortAddresses>,
    pub shared: Arc<LinkShared>,
}

impl Account {
    pub fn new(
        judge: Judge,
        lead: Nanos,
        record_handle: Option<RecordHandle>,
        shared: Arc<LinkShared>,
    ) -> Account {
        Account {
            judge,
            batch: Vec::with_capacity(BURST),
            record_handle: record_handle.map(Box::new),
            lead,
            shared,
            ..Account::default()
        }
    }

    /// Returns the stage's counters.
    #[inline]
    pub fn cells(&self) -> &StageCells {
        &self.shared.egress
    }

    /// Counts a record taken off the line.
    #[inline]
    pub fn taken_off(&mut self, frame: &Descriptor) {
        self.counts.crossed(wire_frames_of(frame).0.into());
    }

    /// Pushes a frame due by `due_by` to the port, joining parts of one train first. `link` is the
    /// frame's last link, if links are counted too.
    #[inline(always)]
    pub fn give_from<T: TxPort>(
        &mut self,
        port: &mut T,
        link: Option<LinkId>,
        (frame, bytes): (&Descriptor, &[u8]),
        due_by: Nanos,
    ) -> PushResult {
        let pushed = if self.train.is_open() {
            self.give_part(port, frame, bytes)
        } else if frame.is_plain() {
            port.push(TxFrame::whole(bytes, frame.release()))
        } else if frame.part().is_none() {
            port.push(outgoing(frame, bytes))
        } else {
            self.give_part(port, frame, bytes)
        };
        if pushed == PushResult::Full {
            return pushed;
        }
        let wire = wire_frames_of(frame);
        self.counts.crossed(wire.0.into());
        match pushed {
            PushResult::Taken => self.pushed((link, wire), frame, bytes, due_by),
            PushResult::Refused => self.refuse(wire.0.into()),
            PushResult::Full => {}
        }
        pushed
    }

    /// Like [`Account::give_from`] for the plain frames at the front of a line. May end before other
    /// frames that are due. Returns whether the port is full.
    #[inline(always)]
    pub fn give_plain<T: TxPort>(
        &mut self,
        port: &mut T,
        line: &mut DelayLineReader,
        due_by: Nanos,
    ) -> bool {
        if self.train.is_open() || self.notes_bytes() {
            return false;
        }
        let room = BURST - self.batch.len();
        let (mut is_full, mut refused, mut bytes_out) = (false, 0, 0);
        let batch = &mut self.batch;
        let taken = line.take_plain(due_by, room, |release, bytes| {
            let pushed = port.push(TxFrame::whole(bytes, release));
            if pushed == PushResult::Taken {
                bytes_out += bytes.len() as u64;
                batch.push(PushedFrame {
                    release,
                    wire_frames: 1,
                    wire_bytes: bytes.len() as u32,
                    link: NO_LINK,
                    joined: false,
                });
                return true;
            }
            is_full = pushed == PushResult::Full;
            refused += u64::from(!is_full);
            !is_full
        });
        self.counts.crossed(taken);
        self.counts.passed(taken - refused, bytes_out);
        if refused > 0 {
            self.refuse(refused);
        }
        is_full
    }

    /// Pushes a router's ICMP error to the port. It does not count as a link's frame.
    pub fn give_icmp<T: TxPort>(
        &mut self,
        port: &mut T,
        error: &[u8],
        at: Nanos,
        now: Nanos,
    ) -> PushResult {
        if self.push_train(port) == PushResult::Full {
            return PushResult::Full;
        }
        let pushed = port.push(TxFrame::whole(error, at));
        if pushed == PushResult::Taken {
            self.batch.push(PushedFrame {
                release: at,
                wire_frames: 0,
                wire_bytes: 0,
                link: NO_LINK,
                joined: false,
            });
            if let Some(record_handle) = &mut self.record_handle {
                let handover = now.max(at);
                record_handle.push(error, |bytes| Event::Left {
                    handover,
                    wire_len: error.len() as u32,
                    bytes,
                });
            }
        }
        pushed
    }

    /// Pushes a frame that continues, begins or follows a train.
    #[inline(never)]
    fn give_part<T: TxPort>(
        &mut self,
        port: &mut T,
        frame: &Descriptor,
        bytes: &[u8],
    ) -> PushResult {
        // A port that holds frames until their release takes them one at a time.
        let joins = port.takes_offload() && self.lead == Nanos::ZERO;
        let part = frame.part().filter(|_| joins);
        let last = self.batch.last().map(|last| last.release);
        let near = last.is_some_and(|last| frame.release().saturating_sub(last) <= JOINED_WITHIN);
        if let Some(part) = part
            && near
            && self.train.append(part, bytes)
        {
            if let Some(last) = self.batch.last_mut() {
                last.joined = true;
            }
            self.joined = true;
            self.in_train += 1;
            return PushResult::Taken;
        }
        if self.push_train(port) == PushResult::Full {
            return PushResult::Full;
        }
        let Some(part) = part else {
            return port.push(outgoing(frame, bytes));
        };
        if port.free_slots() == 0 {
            return PushResult::Full;
        }
        self.train.start(part, bytes, frame.offload());
        self.in_train = 1;
        PushResult::Taken
    }

    /// Pushes the joined train to the port. Its frames were recorded when they were joined, so they
    /// stay in the recording if the port refuses the train after accepting the lengths of its
    /// parts.
    fn push_train<T: TxPort>(&mut self, port: &mut T) -> PushResult {
        if !self.train.is_open() {
            return PushResult::Taken;
        }
        let first = self.batch.len() - self.in_train;
        let (bytes, offload) = self.train.finish();
        let pushed = port.push(TxFrame {
            offload,
            ..TxFrame::whole(bytes, self.batch[first].release)
        });
        if pushed == PushResult::Full {
            return pushed;
        }
        self.drop_train();
        if pushed == PushResult::Refused {
            let frames = self.take_back(first);
            self.refuse(frames);
        }
        pushed
    }

    /// Removes the batch's frames from `first` on from the counts, and returns their number.
    fn take_back(&mut self, first: usize) -> u64 {
        self.publish_counts();
        let mut frames = 0;
        let traffic = &self.shared.egress.traffic;
        for frame in self.batch.drain(first..) {
            frames += u64::from(frame.wire_frames);
            traffic.bytes_out.subtract(frame.wire_bytes.into());
        }
        traffic.packets_out.subtract(frames);
        frames
    }

    /// Accounts for a frame pushed to the port.
    #[inline]
    fn pushed(
        &mut self,
        (link, (wire_frames, wire_bytes)): (Option<LinkId>, (u32, u64)),
        frame: &Descriptor,
        bytes: &[u8],
        due_by: Nanos,
    ) {
        self.counts.passed(wire_frames.into(), wire_bytes);
        self.batch.push(PushedFrame {
            release: frame.release(),
            wire_frames,
            wire_bytes: wire_bytes as u32,
            link: link.unwrap_or(NO_LINK),
            joined: false,
        });
        if self.notes_bytes() {
            self.note_bytes(frame, bytes, due_by);
        }
    }

    #[inline]
    fn notes_bytes(&self) -> bool {
        self.addresses.is_some() || self.record_handle.is_some() || self.log.is_some()
    }

    /// Passes a pushed frame to the address table, the recorder and the log.
    #[inline(never)]
    fn note_bytes(&mut self, frame: &Descriptor, bytes: &[u8], due_by: Nanos) {
        // The port holds an early frame until its release.
        let handover = due_by.saturating_sub(self.lead).max(frame.release());
        if let Some(addresses) = &self.addresses {
            addresses.delivered(bytes, handover);
        }
        if self.record_handle.is_some() {
            self.record(frame, bytes, handover);
        }
        if let Some(log) = &mut self.log {
            let due = (!self.timeless).then_some(frame.release());
            log.note(bytes, due);
        }
    }

    /// Records a buffer's wire frames, with complete checksums.
    #[cold]
    fn record(&mut self, frame: &Descriptor, bytes: &[u8], handover: Nanos) {
        let Some(record_handle) = &mut self.record_handle else {
            return;
        };
        // Recorded frames are not joined again, so their train needs no number.
        let mut cutter = Cutter::new(0, bytes, frame.offload(), &mut self.piece);
        while let Some(len) = cutter.next_wire_len() {
            let whole = frame.offload().segments.is_none();
            let wire_len = if whole { frame.wire_len() } else { len };
            if let Some(bytes) = cutter.next_finished() {
                record_handle.push(bytes, |bytes| Event::Left {
                    handover,
                    wire_len,
                    bytes,
                });
            }
            cutter.decided(None);
        }
    }

    /// Flushes the port, accounts for the frames that left, and passes late frames to `late`.
    /// Returns the number of frames and the time after the flush.
    #[inline]
    pub fn flush_noting<T: TxPort>(
        &mut self,
        port: &mut T,
        clock: &Clock,
        late: impl FnMut(LateFrame),
    ) -> Result<(usize, Nanos), PortError> {
        let handover = clock.now();
        if let Some(log) = &mut self.log {
            // The batch leaves with the flush.
            log.send(handover);
        }
        let whole = self.push_train(port);
        let mut left = port.flush()?;
        let mut again = Ok(0);
        if whole == PushResult::Full && self.push_train(port) != PushResult::Full {
            again = port.flush();
        }
        left += again.as_ref().copied().unwrap_or(0);
        let left = self.frames_in(left);
        let end = clock.now();
        self.handed_over(left, handover, end, late);
        self.look_at_losses(port, end);
        again?;
        if !self.batch.is_empty() {
            match port.unsent() {
                // Frames that did not leave were lost in the port, which counts them.
                0 => drop(self.batch.drain(..self.batch.len() - self.in_train)),
                _ => self.full_at = end,
            }
        }
        Ok((left, end))
    }

    /// Returns the number of batch entries in the port's first `buffers` buffers.
    #[inline]
    fn frames_in(&mut self, buffers: usize) -> usize {
        if !self.joined {
            return buffers;
        }
        let pushed = &self.batch[..self.batch.len() - self.in_train];
        let ends = pushed.iter().enumerate().filter(|(_, frame)| !frame.joined);
        let frames = match buffers.checked_sub(1) {
            Some(last) => ends.map(|(index, _)| index + 1).nth(last),
            None => Some(0),
        };
        let frames = frames.unwrap_or(pushed.len());
        self.joined = self.batch[frames..].iter().any(|frame| frame.joined);
        frames
    }

    /// Accounts for the lateness of the batch's first `left` frames, which left between `start` and
    /// `end`.
    ///
    /// The port sends frames one after another, so the duration of the flush is divided evenly
    /// among them. It may include work that is not the emulator's: if the receiver is on this
    /// machine, the kernel runs its receive path within the send call.
    fn handed_over(
        &mut self,
        left: usize,
        start: Nanos,
        end: Nanos,
        mut late: impl FnMut(LateFrame),
    ) {
        let left = left.min(self.batch.len());
        if self.timeless {
            self.batch.drain(..left);
            return self.publish();
        }
        let share = end.saturating_sub(start).as_nanos() / (left as u64).max(1);
        let mut handover = start;
        let mut departures = self.departures.as_deref_mut();
        let (counts, histogram) = self.lateness.counts_below(self.judge.threshold());
        for handed in &self.batch[..left] {
            let (release, frames) = (handed.release, handed.wire_frames);
            let lateness = handover.saturating_sub(release);
            if let Some(departures) = &mut departures {
                departures.record(release, lateness);
            }
            // At most `end`.
            handover = Nanos::from_nanos(handover.as_nanos() + share);
            let steps = lateness.as_nanos() / LATENESS_STEP;
            if let Some(count) = counts.get_mut(steps as usize)
                && let Some(sum) = count.checked_add(frames)
            {
                *count = sum;
                continue;
            }
            let (recorded, frames) = (steps * LATENESS_STEP, u64::from(frames));
            if frames > 0 {
                histogram.saturating_record_n(recorded, frames);
            }
            if lateness < self.judge.threshold() {
                continue;
            }
            let recorded = Nanos::from_nanos(recorded);
            let cause = self.judge.judge(release, lateness, recorded, frames);
            let (full_at, overloaded) = (self.full_at, self.overloaded);
            if let Some(artifact) = local_cause(cause, release, full_at, overloaded) {
                self.shared.egress.artifacts[artifact].add(frames);
                late(LateFrame {
                    link: Some(handed.link).filter(|link| *link != NO_LINK),
                    lateness,
                    wire_frames: frames,
                    artifact,
                });
            }
        }
        self.batch.drain(..left);
        self.publish();
        self.rest(end);
    }

    /// Counts frames that were due and had not left by `now`, the time of the last step.
    pub fn overdue(&self, release: Nanos, now: Nanos, frames: u64) {
        let (cause, _) = self.judge.cause(release, now.saturating_sub(release));
        let cause = local_cause(cause, release, self.full_at, self.overloaded);
        if let Some(artifact) = cause {
            self.cells().artifacts[artifact].add(frames);
        }
    }

    /// Counts frames that the port will never send as refused.
    pub fn refuse(&self, frames: u64) {
        self.cells().artifacts[Artifact::Refused].add(frames);
    }

    /// Counts a lost port's accepted, unsent frames as refused.
    pub fn port_lost(&mut self) {
        self.drop_train();
        let frames = self.take_back(0);
        self.refuse(frames);
    }

    /// Publishes the records at intervals.
    pub fn rest(&mut self, now: Nanos) {
        self.publish_counts();
        self.flush_records(now, false);
    }

    fn flush_records(&mut self, now: Nanos, force: bool) {
        if self.lateness.flush(now, &self.shared.lateness, force) {
            self.judge.share(&self.shared.corrections);
        }
        if let Some(departures) = &mut self.departures {
            departures.flush(now, &self.shared.departures, force);
        }
    }

    fn drop_train(&mut self) {
        self.train.clear();
        self.in_train = 0;
    }

    /// Publishes the last burst's counts.
    #[inline]
    pub fn publish_counts(&mut self) {
        self.counts.publish_out(&self.shared.egress);
    }

    /// Publishes the counts, and the losses of recorder and log.
    fn publish(&mut self) {
        self.publish_counts();
        if self.record_handle.is_none() && self.log.is_none() {
            return;
        }
        let recorder = self.record_handle.as_mut().map_or(0, |record_handle| {
            record_handle.flush();
            record_handle.lost()
        });
        let lost = recorder + self.log.as_ref().map_or(0, |log| log.lost());
        self.cells().artifacts[Artifact::Unrecorded].set(lost);
    }

    /// Publishes the port's own losses at intervals.
    #[inline]
    pub fn look_at_losses<T: TxPort>(&mut self, port: &mut T, now: Nanos) {
        if now.saturating_sub(self.losses_read) >= LOSSES_EVERY {
            self.losses_read = now;
            self.read_losses(port);
        }
    }

    #[cold]
    fn read_losses<T: TxPort>(&self, port: &mut T) {
        let losses = port.losses();
        let artifacts = &self.cells().artifacts;
        artifacts[Artifact::SendFailed].set(losses.send_failed);
        artifacts[Artifact::NoCarrier].set(losses.no_carrier);
    }

    /// Publishes the last records, including the port's own losses. Frames that will never leave
    /// count as in flight: those in the port's last buffers, and the parts of an unpushed train.
    /// Returns their number.
    pub fn finish<T: TxPort>(&mut self, port: &mut T, clock: &Clock) -> u64 {
        let pushed = &self.batch[..self.batch.len() - self.in_train];
        let buffers = pushed.iter().filter(|frame| !frame.joined).count();
        let first = self.frames_in(buffers.saturating_sub(port.unsent()));
        let unsent = self.take_back(first);
        self.shared.egress.crossed.subtract(unsent);
        self.drop_train();
        self.read_losses(port);
        let now = clock.now();
        if let Some(record_handle) = &mut self.record_handle {
            record_handle.finish();
        }
        self.publish();
        self.flush_records(now, true);
        unsent
    }
}
