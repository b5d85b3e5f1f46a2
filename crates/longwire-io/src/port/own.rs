//! Receiving halves implemented by the caller, such as tests and benches.
//!
//! [`RxPort`] passes frames without indirect calls. This trait makes one indirect call per frame,
//! and is easier to implement. Sending halves implement [`TxPort`](super::TxPort).

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;

use super::{Received, RxFrame, RxPort};

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

    /// See [`RxPort::is_behind`].
    fn is_behind(&self) -> bool {
        false
    }

    /// Returns the maximum frame length in bytes.
    fn frame_max(&self) -> usize;
}

impl RxPort for Box<dyn OwnRx> {
    fn receive(&mut self, now: Nanos, max: usize, take: &mut impl FnMut(RxFrame<'_>)) -> Received {
        OwnRx::receive(&mut **self, now, max, take)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        OwnRx::readable(&**self)
    }

    fn is_behind(&self) -> bool {
        OwnRx::is_behind(&**self)
    }

    fn frame_max(&self) -> usize {
        OwnRx::frame_max(&**self)
    }
}
