//! Enums over all ports.
//!
//! They dispatch once per burst: each port has its own loop over a burst's frames, so there is no
//! indirect call per frame.

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;

use super::gap::GapTx;
use super::one_way::{DiscardTx, SilentRx};
use super::own::OwnRx;
use super::packet::{CheckedLine, PacketRx, PacketTx};
use super::pcap::{PcapRx, PcapTx};
use super::tap::{TapRx, TapTx};
use super::xdp::{XdpRx, XdpTx};
use super::{
    PortError, PortLosses, PushResult, Received, RegionId, RxFrame, RxPort, SendStamp, StampedBy,
    TxFrame, TxPort, mem,
};

/// The receiving half of any port.
pub enum AnyRx {
    /// AF_PACKET.
    Packet(PacketRx),
    /// AF_XDP.
    Xdp(XdpRx),
    /// A TAP device.
    Tap(TapRx),
    /// A capture file.
    Pcap(Box<PcapRx>),
    /// One end of an in-memory cable.
    Pipe(Box<mem::PipeRx>),
    /// The caller's implementation.
    Own(Box<dyn OwnRx>),
    /// The missing half of a port that only sends.
    Silent(SilentRx),
}

/// The sending half of any port.
#[allow(
    clippy::large_enum_variant,
    reason = "one per port; a pointer would cost each burst"
)]
pub enum AnyTx {
    /// AF_PACKET.
    Packet(PacketTx),
    /// AF_PACKET with gap frames.
    Gap(Box<GapTx<CheckedLine>>),
    /// AF_XDP.
    Xdp(XdpTx),
    /// A TAP device.
    Tap(TapTx),
    /// A capture file.
    Pcap(PcapTx),
    /// An in-memory counter.
    Sink(Box<mem::Sink>),
    /// One end of an in-memory cable.
    Pipe(Box<mem::PipeTx>),
    /// The caller's implementation.
    Own(Box<dyn TxPort + Send>),
    /// The missing half of a port that only receives.
    Discard(DiscardTx),
}

/// Evaluates the same expression for every receiving half.
macro_rules! each_rx {
    ($port:expr, $inner:ident => $does:expr) => {
        match $port {
            AnyRx::Packet($inner) => $does,
            AnyRx::Xdp($inner) => $does,
            AnyRx::Tap($inner) => $does,
            AnyRx::Pcap($inner) => $does,
            AnyRx::Pipe($inner) => $does,
            AnyRx::Own($inner) => $does,
            AnyRx::Silent($inner) => $does,
        }
    };
}

/// Evaluates the same expression for every sending half.
macro_rules! each_tx {
    ($port:expr, $inner:ident => $does:expr) => {
        match $port {
            AnyTx::Packet($inner) => $does,
            AnyTx::Gap($inner) => $does,
            AnyTx::Xdp($inner) => $does,
            AnyTx::Tap($inner) => $does,
            AnyTx::Pcap($inner) => $does,
            AnyTx::Sink($inner) => $does,
            AnyTx::Pipe($inner) => $does,
            AnyTx::Own($inner) => $does,
            AnyTx::Discard($inner) => $does,
        }
    };
}

impl RxPort for AnyRx {
    fn receive(&mut self, now: Nanos, max: usize, take: &mut impl FnMut(RxFrame<'_>)) -> Received {
        each_rx!(self, port => port.receive(now, max, take))
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        each_rx!(self, port => port.readable())
    }

    fn stamps_arrivals(&self) -> bool {
        each_rx!(self, port => port.stamps_arrivals())
    }

    fn is_behind(&self) -> bool {
        each_rx!(self, port => port.is_behind())
    }

    fn losses(&mut self) -> PortLosses {
        each_rx!(self, port => port.losses())
    }

    fn region(&self) -> Option<RegionId> {
        each_rx!(self, port => port.region())
    }

    fn frame_max(&self) -> usize {
        each_rx!(self, port => port.frame_max())
    }
}

impl TxPort for AnyTx {
    #[inline]
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        each_tx!(self, port => port.push(frame))
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        each_tx!(self, port => port.flush())
    }

    fn free_slots(&self) -> usize {
        each_tx!(self, port => port.free_slots())
    }

    fn unsent(&self) -> usize {
        each_tx!(self, port => port.unsent())
    }

    fn needs_idle_fill(&self) -> bool {
        each_tx!(self, port => port.needs_idle_fill())
    }

    fn sync_clock(&mut self, now: Nanos) {
        each_tx!(self, port => port.sync_clock(now));
    }

    fn fill(&mut self, now: Nanos) {
        each_tx!(self, port => port.fill(now));
    }

    fn sample_every(&mut self, every: u32) -> Option<StampedBy> {
        each_tx!(self, port => port.sample_every(every))
    }

    fn sampled(&mut self, take: &mut dyn FnMut(SendStamp)) {
        each_tx!(self, port => port.sampled(take));
    }

    fn launch_lead(&self) -> Option<Nanos> {
        each_tx!(self, port => port.launch_lead())
    }

    fn remarks(&self) -> Vec<String> {
        each_tx!(self, port => port.remarks())
    }

    fn takes_offload(&self) -> bool {
        each_tx!(self, port => port.takes_offload())
    }

    fn losses(&mut self) -> PortLosses {
        each_tx!(self, port => port.losses())
    }

    fn region(&self) -> Option<RegionId> {
        each_tx!(self, port => port.region())
    }

    fn set_carrier(&mut self, up: bool) {
        each_tx!(self, port => port.set_carrier(up));
    }
}
