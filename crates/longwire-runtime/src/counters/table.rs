//! The tables of counters.
//!
//! Rows are in the order of the JSON fields. Drops are counted by
//! [`DropReason`](longwire_engine::DropReason), the engine's table.

use super::counter::{CountCell, Counter, Fold, MetricHelp, Scope, Unit, artifacts, counters};

counters! {
    /// Frames and bytes that entered and left a link or a port.
    Traffic, TrafficCells {
        /// Frames that arrived.
        packets_in: Frames, Sum, "packets in",
            Link "received" "Frames that arrived at the link",
            Port "received" "Frames received by the port";
        /// Bytes that arrived, without framing.
        bytes_in: Bytes, Sum, "bytes in",
            Link "received" "Bytes of the frames that arrived at the link",
            Port "received" "Bytes of the frames received by the port";
        /// Frames delivered, including duplicates; for a port, frames handed over to it.
        packets_out: Frames, Sum, "packets out",
            Link "delivered" "Frames delivered by the link, including duplicates",
            Port "sent" "Frames sent by the port";
        /// Bytes of the delivered frames.
        bytes_out: Bytes, Sum, "bytes out",
            Link "delivered" "Bytes of the frames delivered by the link, including duplicates",
            Port "sent" "Bytes of the frames sent by the port";
    }

    /// Effects of a link's models on frames, other than drops. New link counters are rows of this
    /// group.
    Effects, EffectCells {
        /// Deliveries whose release was raised to keep the order.
        raised: Frames, Sum, "raised" ["order" "raised"];
        /// Frames that the link marked as Congestion Experienced.
        ecn_marked: Frames, Sum, "ECN marked",
            Link "marked" "Frames marked (CE) by the link";
        /// Delivered frames with bits corrupted by the medium.
        corrupted: Frames, Sum, "corrupted",
            Link "corrupted" "Frames corrupted by the link";
        /// Copies made by the medium, without the original frames.
        duplicated: Frames, Sum, "duplicated",
            Link "duplicated" "Copies delivered in addition to the frame";
        /// ICMP errors sent by the link's router.
        icmp_sent: Frames, Sum, "ICMP errors sent",
            Link "icmp_sent" "ICMP errors sent by the link's router";
    }

    /// Late handovers of frames whose last link is this one. The ports count them as artifacts.
    Handovers, HandoverCells {
        /// Frames handed over later than the tolerance.
        late: Frames, Sum, "late";
        /// Frames handed over late while the network was overloaded. They are not in `late`.
        overload: Frames, Sum, "overload";
        /// Maximum lateness of late and overload frames, in nanoseconds.
        late_max_ns: Nanos, Max, "";
    }

    /// Lengths of the emulated queue on a pair's link.
    QueueLengths, QueueLengthCells {
        /// Maximum number of packets in the emulated queue.
        queue_packets_max: Frames, Max, "";
        /// Maximum number of bytes in the emulated queue.
        queue_bytes_max: Bytes, Max, "";
    }

    /// Memory of a delay line.
    Memory, MemoryCells {
        /// Maximum memory for frames and descriptors, in bytes.
        memory_max: Bytes, Max, "",
            Port "memory_max" "Peak memory used by the port's frames";
    }

    /// Counts over all links of a network.
    CoreCounts, CoreCells {
        /// Frames dropped because no rule matched.
        unmatched_dropped: Frames, Sum, "",
            Run "unmatched_dropped" "Frames dropped because no rule matched";
        /// Frames forwarded without a link.
        passed: Frames, Sum, "",
            Run "passed" "Frames forwarded without a link because no rule matched";
        /// Frames without a link whose output port was lost.
        port_lost: Frames, Sum, "";
        /// Frames whose arrival was moved later by more than the tolerance.
        moved: Frames, Sum, "",
            Run "moved" "Frames whose arrival was shifted by more than the tolerance";
        /// Arrivals and verdicts that the recorder could not accept.
        unrecorded: Rows, Sum, "";
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArtifactClass {
    /// The frame was delivered late.
    Late,
    /// The frame was late because of the machine or the start, not the emulator itself.
    LateExcused,
    /// The emulator lost the frame.
    Lost,
    /// The artifact neither delayed nor lost the frame.
    Other,
}

artifacts! {
    /// Handed over later than the tolerance.
    Late = "late": Late,
        "frames were handed over later than --tolerance allows; see `longwire doctor`, or use \
         --wait spin, which occupies cores";
    /// Late only because of witnessed machine pauses.
    LatePaused = "late_paused": LateExcused,
        "frames were late because the machine paused, according to the kernel; artifacts-own \
         excludes them";
    /// Late within the grace period at the run's start.
    LateStart = "late_start": LateExcused,
        "frames were late at the start (--grace); artifacts-own excludes them";
    /// No memory was left for a queued frame: raise `--memory`.
    Memory = "memory": Lost,
        "no memory for queued frames; raise --memory";
    /// The output port did not accept the frame or was gone, or the frame exceeds the maximum
    /// length in a live run.
    Refused = "refused": Lost,
        "the output port was gone, or refused frames, such as those above its MTU or 128 KiB";
    /// The input port's ring was full before the emulator read it.
    RingFull = "ring_full": Lost,
        "frames arrived faster than they were read; stop other programs, or use more cores with \
         --placement per-stage";
    /// The frame was longer than the input port's slots.
    TooLong = "too_long": Lost,
        "frames were too long for the input port";
    /// Late because the output port was full.
    LateReceiver = "late_receiver": Late,
        "frames were late because the output port was full: the receiver is slower than the link";
    /// The output device had no carrier, or the interface of an attached link or port was
    /// down or gone.
    NoCarrier = "no_carrier": Lost,
        "the output device had no carrier: it or its peer was down, the cable unplugged, or the \
         interface of an attached link deleted or moved";
    /// The output port accepted the frame and lost it.
    SendFailed = "send_failed": Lost,
        "the output device lost frames after accepting them: its receiver is too slow";
    /// The frame contradicted its sender's description of its offloads.
    Unusable = "unusable": Lost,
        "frames did not match their offload headers; disable offloads at the sender";
    /// An event was lost because the recorder was too slow.
    Unrecorded = "unrecorded": Other,
        "--capture and --log could not be written fast enough; use a faster disk, or --log alone. \
         The link was not affected";
    /// A replay's frame was read after it was due.
    Behind = "behind": Other,
        "the trace was read too slowly; use a faster disk, a larger --read-ahead or an \
         uncompressed trace";
    /// Handed over late by a network with more traffic than this machine can carry.
    Overload = "overload": Late,
        "the load exceeds this machine, and frames were increasingly late; use fewer links, lower \
         rates or more cores, or stop other programs";
    /// Received from another host after the frame's release.
    Underlay = "underlay": Late,
        "frames arrived from another host after their release: the underlay is slower than the \
         delay of the links; use a longer delay or a faster underlay";
    /// Lost in transit from another host.
    UnderlayLost = "underlay_lost": Lost,
        "frames were lost between the hosts. If only long frames are lost, set a smaller mtu \
         under [underlay]";
    /// A captured frame is stamped before the preceding frame. The only artifact in virtual time.
    TimeWentBack = "time_went_back": Other,
        "records stamped before their predecessor are treated as simultaneous with it; sort the \
         capture by time";
}

impl Artifact {
    /// Returns the kinds that a live link can have.
    pub fn live() -> impl Iterator<Item = Artifact> {
        let kinds = Artifact::ALL.into_iter();
        kinds.filter(|kind| *kind != Artifact::TimeWentBack)
    }

    /// Returns the kind with this name.
    pub fn named(name: &str) -> Option<Artifact> {
        Artifact::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns whether the frames were delivered, but late.
    pub fn is_late(self) -> bool {
        matches!(
            self.class(),
            ArtifactClass::Late | ArtifactClass::LateExcused
        )
    }

    /// Returns whether the emulator itself caused the artifact, rather than the machine or the
    /// start.
    pub fn is_own(self) -> bool {
        self.class() != ArtifactClass::LateExcused
    }

    /// Returns whether the emulator lost the frames.
    pub fn is_lost(self) -> bool {
        self.class() == ArtifactClass::Lost
    }
}
