//! The sending half of `xdp:IF`.

use std::sync::Arc;

use super::super::socket::failure;
use super::super::{Outgoing, PortError, PortLosses, Pushed, TxPort};
use super::Attachment;
use super::sender::Sender;

/// Bytes of an Ethernet header: the shortest frame there is.
const ETHERNET: usize = 14;

/// The sending half of `xdp:IF`.
pub struct XdpTx {
    sender: Sender,
    attachment: Arc<Attachment>,
    frame_max: usize,
    losses: PortLosses,
}

impl XdpTx {
    pub(super) fn new(sender: Sender, attachment: Arc<Attachment>, frame_max: usize) -> XdpTx {
        XdpTx {
            sender,
            attachment,
            frame_max,
            losses: PortLosses::default(),
        }
    }
}

impl TxPort for XdpTx {
    fn push(&mut self, frame: Outgoing<'_>) -> Pushed {
        if !(ETHERNET..=self.frame_max).contains(&frame.bytes.len()) {
            return Pushed::Refused;
        }
        match self.sender.put(frame.bytes, None) {
            true => Pushed::Taken,
            false => Pushed::Full,
        }
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

    fn room(&self) -> usize {
        self.sender.room()
    }

    fn unsent(&self) -> usize {
        self.sender.unsent()
    }

    fn losses(&mut self) -> PortLosses {
        self.losses
    }
}
