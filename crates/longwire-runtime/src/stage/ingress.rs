//! The ingress stage: read a burst, offer each wire frame to the link, put
//! what it delivers on the delay line.

use std::sync::Arc;

use longwire_engine::{FrameMeta, Link, LinkId, Nanos, Verdict};
use longwire_io::delay_line::{DelayLineWriter, Note};
use longwire_io::{Arrived, Offload, PortError, Received, RxPort, TxPort};

use super::segments::Cutter;
use super::{BURST, Step};
use crate::clock::Clock;
use crate::counters::{IngressCounts, LinkShared};

/// What an ingress stage is made of.
pub struct IngressParts<R> {
    /// The port frames come from.
    pub port: R,
    /// The link they cross.
    pub link: Link,
    /// Its number.
    pub link_id: LinkId,
    /// Where delivered frames wait.
    pub line: DelayLineWriter,
    /// The clock.
    pub clock: Clock,
    /// The output port can be told of unfinished checksums and segments.
    pub keep_offload: bool,
    /// Frames of at least this length stay in the port's own memory, if the
    /// output port can send from there.
    pub lend_from: Option<usize>,
}

/// Whether frames can stay in the input port's memory for this output port.
pub fn shares_memory(input: &impl RxPort, output: &impl TxPort) -> bool {
    input.region().is_some() && input.region() == output.region()
}

/// The ingress stage of one direction.
pub struct Ingress<R> {
    port: R,
    admission: Admission,
    clock: Clock,
    ended: bool,
    /// When the port's own losses were last asked for.
    losses_read: Nanos,
}

/// Asking the kernel for its losses is a system call: once in a while.
const LOSSES_EVERY: Nanos = Nanos::from_millis(100);

/// The memory in use is looked at once in so many bursts.
const MEMORY_EVERY: u32 = 16;

impl<R: RxPort> Ingress<R> {
    /// A stage that publishes to `shared`.
    pub(crate) fn new(parts: IngressParts<R>, shared: Arc<LinkShared>) -> Ingress<R> {
        Ingress {
            port: parts.port,
            admission: Admission {
                link: parts.link,
                link_id: parts.link_id,
                line: parts.line,
                keep_offload: parts.keep_offload,
                lend_from: parts.lend_from.unwrap_or(usize::MAX),
                counts: IngressCounts::default(),
                cutter: Cutter::default(),
                latest: Nanos::ZERO,
                bursts: 0,
                shared,
            },
            clock: parts.clock,
            ended: false,
            losses_read: Nanos::ZERO,
        }
    }

    /// The input port.
    pub fn port(&self) -> &R {
        &self.port
    }

    /// Bytes that waiting frames take.
    pub fn memory_in_use(&self) -> u64 {
        self.admission.line.memory_in_use()
    }

    /// Whether nothing will ever come again.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Handles one burst.
    pub fn step(&mut self) -> Result<Step, PortError> {
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
            .receive(now, BURST, &mut |frame| admission.admit(frame))?;
        self.after_burst(now, received);
        Ok(Step {
            frames: received.frames,
            next_at: None,
            ended: received.end,
        })
    }

    fn after_burst(&mut self, now: Nanos, received: Received) {
        let admission = &mut self.admission;
        if received.frames > 0 {
            admission.line.publish();
            // After publishing: whoever sees this time must see the frames.
            self.clock.advance(admission.latest);
        }
        if received.end {
            self.ended = true;
            self.clock.advance(Nanos::MAX);
        }
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
        let counts = &mut self.admission.counts;
        counts.ring_full = losses.ring_full;
        counts.too_long = losses.too_long;
        counts.unusable = losses.unusable;
        self.admission.publish_counts();
    }

    /// Publishes the last counts, the port's own losses included.
    pub(crate) fn finish(&mut self) {
        self.read_losses(self.clock.now());
    }
}

/// What decides about frames and keeps those that are delivered.
struct Admission {
    link: Link,
    link_id: LinkId,
    line: DelayLineWriter,
    keep_offload: bool,
    lend_from: usize,
    counts: IngressCounts,
    cutter: Cutter,
    latest: Nanos,
    bursts: u32,
    shared: Arc<LinkShared>,
}

impl Admission {
    #[inline]
    fn admit(&mut self, frame: Arrived<'_>) {
        self.latest = frame.arrival;
        if frame.offload.checksum.is_none() && frame.offload.segments.is_none() {
            self.admit_wire_frame(frame);
        } else {
            self.admit_offloaded(frame);
        }
    }

    /// The common way: one buffer, one wire frame.
    #[inline]
    fn admit_wire_frame(&mut self, frame: Arrived<'_>) {
        let Some(release) = self.offer(frame.arrival, frame.wire_len, frame.bytes) else {
            return;
        };
        let note = self.note(release, Offload::NONE);
        let kept = match frame.lent {
            Some(place) if frame.bytes.len() >= self.lend_from => {
                self.line.push_lent(place, frame.bytes.len() as u32, note)
            }
            _ => self.line.push(frame.bytes, note),
        };
        match kept {
            Ok(()) => self.counts.held += 1,
            Err(_) => self.counts.memory += 1,
        }
    }

    /// A buffer with work left to do: the link decides about each wire frame
    /// in it, and frames that leave together stay together.
    fn admit_offloaded(&mut self, frame: Arrived<'_>) {
        let mut cutter = std::mem::take(&mut self.cutter);
        cutter.start(frame.bytes, frame.offload);
        while let Some(len) = cutter.next_wire_len() {
            let release = self.offer(frame.arrival, len, frame.bytes);
            if let Some(run) = cutter.decided(release) {
                self.keep_run(&mut cutter, run);
            }
        }
        if let Some(run) = cutter.last_run() {
            self.keep_run(&mut cutter, run);
        }
        self.cutter = cutter;
    }

    fn keep_run(&mut self, cutter: &mut Cutter, run: super::segments::Run) {
        let (line, counts) = (&mut self.line, &mut self.counts);
        let (link, keep_offload) = (self.link_id, self.keep_offload);
        cutter.cut(run, keep_offload, |bytes, offload, wire_frames| {
            let note = Note {
                release: run.release,
                link,
                offload,
            };
            match line.push(bytes, note) {
                Ok(()) => counts.held += wire_frames,
                Err(_) => counts.memory += wire_frames,
            }
        });
    }

    /// Offers one wire frame: its release, or `None` when the link loses it.
    #[inline]
    fn offer(&mut self, arrival: Nanos, len: u32, header: &[u8]) -> Option<Nanos> {
        self.counts.packets += 1;
        self.counts.bytes += u64::from(len);
        match self.link.offer(FrameMeta { arrival, len }, header) {
            Verdict::Deliver(delivery) => {
                self.counts.raised += u64::from(delivery.raised);
                Some(delivery.release)
            }
            Verdict::Drop(reason) => {
                self.counts.drops[reason.index()] += 1;
                None
            }
        }
    }

    #[inline]
    fn note(&self, release: Nanos, offload: Offload) -> Note {
        Note {
            release,
            link: self.link_id,
            offload,
        }
    }

    fn publish_counts(&mut self) {
        let (packets, bytes) = self.link.occupancy_max();
        self.counts.queue_packets_max = packets.0;
        self.counts.queue_bytes_max = bytes.0;
        // What is in use depends on the reader: asking it costs a trip between
        // the cores.
        if self.bursts.is_multiple_of(MEMORY_EVERY) {
            self.counts.memory_max = self.counts.memory_max.max(self.line.memory_in_use());
        }
        self.bursts = self.bursts.wrapping_add(1);
        self.shared.ingress.store(&self.counts.to_cells());
    }
}
