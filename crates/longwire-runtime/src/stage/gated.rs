//! Admission by a lane's gate: frames are decided before they are put on the line, and
//! frames of a super-packet that leave together stay one buffer.

use longwire_engine::Verdict;
use longwire_io::port::offload::can_cut;
use longwire_io::{Offload, RxFrame};

use super::admission::Admission;
use super::segments::{CutForm, Cutter, Run};
use crate::fabric::Gate;
use crate::ledger::Artifact;

/// Maximum bytes of a record besides its frame: two headers and alignment.
const RECORD_EXTRA: usize = 48;

impl Admission {
    /// Admits a buffer of a stage without a link; its frames cross the link by the gate
    /// if possible.
    #[inline]
    pub fn admit_through(&mut self, frame: RxFrame<'_>, gate: &mut Gate<'_>) {
        if !self.undecided || !gate.admits(frame.arrival) || !self.leaves_as_it_is(&frame) {
            gate.close();
            return self.admit(frame);
        }
        self.latest = frame.arrival;
        if let Some(addresses) = &self.addresses {
            addresses.arrived(frame.bytes, frame.arrival);
        }
        if frame.offload.segments.is_some() {
            return self.admit_train_through(&frame, gate);
        }
        self.entry.count_arrival(frame.wire_len);
        if self.entry.line.make_room(frame.bytes.len()).is_err() {
            self.shared.ingress.artifacts[Artifact::Memory].add(1);
            return;
        }
        let verdict = gate.offer(frame.arrival, frame.wire_len, frame.bytes);
        let release = match verdict {
            Verdict::Deliver(delivery) => delivery.release,
            Verdict::Queued => frame.arrival,
            Verdict::Drop(_) => return,
        };
        self.entry.keep_part(&frame, release, None);
        self.entry.line.publish();
        gate.follow(&self.entry.line, verdict != Verdict::Queued);
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
    fn admit_train_through(&mut self, frame: &RxFrame<'_>, gate: &mut Gate<'_>) {
        let mut piece = std::mem::take(&mut self.piece);
        let train = self.trains.next();
        let mut cutter = Cutter::new(train, frame.bytes, frame.offload, &mut piece);
        // Bytes that the pending run needs on the line.
        let mut run_bytes = 0;
        while let Some(len) = cutter.next_wire_len() {
            self.entry.count_arrival(len);
            let bytes = len as usize + RECORD_EXTRA;
            let verdict = if self.entry.line.make_room(run_bytes + bytes).is_ok() {
                Some(gate.offer(frame.arrival, len, frame.bytes))
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
                    self.keep_through(&mut cutter, run, gate, true);
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
                self.keep_through(&mut cutter, queued, gate, false);
            }
        }
        if let Some(run) = cutter.last_run() {
            self.keep_through(&mut cutter, run, gate, true);
        }
        self.piece = piece;
    }

    /// Puts a run on the line as one record; there is space for it.
    fn keep_through(
        &mut self,
        cutter: &mut Cutter<'_>,
        run: Run,
        gate: &mut Gate<'_>,
        decided: bool,
    ) {
        self.unmade += self.entry.keep_run(cutter, run, CutForm::Trains);
        self.entry.line.publish();
        gate.follow(&self.entry.line, decided);
    }
}
