//! A port implemented by the caller: a receiver or a sender that this crate does not
//! know. Tests and benches build live runs with them.
//!
//! [`RxPort`] and [`TxPort`] hand frames over without an indirect call each; these
//! traits make one for each frame, and are easier to implement.

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;

use super::{PortError, PushResult, ReceiveResult, RxFrame, RxPort, TxFrame, TxPort};

/// A source of frames. The requirements of [`RxPort`] apply.
pub trait OwnRx: Send {
    /// Delivers up to `max` frames that have arrived by `now`.
    ///
    /// # Errors
    /// After a failure that ends reception.
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut dyn FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError>;

    /// Becomes readable when frames wait, and stays so until they have been delivered:
    /// a socket, or an [`Event`](crate::Event) that the sender of frames signals and
    /// [`OwnRx::receive`] clears before it checks for frames. `None` for a port without
    /// an event: an idle thread polls it every millisecond.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the length of the longest frame, in bytes.
    fn frame_max(&self) -> usize;
}

/// A destination of frames. The requirements of [`TxPort`] apply.
pub trait OwnTx: Send {
    /// Accepts a frame; it leaves no later than the next flush.
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult;

    /// Sends the pushed frames; returns how many frames left.
    ///
    /// # Errors
    /// After a failure that ends sending.
    fn flush(&mut self) -> Result<usize, PortError>;

    /// Returns how many frames can be pushed before a flush is needed.
    fn free_slots(&self) -> usize;

    /// Returns the number of frames that were pushed and have not left.
    fn unsent(&self) -> usize;

    /// Gives the receiver its carrier, or takes it.
    fn set_carrier(&mut self, _up: bool) {}
}

impl RxPort for Box<dyn OwnRx> {
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut impl FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
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
