//! A port of the caller's own: a receiver or a sender that this crate does not
//! know. Tests and benches make live runs of them.
//!
//! [`RxPort`] and [`TxPort`] hand frames over without a call through a pointer
//! each; these traits make one a frame, and ask for little.

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;

use super::{Arrived, Outgoing, PortError, Pushed, Received, RxPort, TxPort};

/// Where frames come from. What [`RxPort`] asks of its calls is asked of these.
pub trait OwnRx: Send {
    /// Hands in up to `max` frames that have arrived by `now`.
    ///
    /// # Errors
    /// When nothing will ever come again because something broke.
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut dyn FnMut(Arrived<'_>),
    ) -> Result<Received, PortError>;

    /// Becomes readable when frames wait, and stays so until they have been
    /// handed in: a socket, or an [`Event`](crate::Event) that the sender of
    /// frames signals and [`OwnRx::receive`] clears before it looks. `None`
    /// for a port that cannot be waited for: an idle thread asks it every
    /// millisecond.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The longest frame it hands in, in bytes.
    fn frame_max(&self) -> usize;
}

/// Where frames go. What [`TxPort`] asks of its calls is asked of these.
pub trait OwnTx: Send {
    /// Takes a frame; it leaves with the next flush at the latest.
    fn push(&mut self, frame: Outgoing<'_>) -> Pushed;

    /// Sends what was pushed; returns how many frames left.
    ///
    /// # Errors
    /// When nothing can ever be sent again because something broke.
    fn flush(&mut self) -> Result<usize, PortError>;

    /// How many frames can be pushed before a flush is needed.
    fn room(&self) -> usize;

    /// Frames that were pushed and have not left.
    fn unsent(&self) -> usize;
}

impl RxPort for Box<dyn OwnRx> {
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut impl FnMut(Arrived<'_>),
    ) -> Result<Received, PortError> {
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
    fn push(&mut self, frame: Outgoing<'_>) -> Pushed {
        OwnTx::push(&mut **self, frame)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        OwnTx::flush(&mut **self)
    }

    fn room(&self) -> usize {
        OwnTx::room(&**self)
    }

    fn unsent(&self) -> usize {
        OwnTx::unsent(&**self)
    }
}
