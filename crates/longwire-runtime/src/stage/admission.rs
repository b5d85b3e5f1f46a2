//! Admission of arriving frames: offers them to the link and puts delivered frames on the delay
//! line.

use std::sync::Arc;

use longwire_engine::models::mtu::Mtu;
use longwire_engine::{Delivery, Fragments, FrameAccess, FrameMeta, Nanos, Verdict};
use longwire_io::delay_line::{DelayLineWriter, Note, PushError};
use longwire_io::port::offload::{SuperPacket, TrainPart};
use longwire_io::{Offload, RxFrame};

use super::addresses::PortAddresses;
use super::lane::{LaneFrames, LaneParts, RunLane};
use super::segments::{CutForm, Cutter, Run, TrainNumbers};
use crate::counters::{Artifact, BurstCounts, LinkShared};
use crate::deciding::InPlaceLane;

/// Offers arriving frames to the link and puts delivered frames on the delay line.
pub(crate) struct Admission {
    /// The lane, if it decides at arrival. A link with a managed queue is in the egress stage, and
    /// frames pass undecided.
    lane: Option<RunLane<()>>,
    /// The link's MTU. Longer frames are fragmented at admission, even if the link is in the egress
    /// stage.
    mtu: Mtu,
    /// Whether super-packets are always cut into wire frames.
    cut_all: bool,
    /// Whether frames pass unchanged and undecided.
    pub(super) undecided: bool,
    /// The delay line.
    pub(super) entry: LineEntry,
    pub(super) form: CutForm,
    /// Buffer for frames cut from super-packets.
    pub(super) piece: Vec<u8>,
    pub(super) trains: TrainNumbers,
    /// Buffer for a modified frame.
    scratch: Vec<u8>,
    fragments: Fragments,
    /// Arrival of the last frame.
    pub latest: Nanos,
    bursts: u32,
    /// Watches answers to address requests.
    pub addresses: Option<PortAddresses>,
    /// Number of wire frames that could not be cut from their super-packet.
    pub unmade: u64,
    pub shared: Arc<LinkShared>,
}

/// A delay line's writing end, with the counts of its burst.
pub(super) struct LineEntry {
    pub line: DelayLineWriter,
    /// Tag of frames on the line.
    pub tag: u32,
    lend_from: usize,
    counts: BurstCounts,
    shared: Arc<LinkShared>,
}

/// An arriving frame that its link does not change.
struct UnchangedFrame<'a> {
    meta: FrameMeta,
    bytes: &'a [u8],
    /// Set when the frame is delivered.
    release: Option<Nanos>,
}

/// An arriving frame that its link may edit and copy. Deliveries go onto the line.
struct ChangingFrame<'a> {
    frame: RxFrame<'a>,
    part: Option<TrainPart>,
    entry: &'a mut LineEntry,
    /// The bytes of an edited or copied frame.
    scratch: &'a mut Vec<u8>,
    is_changed: bool,
}

/// The parts from which an [`Admission`] is built.
pub(crate) struct AdmissionParts {
    /// The link; `None` if it has a managed queue and is therefore in the egress stage.
    pub link: Option<LaneParts>,
    /// The link's MTU. Longer frames are fragmented before they are offered.
    pub mtu: Mtu,
    /// The delay line for delivered frames.
    pub line: DelayLineWriter,
    /// Form of offloaded frames. The output port must support it.
    pub form: CutForm,
    /// Minimum length of frames that stay in the port's memory, if the output port can send from
    /// that memory.
    pub lend_from: Option<usize>,
    pub shared: Arc<LinkShared>,
}

/// Number of bursts between readings of the memory in use.
const MEMORY_EVERY: u32 = 16;

impl Admission {
    pub fn new(parts: AdmissionParts) -> Admission {
        let lane = parts.link.map(RunLane::new);
        // A recorder needs the wire frames, which a port without offloads needs again.
        let records = |lane: &RunLane<()>| lane.records() && parts.form != CutForm::Trains;
        let one_by_one = |lane: &RunLane<()>| lane.link().changes_frames() || records(lane);
        Admission {
            undecided: lane.is_none() && !matches!(parts.mtu, Mtu::Fragment(_)),
            cut_all: lane.as_ref().is_none_or(one_by_one),
            lane,
            mtu: parts.mtu,
            entry: LineEntry {
                line: parts.line,
                tag: 0,
                lend_from: parts.lend_from.unwrap_or(usize::MAX),
                counts: BurstCounts::default(),
                shared: Arc::clone(&parts.shared),
            },
            form: parts.form,
            piece: Vec::new(),
            trains: TrainNumbers::new(),
            scratch: Vec::new(),
            fragments: Fragments::default(),
            latest: Nanos::ZERO,
            bursts: 0,
            addresses: None,
            unmade: 0,
            shared: parts.shared,
        }
    }

    /// Returns whether [`Admission::admit_directly`] is faster than [`Admission::admit`].
    pub fn decides_directly(&self) -> bool {
        let lane = self.lane.as_ref().filter(|_| !self.cut_all);
        lane.is_some_and(RunLane::is_plain) && self.addresses.is_none()
    }

    /// Like [`Admission::admit`] if [`Admission::decides_directly`]. Fast for wire frames that the
    /// link delivers unchanged or drops, at arrival.
    #[inline(always)]
    pub fn admit_directly(&mut self, frame: RxFrame<'_>) {
        let is_whole = frame.offload == Offload::NONE && frame.wire_len == frame.bytes.len() as u32;
        let meta = FrameMeta::new(frame.arrival, frame.wire_len);
        let release = match &mut self.lane {
            Some(lane) if is_whole => lane.release_of(&meta, frame.bytes),
            _ => None,
        };
        let Some(release) = release else {
            return self.admit(frame.by_fields());
        };
        self.latest = frame.arrival;
        self.entry.count_arrival(frame.wire_len);
        if let Some(release) = release {
            self.entry.keep(&frame, release);
        }
    }

    /// Admits an arriving buffer.
    #[inline(never)]
    pub fn admit(&mut self, frame: RxFrame<'_>) {
        self.note_arrival(&frame);
        if frame.offload.checksum.is_none() && frame.offload.segments.is_none() {
            self.admit_wire_frame(frame);
        } else if self.cut_all {
            self.admit_cut(frame);
        } else {
            self.admit_offloaded(frame);
        }
    }

    /// Like [`Admission::admit`], for a stage without a link. Fast for wire frames.
    #[inline(always)]
    pub fn admit_undecided(&mut self, frame: RxFrame<'_>) {
        if frame.offload != Offload::NONE || self.addresses.is_some() {
            return self.admit(frame.by_fields());
        }
        self.latest = frame.arrival;
        self.entry.count_arrival(frame.wire_len);
        self.entry.keep(&frame, frame.arrival);
    }

    #[inline(always)]
    fn note_arrival(&mut self, frame: &RxFrame<'_>) {
        self.latest = frame.arrival;
        if let Some(addresses) = &self.addresses {
            addresses.arrived(frame.bytes, frame.arrival);
        }
    }

    /// The common case: one buffer with one wire frame, delivered unchanged or lost.
    #[inline]
    fn admit_wire_frame(&mut self, frame: RxFrame<'_>) {
        let Some(lane) = self.lane.as_mut().filter(|_| !self.cut_all) else {
            return self.admit_part(frame, None);
        };
        self.entry.count_arrival(frame.wire_len);
        let meta = FrameMeta::new(frame.arrival, frame.wire_len);
        let mut unchanged = UnchangedFrame::new(meta, frame.bytes);
        lane.offer(meta, (), &mut unchanged);
        if let Some(release) = unchanged.release {
            self.entry.keep(&frame, release);
        }
    }

    /// Admits a wire frame for a stage without a link, or for a link that takes frames one at a
    /// time because it edits, fragments, duplicates or records them.
    #[inline]
    fn admit_part(&mut self, frame: RxFrame<'_>, part: Option<TrainPart>) {
        if self.undecided {
            self.entry.count_arrival(frame.wire_len);
            self.entry.keep_part(&frame, frame.arrival, part);
        } else {
            self.admit_changing(frame, part);
        }
    }

    #[cold]
    fn admit_changing(&mut self, frame: RxFrame<'_>, part: Option<TrainPart>) {
        if self.admit_fragments(&frame) {
            return;
        }
        self.entry.count_arrival(frame.wire_len);
        let Some(lane) = &mut self.lane else {
            // The egress stage offers the frame. The line holds its arrival in place of a release.
            return self.entry.keep_part(&frame, frame.arrival, part);
        };
        let meta = FrameMeta::new(frame.arrival, frame.wire_len);
        let mut changing = ChangingFrame {
            frame,
            part,
            entry: &mut self.entry,
            scratch: &mut self.scratch,
            is_changed: false,
        };
        lane.offer(meta, (), &mut changing);
    }

    /// Fragments a frame if it exceeds the MTU and admits the fragments. Returns whether it did.
    fn admit_fragments(&mut self, frame: &RxFrame<'_>) -> bool {
        let mut fragments = std::mem::take(&mut self.fragments);
        let cut = fragments.cut(self.mtu, frame.bytes);
        if cut {
            for bytes in fragments.iter() {
                self.admit_wire_frame(whole(bytes, frame.arrival));
            }
        }
        self.fragments = fragments;
        cut
    }

    /// Cuts a super-packet and admits its frames one at a time. Frames for a link have complete
    /// checksums.
    fn admit_cut(&mut self, frame: RxFrame<'_>) {
        let mut piece = std::mem::take(&mut self.piece);
        let train = self.trains.next();
        let mut cutter = Cutter::new(train, frame.bytes, frame.offload, &mut piece);
        while cutter.next_wire_len().is_some() {
            // Treat all frames as one run, which is cut below.
            cutter.decided(Some(frame.arrival));
        }
        let form = match self.form {
            CutForm::Unfinished if self.undecided => CutForm::Unfinished,
            _ => CutForm::Finished,
        };
        if let Some(run) = cutter.last_run() {
            let unmade = cutter.cut(run, form, |cut| {
                let piece = RxFrame {
                    offload: cut.offload,
                    ..whole(cut.bytes, frame.arrival)
                };
                self.admit_part(piece, cut.part);
            });
            self.unmade += unmade;
        }
        self.piece = piece;
    }

    /// Admits a super-packet. The link decides each wire frame, and frames that leave together
    /// share a buffer. A recorder receives wire frames with complete checksums.
    fn admit_offloaded(&mut self, frame: RxFrame<'_>) {
        let mut piece = std::mem::take(&mut self.piece);
        let train = self.trains.next();
        let mut cutter = Cutter::new(train, frame.bytes, frame.offload, &mut piece);
        let records = self.lane.as_ref().is_some_and(RunLane::records_frames);
        while let Some(len) = cutter.next_wire_len() {
            let bytes = if records {
                cutter.next_finished()
            } else {
                Some(frame.bytes)
            };
            let Some(bytes) = bytes else {
                self.unmade += 1;
                cutter.decided(None);
                continue;
            };
            self.entry.count_arrival(len);
            let meta = FrameMeta::new(frame.arrival, len);
            let mut unchanged = UnchangedFrame::new(meta, bytes);
            if let Some(lane) = &mut self.lane {
                lane.offer(meta, (), &mut unchanged);
            }
            let release = unchanged.release;
            if let Some(run) = cutter.decided(release) {
                self.unmade += self.entry.keep_run(&mut cutter, run, self.form);
            }
        }
        if let Some(run) = cutter.last_run() {
            self.unmade += self.entry.keep_run(&mut cutter, run, self.form);
        }
        self.piece = piece;
    }

    /// Ends the recording and publishes the last counts.
    pub fn finish(&mut self) {
        if let Some(lane) = &mut self.lane {
            lane.finish();
        }
        self.publish_counts();
    }

    /// Publishes the burst's counts before its frames, so that departures never exceed arrivals.
    pub fn publish(&mut self) {
        self.entry.counts.publish_in(&self.shared.ingress);
        self.entry.line.publish();
    }

    /// Publishes the memory in use and the link's records.
    pub fn publish_counts(&mut self) {
        self.entry.counts.publish_in(&self.shared.ingress);
        // Reading the memory in use moves a cache line from the reader's core.
        if self.bursts.is_multiple_of(MEMORY_EVERY) {
            let memory = self.entry.line.memory_in_use();
            self.shared.ingress.memory.memory_max.raise(memory);
        }
        self.bursts = self.bursts.wrapping_add(1);
        if let Some(lane) = &mut self.lane {
            lane.publish();
        }
    }
}

impl LineEntry {
    /// Counts an arriving wire frame.
    #[inline]
    pub fn count_arrival(&mut self, len: u32) {
        self.counts.passed(1, len.into());
    }

    /// Puts a frame on the line, possibly as part of a train.
    #[inline(never)]
    pub fn keep_part(&mut self, frame: &RxFrame<'_>, release: Nanos, part: Option<TrainPart>) {
        if part.is_none() && frame.offload == Offload::NONE {
            return self.keep(frame, release);
        }
        let note = Note {
            part,
            offload: frame.offload,
            ..self.note(release, frame.wire_len)
        };
        let kept = self.line.push(frame.bytes, note);
        self.count_kept(kept, 1);
    }

    /// Puts a frame on the line. Inlined only in the common case.
    #[inline(always)]
    fn keep(&mut self, frame: &RxFrame<'_>, release: Nanos) {
        if frame.lent.is_some() && frame.bytes.len() >= self.lend_from {
            return self.keep_lent(frame.lent, frame.bytes.len(), frame.wire_len, release);
        }
        let kept = self
            .line
            .push(frame.bytes, self.note(release, frame.wire_len));
        self.count_kept(kept, 1);
    }

    /// Puts a frame that stays in its port's memory on the line.
    // By value and not inlined, so that the common case keeps frame and note in registers.
    #[inline(never)]
    fn keep_lent(&mut self, lent: Option<u64>, len: usize, wire_len: u32, release: Nanos) {
        let note = self.note(release, wire_len);
        let place = lent.unwrap_or_default();
        let kept = self.line.push_lent(place, len as u32, note);
        self.count_kept(kept, 1);
    }

    /// Puts frames that leave together on the line. Returns the number of wire frames that could
    /// not be cut.
    pub fn keep_run(&mut self, cutter: &mut Cutter<'_>, run: Run, form: CutForm) -> u64 {
        cutter.cut(run, form, |cut| {
            let note = Note {
                offload: cut.offload,
                part: cut.part,
                ..self.note(run.release, cut.bytes.len() as u32)
            };
            let kept = self.line.push(cut.bytes, note);
            self.count_kept(kept, cut.wire_frames);
        })
    }

    /// Returns the line record for a complete wire frame.
    #[inline]
    fn note(&self, release: Nanos, wire_len: u32) -> Note {
        Note {
            release,
            tag: self.tag,
            offload: Offload::NONE,
            part: None,
            wire_len,
        }
    }

    /// Counts wire frames that were put on the line, or the artifact if that failed.
    #[inline]
    fn count_kept(&mut self, kept: Result<(), PushError>, wire_frames: u64) {
        let artifact = match kept {
            Ok(()) => return self.counts.crossed(wire_frames),
            Err(PushError::BudgetExhausted) => Artifact::Memory,
            Err(PushError::TooLong) => Artifact::Refused,
        };
        self.shared.ingress.artifacts[artifact].add(wire_frames);
    }
}

impl<'a> UnchangedFrame<'a> {
    fn new(meta: FrameMeta, bytes: &'a [u8]) -> UnchangedFrame<'a> {
        UnchangedFrame {
            meta,
            bytes,
            release: None,
        }
    }
}

impl FrameAccess<()> for UnchangedFrame<'_> {
    #[inline]
    fn bytes<'a>(&'a self, _frame: &'a ()) -> &'a [u8] {
        self.bytes
    }

    fn copy(&mut self, _frame: &mut ()) {}
}

impl LaneFrames<()> for UnchangedFrame<'_> {
    fn meta(&self, _frame: &()) -> FrameMeta {
        self.meta
    }

    #[inline]
    fn deliver(&mut self, _frame: (), delivery: &Delivery, _is_duplicate: bool) {
        self.release = Some(delivery.release);
    }

    #[inline]
    fn discard(&mut self, _frame: ()) {}
}

impl ChangingFrame<'_> {
    /// Copies the frame before its first change.
    fn change(&mut self) {
        if !self.is_changed {
            self.is_changed = true;
            self.scratch.clear();
            self.scratch.extend_from_slice(self.frame.bytes);
        }
    }
}

impl FrameAccess<()> for ChangingFrame<'_> {
    fn bytes<'a>(&'a self, _frame: &'a ()) -> &'a [u8] {
        if self.is_changed {
            self.scratch
        } else {
            self.frame.bytes
        }
    }

    fn edit(&mut self, _frame: &mut (), edit: &mut dyn FnMut(&mut [u8])) {
        self.change();
        edit(self.scratch);
        // An edited frame must not be joined, because joining would repair its checksum.
        self.part = None;
    }

    fn copy(&mut self, _frame: &mut ()) {
        // A port lends a frame only once.
        self.change();
    }
}

impl LaneFrames<()> for ChangingFrame<'_> {
    fn meta(&self, _frame: &()) -> FrameMeta {
        FrameMeta::new(self.frame.arrival, self.frame.wire_len)
    }

    fn deliver(&mut self, _frame: (), delivery: &Delivery, _is_duplicate: bool) {
        let whole = RxFrame {
            bytes: self.scratch,
            lent: None,
            ..self.frame
        };
        let frame = if self.is_changed { &whole } else { &self.frame };
        self.entry.keep_part(frame, delivery.release, self.part);
    }

    fn discard(&mut self, _frame: ()) {}
}

/// Returns a complete wire frame without offloads.
fn whole(bytes: &[u8], arrival: Nanos) -> RxFrame<'_> {
    RxFrame {
        bytes,
        arrival,
        offload: Offload::NONE,
        wire_len: bytes.len() as u32,
        lent: None,
    }
}

/// Maximum bytes of a record in addition to its frame: two headers and alignment.
const RECORD_EXTRA: usize = 48;

impl Admission {
    /// Admits a buffer for a stage without a link. `lane` decides its frames if possible.
    #[inline]
    pub fn admit_by(&mut self, frame: RxFrame<'_>, lane: &mut InPlaceLane<'_>) {
        if !self.undecided || !lane.admits(frame.arrival) || !self.leaves_as_it_is(&frame) {
            lane.close();
            return self.admit(frame);
        }
        self.note_arrival(&frame);
        if frame.offload.segments.is_some() {
            return self.admit_train_by(&frame, lane);
        }
        self.entry.count_arrival(frame.wire_len);
        if self.entry.line.make_room(frame.bytes.len()).is_err() {
            self.shared.ingress.artifacts[Artifact::Memory].add(1);
            return;
        }
        let verdict = lane.offer(frame.arrival, frame.wire_len, frame.bytes);
        let release = match verdict {
            Verdict::Deliver(delivery) => delivery.release,
            Verdict::Queued => frame.arrival,
            Verdict::Drop(_) => return,
        };
        self.entry.keep_part(&frame, release, None);
        self.entry.line.publish();
        lane.follow(&self.entry.line, verdict != Verdict::Queued);
    }

    /// Returns whether the output port supports the frame's offloads, and its segments match its
    /// headers.
    #[inline]
    fn leaves_as_it_is(&self, frame: &RxFrame<'_>) -> bool {
        frame.offload == Offload::NONE
            || self.form == CutForm::Unfinished
                && frame
                    .offload
                    .segments
                    .is_none_or(|segments| SuperPacket::of(frame.bytes, segments).is_some())
    }

    /// Offers a super-packet's wire frames. Decided frames that leave together become one record. A
    /// queued frame becomes a separate record, because its release is unknown.
    fn admit_train_by(&mut self, frame: &RxFrame<'_>, lane: &mut InPlaceLane<'_>) {
        let mut piece = std::mem::take(&mut self.piece);
        let train = self.trains.next();
        let mut cutter = Cutter::new(train, frame.bytes, frame.offload, &mut piece);
        // Space on the line needed by the pending run, in bytes.
        let mut run_bytes = 0;
        while let Some(len) = cutter.next_wire_len() {
            self.entry.count_arrival(len);
            let bytes = len as usize + RECORD_EXTRA;
            let verdict = if self.entry.line.make_room(run_bytes + bytes).is_ok() {
                Some(lane.offer(frame.arrival, len, frame.bytes))
            } else {
                self.shared.ingress.artifacts[Artifact::Memory].add(1);
                None
            };
            let release = match verdict {
                Some(Verdict::Deliver(delivery)) => Some(delivery.release),
                _ => None,
            };
            match cutter.decided(release) {
                Some(run) => {
                    self.keep_by(&mut cutter, run, lane, true);
                    run_bytes = 0;
                }
                None if release.is_none() => run_bytes = 0,
                None => {}
            }
            if release.is_some() {
                run_bytes += bytes;
            }
            if verdict == Some(Verdict::Queued) {
                let queued = cutter.last_frame(frame.arrival);
                self.keep_by(&mut cutter, queued, lane, false);
            }
        }
        if let Some(run) = cutter.last_run() {
            self.keep_by(&mut cutter, run, lane, true);
        }
        self.piece = piece;
    }

    /// Puts a run on the line as one record. The line must have room for it.
    fn keep_by(
        &mut self,
        cutter: &mut Cutter<'_>,
        run: Run,
        lane: &mut InPlaceLane<'_>,
        decided: bool,
    ) {
        self.unmade += self.entry.keep_run(cutter, run, CutForm::Trains);
        self.entry.line.publish();
        lane.follow(&self.entry.line, decided);
    }
}
