//! The sending half of `xdp:IF`.

use std::sync::Arc;

use super::super::carrier::Carrier;
use super::super::sampling::Sampler;
use super::super::socket::failure;
use super::super::{PortError, PortLosses, PushResult, SendStamp, StampedBy, TxFrame, TxPort};
use super::AttachedProgram;
use super::sender::Sender;

/// Bytes of an Ethernet header: the minimum of a frame.
const ETHERNET: usize = 14;

/// The sending half of `xdp:IF`.
pub struct XdpTx {
    sender: Sender,
    attachment: Arc<AttachedProgram>,
    frame_max: usize,
    sampler: Sampler,
    losses: PortLosses,
    pub(in crate::port) carrier: Option<Carrier>,
}

impl XdpTx {
    pub(super) fn new(sender: Sender, attachment: Arc<AttachedProgram>, frame_max: usize) -> XdpTx {
        XdpTx {
            sender,
            attachment,
            frame_max,
            sampler: Sampler::default(),
            losses: PortLosses::default(),
            carrier: None,
        }
    }

    /// Returns the interface's name.
    pub(in crate::port) fn interface(&self) -> &str {
        self.attachment.port.trim_start_matches("xdp:")
    }
}

impl TxPort for XdpTx {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if !(ETHERNET..=self.frame_max).contains(&frame.bytes.len()) {
            return PushResult::Refused;
        }
        if let Some(carrier) = &mut self.carrier
            && let Some(stopped) = carrier.stops(&frame)
        {
            return stopped;
        }
        let stamped = self.sampler.next().then_some(frame.release);
        if self.sender.put(frame.bytes, None, stamped) {
            return PushResult::Taken;
        }
        self.sampler.revert();
        PushResult::Full
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        let lost = &mut self.losses.send_failed;
        self.sender
            .send(|_| {
                *lost += 1;
                true
            })
            .map_err(|error| failure(&self.attachment.port, "sending", error))
    }

    fn sample_every(&mut self, every: u32) -> Option<StampedBy> {
        self.sampler = if self.sender.stamps_frames() {
            Sampler::new(every)
        } else {
            return None;
        };
        (every > 0).then_some(StampedBy::Kernel)
    }

    fn sampled(&mut self, take: &mut impl FnMut(SendStamp)) {
        self.sender.sampled(take);
    }

    fn free_slots(&self) -> usize {
        self.sender.free_slots()
    }

    fn unsent(&self) -> usize {
        self.sender.unsent()
    }

    fn losses(&mut self) -> PortLosses {
        PortLosses {
            no_carrier: self.carrier.as_ref().map_or(0, Carrier::lost),
            ..self.losses
        }
    }

    fn set_carrier(&mut self, up: bool) {
        if let Some(carrier) = &self.carrier {
            carrier.set(up);
        }
    }
}
