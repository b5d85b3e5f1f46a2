//! Counters of the stages. A report reads them while the stages run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;
use longwire_engine::{Delivery, DropReason, Nanos};

use crate::lateness::nanos_histogram;
use crate::port_loss::LossCell;
use crate::stage::{CorrectionsShared, DeparturesShared, SendStampsShared};

/// A way in which the emulator treated a frame differently from its models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Artifact {
    /// Handed over later than the tolerance.
    Late,
    /// Late because the output port was full.
    LateReceiver,
    /// Late only because of witnessed pauses of the machine.
    LatePaused,
    /// Late within the grace at the start of the run.
    LateStart,
    /// No memory was left for a waiting frame: raise `--memory`.
    Memory,
    /// The output port did not accept the frame.
    Refused,
    /// The input port's ring was full before the emulator read it.
    RingFull,
    /// The frame was longer than the input port's slots.
    TooLong,
    /// The output port accepted the frame and lost it.
    SendFailed,
    /// The output device had no carrier.
    PortDown,
    /// The frame contradicted its sender's description of unfinished work.
    Unusable,
    /// An event that was lost because the recorder was too slow.
    Unrecorded,
    /// A replay's frame that was read after it was due.
    Behind,
    /// Handed over late by a network that carries more than this machine can.
    Overload,
}

impl Artifact {
    /// Every kind, in the order of their indices.
    pub const ALL: [Artifact; 14] = [
        Artifact::Late,
        Artifact::LateReceiver,
        Artifact::LatePaused,
        Artifact::LateStart,
        Artifact::Memory,
        Artifact::Refused,
        Artifact::RingFull,
        Artifact::TooLong,
        Artifact::SendFailed,
        Artifact::PortDown,
        Artifact::Unusable,
        Artifact::Unrecorded,
        Artifact::Behind,
        Artifact::Overload,
    ];

    /// Whether its frames were delivered, but late.
    pub fn is_late(self) -> bool {
        matches!(
            self,
            Artifact::Late
                | Artifact::LatePaused
                | Artifact::LateStart
                | Artifact::LateReceiver
                | Artifact::Overload
        )
    }

    /// Returns the kind's name in reports and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Artifact::Late => "late",
            Artifact::LateReceiver => "late_receiver",
            Artifact::LatePaused => "late_paused",
            Artifact::LateStart => "late_start",
            Artifact::Memory => "memory",
            Artifact::Refused => "refused",
            Artifact::RingFull => "ring_full",
            Artifact::TooLong => "too_long",
            Artifact::SendFailed => "send_failed",
            Artifact::PortDown => "port_down",
            Artifact::Unusable => "unusable",
            Artifact::Unrecorded => "unrecorded",
            Artifact::Behind => "behind",
            Artifact::Overload => "overload",
        }
    }
}

/// A counter with one writer: the writer keeps its own copy, and readers see
/// its value as of the last burst.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Published<const N: usize>(Cells<N>);

#[derive(Debug)]
struct Cells<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for Cells<N> {
    fn default() -> Cells<N> {
        Cells(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl<const N: usize> Published<N> {
    pub(crate) fn store(&self, values: &[u64; N]) {
        for (cell, value) in self.0.0.iter().zip(values) {
            cell.store(*value, Ordering::Relaxed);
        }
    }

    pub(crate) fn load(&self) -> [u64; N] {
        std::array::from_fn(|index| self.0.0[index].load(Ordering::Relaxed))
    }
}

/// Counters of the ingress stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IngressCounts {
    pub packets: u64,
    pub bytes: u64,
    pub memory: u64,
    pub ring_full: u64,
    pub too_long: u64,
    pub unusable: u64,
    pub memory_max: u64,
    /// Wire frames put on the delay line.
    pub held: u64,
    /// Frames of a replay that were read after they were due.
    pub behind: u64,
}

/// The number of counters that [`IngressCounts`] publishes.
pub(crate) const INGRESS_CELLS: usize = 9;

impl IngressCounts {
    pub(crate) fn to_cells(self) -> [u64; INGRESS_CELLS] {
        [
            self.packets,
            self.bytes,
            self.memory,
            self.ring_full,
            self.too_long,
            self.unusable,
            self.memory_max,
            self.held,
            self.behind,
        ]
    }

    pub(crate) fn from_cells(cells: [u64; INGRESS_CELLS]) -> IngressCounts {
        let [
            packets,
            bytes,
            memory,
            ring_full,
            too_long,
            unusable,
            memory_max,
            held,
            behind,
        ] = cells;
        IngressCounts {
            packets,
            bytes,
            memory,
            ring_full,
            too_long,
            unusable,
            memory_max,
            held,
            behind,
        }
    }
}

/// Counters of the stage that owns the link: ingress, or egress for a managed
/// queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkCounts {
    pub drops: [u64; DropReason::ALL.len()],
    pub raised: u64,
    pub marked: u64,
    pub corrupted: u64,
    /// Copies, without the frames themselves.
    pub duplicated: u64,
    pub queue_packets_max: u64,
    pub queue_bytes_max: u64,
    pub unrecorded: u64,
}

/// The number of counters that [`LinkCounts`] publishes.
pub(crate) const LINK_CELLS: usize = 7 + DropReason::ALL.len();

impl LinkCounts {
    /// Counts one delivery; `copy`: it is a duplicate.
    #[inline]
    pub(crate) fn delivered(&mut self, delivery: &Delivery, copy: bool) {
        self.raised += u64::from(delivery.raised);
        if copy {
            self.duplicated += 1;
        } else if delivery.edits.any() {
            self.marked += u64::from(delivery.edits.mark);
            self.corrupted += u64::from(delivery.edits.corrupt);
        }
    }

    pub(crate) fn to_cells(self) -> [u64; LINK_CELLS] {
        let mut cells = [0; LINK_CELLS];
        let own = [
            self.raised,
            self.marked,
            self.corrupted,
            self.duplicated,
            self.queue_packets_max,
            self.queue_bytes_max,
            self.unrecorded,
        ];
        cells[..own.len()].copy_from_slice(&own);
        cells[own.len()..].copy_from_slice(&self.drops);
        cells
    }

    pub(crate) fn from_cells(cells: [u64; LINK_CELLS]) -> LinkCounts {
        let (own, drops) = cells.split_at(LINK_CELLS - DropReason::ALL.len());
        LinkCounts {
            raised: own[0],
            marked: own[1],
            corrupted: own[2],
            duplicated: own[3],
            queue_packets_max: own[4],
            queue_bytes_max: own[5],
            unrecorded: own[6],
            drops: std::array::from_fn(|index| drops[index]),
        }
    }
}

/// Counters of the egress stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EgressCounts {
    pub packets: u64,
    pub bytes: u64,
    pub late: u64,
    pub refused: u64,
    pub send_failed: u64,
    /// Released frames that were taken off the delay line.
    pub released: u64,
    pub unrecorded: u64,
    /// Late while the network was overloaded; not counted as `late`.
    pub overload: u64,
    pub late_receiver: u64,
    pub port_down: u64,
    pub late_paused: u64,
    pub late_start: u64,
}

/// The number of counters that [`EgressCounts`] publishes.
pub(crate) const EGRESS_CELLS: usize = 12;

impl EgressCounts {
    pub(crate) fn to_cells(self) -> [u64; EGRESS_CELLS] {
        [
            self.packets,
            self.bytes,
            self.late,
            self.refused,
            self.send_failed,
            self.released,
            self.unrecorded,
            self.overload,
            self.late_receiver,
            self.port_down,
            self.late_paused,
            self.late_start,
        ]
    }

    pub(crate) fn from_cells(cells: [u64; EGRESS_CELLS]) -> EgressCounts {
        let [
            packets,
            bytes,
            late,
            refused,
            send_failed,
            released,
            unrecorded,
            overload,
            late_receiver,
            port_down,
            late_paused,
            late_start,
        ] = cells;
        EgressCounts {
            packets,
            bytes,
            late,
            refused,
            send_failed,
            released,
            unrecorded,
            overload,
            late_receiver,
            port_down,
            late_paused,
            late_start,
        }
    }
}

/// The time until which the ingress stage has seen, and published, every
/// arrival. A managed queue decides no further than that.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct SeenUntil(AtomicU64);

impl SeenUntil {
    /// Sets the time; to be called after publishing all arrivals before `time`.
    pub(crate) fn set(&self, time: Nanos) {
        self.0.store(time.as_nanos(), Ordering::Release);
    }

    /// Notes that the stage sleeps until the next arrival: then only the clock
    /// limits decisions.
    pub(crate) fn asleep(&self) {
        self.set(Nanos::MAX);
    }

    pub(crate) fn get(&self) -> Nanos {
        Nanos::from_nanos(self.0.load(Ordering::Acquire))
    }
}

/// Counters that the stages of one direction publish.
#[derive(Debug)]
pub(crate) struct LinkShared {
    pub ingress: Published<INGRESS_CELLS>,
    pub link: Published<LINK_CELLS>,
    pub seen_until: SeenUntil,
    pub egress: Published<EGRESS_CELLS>,
    pub lateness: Mutex<Histogram<u64>>,
    pub corrections: CorrectionsShared,
    pub departures: DeparturesShared,
    pub send_stamps: SendStampsShared,
    /// Set when the port went away and the network continues.
    pub loss: LossCell,
}

impl LinkShared {
    pub(crate) fn new() -> LinkShared {
        LinkShared {
            ingress: Published::default(),
            link: Published::default(),
            seen_until: SeenUntil::default(),
            egress: Published::default(),
            lateness: Mutex::new(nanos_histogram()),
            corrections: CorrectionsShared::default(),
            departures: DeparturesShared::new(),
            send_stamps: SendStampsShared::new(),
            loss: LossCell::default(),
        }
    }
}
