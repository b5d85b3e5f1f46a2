//! Admission by a lane of the deciding stage: frames are decided before they are put on the
//! line, and frames of a super-packet that leave together stay one buffer.

use longwire_engine::Verdict;
use longwire_io::port::offload::can_cut;
use longwire_io::{Offload, RxFrame};

use super::admission::Admission;
use super::segments::{CutForm, Cutter, Run};
use crate::fabric::LaneTurn;
use crate::ledger::Artifact;

/// Maximum bytes of a record besides its frame: two headers and alignment.
const RECORD_EXTRA: usize = 48;

impl Admission {
    /// Admits a buffer of a stage without a link; `lane` decides its frames if it can.
    #[inline]
    pub fn admit_by(&mut self, frame: RxFrame<'_>, lane: &mut LaneTurn<'_>) {
        if !self.undecided || !lane.admits(frame.arrival) || !self.leaves_as_it_is(&frame) {
            lane.close();
            return self.admit(frame);
        }
        self.latest = frame.arrival;
        if let Some(addresses) = &self.addresses {
            addresses.arrived(frame.bytes, frame.arrival);
        }
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

    /// Whether the output port supports the frame's offloads, and its segments match its
    /// headers.
    #[inline]
    fn leaves_as_it_is(&self, frame: &RxFrame<'_>) -> bool {
        frame.offload == Offload::NONE
            || self.form == CutForm::Unfinished
                && frame
                    .offload
                    .segments
                    .is_none_or(|segments| can_cut(frame.bytes, segments))
    }

    /// Offers the wire frames of a super-packet. Decided frames that leave together
    /// become one record; a queued frame becomes a separate record, as its release is
    /// unknown.
    fn admit_train_by(&mut self, frame: &RxFrame<'_>, lane: &mut LaneTurn<'_>) {
        let mut piece = std::mem::take(&mut self.piece);
        let train = self.trains.next();
        let mut cutter = Cutter::new(train, frame.bytes, frame.offload, &mut piece);
        // Bytes that the pending run needs on the line.
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

    /// Puts a run on the line as one record; there is space for it.
    fn keep_by(
        &mut self,
        cutter: &mut Cutter<'_>,
        run: Run,
        lane: &mut LaneTurn<'_>,
        decided: bool,
    ) {
        self.unmade += self.entry.keep_run(cutter, run, CutForm::Trains);
        self.entry.line.publish();
        lane.follow(&self.entry.line, decided);
    }
}
