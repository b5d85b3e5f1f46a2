//! Ports implemented by the caller, as in tests and benches.
//!
//! [`RxPort`] and [`TxPort`] pass frames without indirect calls. These traits make one indirect
//! call per frame, and are easier to implement.

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;

use super::{PortError, PushResult, Received, RxFrame, RxPort, TxFrame, TxPort};

/// A frame source. Implementations must satisfy the requirements of [`RxPort`].
pub trait OwnRx: Send {
    /// Delivers up to `max` frames that have arrived by `now`.
    ///
    /// # Errors
    /// A failure that ends reception.
    fn receive(&mut self, now: Nanos, max: usize, take: &mut dyn FnMut(RxFrame<'_>)) -> Received;

    /// Returns a descriptor that becomes readable when frames are waiting and stays readable until
    /// they are delivered. It may be a socket, or an [`Event`](crate::Event) that the sender
    /// signals and [`OwnRx::receive`] clears before it checks for frames. `None` if there is no
    /// such descriptor: an idle thread then polls every millisecond.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the maximum frame length in bytes.
    fn frame_max(&self) -> usize;
}

/// A frame sink. Implementations must satisfy the requirements of [`TxPort`].
pub trait OwnTx: Send {
    /// Accepts a frame, which leaves by the next flush.
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult;

    /// Sends the pushed frames and returns the number of departed frames.
    ///
    /// # Errors
    /// A failure that ends sending.
    fn flush(&mut self) -> Result<usize, PortError>;

    /// Returns the number of frames that can be pushed before a flush.
    fn free_slots(&self) -> usize;

    /// Returns the number of unsent frames.
    fn unsent(&self) -> usize;

    /// Switches the receiver's carrier.
    fn set_carrier(&mut self, _up: bool) {}
}

impl RxPort for Box<dyn OwnRx> {
    fn receive(&mut self, now: Nanos, max: usize, take: &mut impl FnMut(RxFrame<'_>)) -> Received {
        OwnRx::receive(&mut **self, now, max, take)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        OwnRx::readable(&**self)
    }

    fn frame_max(&self) -> usize {
        OwnRx::frame_max(&**self)
    }
}

impl TxPort for Box<dyn OwnTx> {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        OwnTx::push(&mut **self, frame)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        OwnTx::flush(&mut **self)
    }

    fn free_slots(&self) -> usize {
        OwnTx::free_slots(&**self)
    }

    fn unsent(&self) -> usize {
        OwnTx::unsent(&**self)
    }

    fn set_carrier(&mut self, up: bool) {
        OwnTx::set_carrier(&mut **self, up);
    }
}
