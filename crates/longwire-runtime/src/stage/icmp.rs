//! ICMP errors of a link's router, passed from the link's stage to the stage that sends
//! by the port of arrival.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use longwire_engine::Nanos;
use longwire_io::Bell;

/// Maximum number of queued errors; further ones are dropped, as ICMP permits.
const WAITING_MAX: usize = 1_024;

/// The bells of a run's threads, set once they exist.
pub(crate) type Bells = Arc<OnceLock<Vec<Arc<Bell>>>>;

/// An error, with the arrival of the offending packet.
pub(super) struct IcmpError {
    pub at: Nanos,
    pub bytes: Vec<u8>,
}

/// The link's end.
pub(crate) struct IcmpSender {
    errors: SyncSender<IcmpError>,
    bells: Bells,
}

/// The port's end.
pub(crate) struct IcmpReceiver {
    errors: Receiver<IcmpError>,
    next: Option<IcmpError>,
}

/// Returns both ends of the queue to a port.
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
    /// Sends an error; returns `false` if the queue is full.
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
