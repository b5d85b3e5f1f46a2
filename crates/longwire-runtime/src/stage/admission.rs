//! Admission of arriving frames: offers them to the link and puts delivered ones on the
//! delay line.

use std::sync::Arc;

use longwire_engine::models::mtu::Mtu;
use longwire_engine::{Delivery, Fragments, FrameMeta, Nanos, Verdict};
use longwire_io::delay_line::{DelayLineWriter, Note, PushError};
use longwire_io::port::offload::TrainPart;
use longwire_io::{Offload, RxFrame};

use super::addresses::PortAddresses;
use super::decider::Decider;
use super::segments::{CutForm, Cutter, Run, TrainNumbers};
use crate::counters::LinkShared;
use crate::ledger::{Artifact, BurstCounts};

/// Offers arriving frames to the link and puts delivered ones on the delay line.
pub(super) struct Admission {
    /// The link, if it decides at arrival; a link with a managed queue belongs to the
    /// egress stage, and frames pass undecided.
    decider: Option<Decider>,
    /// Tag of frames on the line.
    pub tag: u32,
    /// The link's MTU. Long frames are fragmented here, also for a link of the egress
    /// stage.
    mtu: Mtu,
    /// Whether super-packets are always cut into wire frames.
    cut_all: bool,
    /// Whether frames pass unchanged and undecided.
    pub(super) undecided: bool,
    pub line: DelayLineWriter,
    pub(super) form: CutForm,
    lend_from: usize,
    /// Buffer for frames cut from super-packets.
    pub(super) piece: Vec<u8>,
    pub(super) trains: TrainNumbers,
    /// Buffer for a modified frame.
    scratch: Vec<u8>,
    fragments: Fragments,
    /// Arrival of the last frame.
    pub latest: Nanos,
    bursts: u32,
    counts: BurstCounts,
    /// Watches answers to address requests.
    pub addresses: Option<PortAddresses>,
    /// Number of wire frames that could not be cut from a super-packet.
    pub unmade: u64,
    pub shared: Arc<LinkShared>,
}

/// The parts of an [`Admission`].
pub(super) struct AdmissionParts {
    pub link: Option<Decider>,
    pub mtu: Mtu,
    pub line: DelayLineWriter,
    pub form: CutForm,
    pub lend_from: Option<usize>,
}

/// Bursts between readings of the memory in use.
const MEMORY_EVERY: u32 = 16;

impl Admission {
    pub fn new(parts: AdmissionParts, shared: Arc<LinkShared>) -> Admission {
        let one_by_one = |link: &Decider| link.records() || link.link.changes_frames();
        Admission {
            undecided: parts.link.is_none() && !matches!(parts.mtu, Mtu::Fragment(_)),
            cut_all: parts.link.as_ref().is_none_or(one_by_one),
            decider: parts.link,
            tag: 0,
            mtu: parts.mtu,
            line: parts.line,
            form: parts.form,
            lend_from: parts.lend_from.unwrap_or(usize::MAX),
            piece: Vec::new(),
            trains: TrainNumbers::new(),
            scratch: Vec::new(),
            fragments: Fragments::default(),
            latest: Nanos::ZERO,
            bursts: 0,
            counts: BurstCounts::default(),
            addresses: None,
            unmade: 0,
            shared,
        }
    }

    /// Admits an arriving buffer.
    #[inline]
    pub fn admit(&mut self, frame: RxFrame<'_>) {
        self.latest = frame.arrival;
        if let Some(addresses) = &self.addresses {
            addresses.arrived(frame.bytes, frame.arrival);
        }
        if frame.offload.checksum.is_none() && frame.offload.segments.is_none() {
            self.admit_wire_frame(frame);
        } else if self.cut_all {
            self.admit_cut(frame);
        } else {
            self.admit_offloaded(frame);
        }
    }

    /// The common case: one buffer with one wire frame, delivered unchanged or lost.
    #[inline]
    fn admit_wire_frame(&mut self, frame: RxFrame<'_>) {
        let Some(decider) = self.decider.as_mut().filter(|_| !self.cut_all) else {
            if self.undecided {
                self.count_arrival(frame.wire_len);
                return self.keep_part(&frame, frame.arrival, None);
            }
            return self.admit_changing(frame, None);
        };
        self.counts.passed(1, frame.wire_len.into());
        let meta = FrameMeta {
            arrival: frame.arrival,
            len: frame.wire_len,
        };
        if let Verdict::Deliver(delivery) = decider.offer(meta, frame.bytes) {
            self.keep(&frame, delivery.release);
        }
    }

    /// Admits a wire frame cut from a train, for a link that takes frames one by one.
    fn admit_part(&mut self, frame: RxFrame<'_>, part: Option<TrainPart>) {
        if self.undecided {
            self.count_arrival(frame.wire_len);
            self.keep_part(&frame, frame.arrival, part);
        } else {
            self.admit_changing(frame, part);
        }
    }

    /// Admits a wire frame of a link that edits, fragments or duplicates frames, is
    /// recorded, or decides later.
    #[cold]
    fn admit_changing(&mut self, frame: RxFrame<'_>, part: Option<TrainPart>) {
        if self.admit_fragments(&frame) {
            return;
        }
        let release = match self.offer(frame.arrival, frame.wire_len, frame.bytes) {
            OfferOutcome::Deliver(delivery) if delivery.more || delivery.edits.any() => {
                return self.keep_changed(frame, part, delivery);
            }
            OfferOutcome::Deliver(delivery) => delivery.release,
            // The egress stage will offer it; pass its arrival instead of the unknown
            // release.
            OfferOutcome::Later => frame.arrival,
            OfferOutcome::Lost => return,
        };
        self.keep_part(&frame, release, part);
    }

    /// Puts a frame on the line, possibly as part of a train.
    #[inline(never)]
    pub(super) fn keep_part(
        &mut self,
        frame: &RxFrame<'_>,
        release: Nanos,
        part: Option<TrainPart>,
    ) {
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

    /// Puts a frame on the line. Inlined only into the common case.
    #[inline(always)]
    fn keep(&mut self, frame: &RxFrame<'_>, release: Nanos) {
        let note = self.note(release, frame.wire_len);
        let kept = match frame.lent {
            Some(place) if frame.bytes.len() >= self.lend_from => {
                self.line.push_lent(place, frame.bytes.len() as u32, note)
            }
            _ => self.line.push(frame.bytes, note),
        };
        self.count_kept(kept, 1);
    }

    #[inline]
    pub(super) fn count_kept(&mut self, kept: Result<(), PushError>, wire_frames: u64) {
        count_kept(&mut self.counts, &self.shared, kept, wire_frames);
    }

    /// Puts an edited or duplicated frame on the line.
    #[cold]
    fn keep_changed(&mut self, frame: RxFrame<'_>, part: Option<TrainPart>, first: Delivery) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend_from_slice(frame.bytes);
        // Edited frames must not be joined, which would repair their checksums.
        let part = part.filter(|_| !first.edits.any());
        let mut next = Some(first);
        let mut copy = false;
        while let (Some(delivery), Some(decider)) = (next, &mut self.decider) {
            if copy {
                decider.copied(&delivery);
            } else if delivery.edits.any() {
                decider.link.edit(&delivery, &mut scratch);
            }
            copy = true;
            next = if delivery.more {
                decider.link.next_copy()
            } else {
                None
            };
            let note = Note {
                part,
                ..self.note(delivery.release, frame.wire_len)
            };
            let kept = self.line.push(&scratch, note);
            self.count_kept(kept, 1);
        }
        self.scratch = scratch;
    }

    /// Fragments a frame if it exceeds the MTU and admits the fragments; returns whether
    /// it did.
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

    /// Cuts a super-packet and admits its frames one by one; a link gets finished frames.
    fn admit_cut(&mut self, frame: RxFrame<'_>) {
        let mut piece = std::mem::take(&mut self.piece);
        let train = self.trains.next();
        let mut cutter = Cutter::new(train, frame.bytes, frame.offload, &mut piece);
        while cutter.next_wire_len().is_some() {
            // Treat all frames as one run, cut below.
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

    /// Admits a super-packet: the link decides each wire frame, and frames that leave
    /// together share a buffer.
    fn admit_offloaded(&mut self, frame: RxFrame<'_>) {
        let mut piece = std::mem::take(&mut self.piece);
        let train = self.trains.next();
        let mut cutter = Cutter::new(train, frame.bytes, frame.offload, &mut piece);
        while let Some(len) = cutter.next_wire_len() {
            let release = match self.offer(frame.arrival, len, frame.bytes) {
                OfferOutcome::Deliver(delivery) => Some(delivery.release),
                OfferOutcome::Later | OfferOutcome::Lost => None,
            };
            if let Some(run) = cutter.decided(release) {
                self.keep_run(&mut cutter, run);
            }
        }
        if let Some(run) = cutter.last_run() {
            self.keep_run(&mut cutter, run);
        }
        self.piece = piece;
    }

    fn keep_run(&mut self, cutter: &mut Cutter<'_>, run: Run) {
        let (line, counts, shared) = (&mut self.line, &mut self.counts, &self.shared);
        let (tag, form) = (self.tag, self.form);
        self.unmade += cutter.cut(run, form, |cut| {
            let note = Note {
                release: run.release,
                tag,
                offload: cut.offload,
                part: cut.part,
                wire_len: cut.bytes.len() as u32,
            };
            count_kept(counts, shared, line.push(cut.bytes, note), cut.wire_frames);
        });
    }

    /// Counts an arriving wire frame.
    #[inline]
    pub(super) fn count_arrival(&mut self, len: u32) {
        self.counts.passed(1, len.into());
    }

    /// Offers a wire frame to the link, if this stage owns it.
    fn offer(&mut self, arrival: Nanos, len: u32, bytes: &[u8]) -> OfferOutcome {
        self.count_arrival(len);
        let Some(decider) = &mut self.decider else {
            return OfferOutcome::Later;
        };
        match decider.offer(FrameMeta { arrival, len }, bytes) {
            Verdict::Deliver(delivery) => OfferOutcome::Deliver(delivery),
            Verdict::Drop(_) | Verdict::Queued => OfferOutcome::Lost,
        }
    }

    /// Returns the line record of a finished wire frame.
    #[inline]
    pub(super) fn note(&self, release: Nanos, wire_len: u32) -> Note {
        Note {
            release,
            tag: self.tag,
            offload: Offload::NONE,
            part: None,
            wire_len,
        }
    }

    /// Ends the recording.
    pub fn finish(&mut self) {
        if let Some(decider) = &mut self.decider {
            decider.finish();
        }
    }

    /// Publishes the counts of the burst before its frames, so that departures never
    /// exceed arrivals.
    pub fn publish(&mut self) {
        self.counts.publish_in(&self.shared.ingress);
        self.line.publish();
    }

    /// Publishes the memory in use and the link's records.
    pub fn publish_counts(&mut self) {
        self.counts.publish_in(&self.shared.ingress);
        // Reading the memory in use moves a cache line from the reader's core.
        if self.bursts.is_multiple_of(MEMORY_EVERY) {
            let memory = self.line.memory_in_use();
            self.shared.ingress.memory.memory_max.raise(memory);
        }
        self.bursts = self.bursts.wrapping_add(1);
        if let Some(decider) = &mut self.decider {
            decider.publish();
        }
    }
}

/// Counts wire frames that were put on the line, or the artifact if that failed.
#[inline]
fn count_kept(
    counts: &mut BurstCounts,
    shared: &LinkShared,
    kept: Result<(), PushError>,
    wire_frames: u64,
) {
    let artifact = match kept {
        Ok(()) => return counts.crossed(wire_frames),
        Err(PushError::BudgetExhausted) => Artifact::Memory,
        Err(PushError::TooLong) => Artifact::Refused,
    };
    shared.ingress.artifacts[artifact].add(wire_frames);
}

/// The outcome of offering a frame.
enum OfferOutcome {
    Deliver(Delivery),
    /// The egress stage owns the link.
    Later,
    Lost,
}

/// Returns a finished, complete wire frame.
fn whole(bytes: &[u8], arrival: Nanos) -> RxFrame<'_> {
    RxFrame {
        bytes,
        arrival,
        offload: Offload::NONE,
        wire_len: bytes.len() as u32,
        lent: None,
    }
}
