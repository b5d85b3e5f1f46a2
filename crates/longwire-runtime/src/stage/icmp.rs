//! ICMP errors of a link's router, on their way from the stage with the link to the one that
//! sends by the port where the packets came in.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use longwire_engine::Nanos;
use longwire_io::Bell;

/// Errors that wait at most; the rest is lost, as ICMP may be.
const WAITING_MAX: usize = 1_024;

/// The bells of the threads of a run, once they are built.
pub(crate) type Bells = Arc<OnceLock<Vec<Arc<Bell>>>>;

/// An error, and the arrival of the packet that it is about.
pub(super) struct IcmpError {
    pub at: Nanos,
    pub bytes: Vec<u8>,
}

/// The end at the link.
pub(crate) struct IcmpSender {
    errors: SyncSender<IcmpError>,
    bells: Bells,
}

/// The end at the port.
pub(crate) struct IcmpReceiver {
    errors: Receiver<IcmpError>,
    next: Option<IcmpError>,
}

/// Returns both ends of the way to a port.
pub(crate) fn icmp_line(bells: &Bells) -> (IcmpSender, IcmpReceiver) {
    let (sender, errors) = sync_channel(WAITING_MAX);
    let bells = Arc::clone(bells);
    let sender = IcmpSender {
        errors: sender,
        bells,
    };
    (sender, IcmpReceiver { errors, next: None })
}

impl IcmpSender {
    /// Sends an error; returns whether there was room.
    pub(super) fn send(&self, at: Nanos, bytes: &[u8]) -> bool {
        let bytes = bytes.to_vec();
        let sent = self.errors.try_send(IcmpError { at, bytes }).is_ok();
        let bells = self.bells.get().into_iter().flatten();
        bells.for_each(|bell| bell.ring_if_asleep());
        sent
    }
}

impl IcmpReceiver {
    /// Returns the next error.
    pub(super) fn front(&mut self) -> Option<&IcmpError> {
        if self.next.is_none() {
            self.next = self.errors.try_recv().ok();
        }
        self.next.as_ref()
    }

    /// Removes the next error.
    pub(super) fn advance(&mut self) {
        self.next = None;
    }
}
