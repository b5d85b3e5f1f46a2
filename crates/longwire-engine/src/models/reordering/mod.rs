//! Reordering: frames that are held back, or that overtake, on purpose.
//! Whether jitter may reorder is the order policy's matter.

use alloc::boxed::Box;
use core::fmt;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use crate::models::Kind;
use crate::passing::Passing;

pub mod gap;
pub mod hold;

/// What happens to one frame's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Displacement {
    /// It is released so much later than its delay says, and frames behind
    /// it overtake it.
    Hold(Nanos),
    /// It has no delay at all, and overtakes those in front of it.
    Hurry,
}

/// A process that displaces frames.
pub trait ReorderingModel: fmt::Debug + Send {
    /// Called once, before anything else: schedules count from `epoch`.
    fn start(&mut self, _epoch: Nanos) {}

    /// Whether this frame is displaced. Called for every frame that reaches
    /// the medium, also for those lost there.
    fn judge(&mut self, frame: &Passing<'_>, stream: &mut Stream) -> Option<Displacement>;

    /// The model as its user would write it.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl fmt::Display for dyn ReorderingModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

/// Reordering models.
pub static KIND: Kind<Box<dyn ReorderingModel>> = Kind {
    name: "reorder",
    example: "hold:1%,5ms",
    entries: &[hold::ENTRY, gap::ENTRY],
};
