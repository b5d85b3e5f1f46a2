//! Deliberate reordering: frames held back or sent ahead. The order policy decides whether
//! jitter may reorder.

use alloc::boxed::Box;
use core::fmt;

use dyn_clone::DynClone;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use crate::frame_context::FrameContext;
use crate::models::delay::DelayModel;
use crate::models::{Kind, PartModel};

pub mod gap;
pub mod hold;

/// The displacement of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Displacement {
    /// Adds this to the frame's delay, and later frames overtake it.
    Hold(Nanos),
    /// Sends the frame without delay, and it overtakes earlier frames.
    Hurry,
}

/// A process that displaces frames.
pub trait ReorderingModel: DynClone + fmt::Debug + Send + Sync {
    /// Called once, first; `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Decides whether this frame is displaced. Called for every frame that reaches the
    /// medium, even if it is lost there.
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Displacement>;

    /// Whether it may send frames ahead ([`Displacement::Hurry`]), so that the delay is not
    /// a lower bound.
    fn sends_ahead(&self) -> bool {
        true
    }

    /// Writes the model in the user's notation.
    ///
    /// # Errors
    /// If writing to `f` fails.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

dyn_clone::clone_trait_object!(ReorderingModel);

impl PartModel for Box<dyn ReorderingModel> {}

/// Returns a lower bound of departure to release, including copies and displaced frames.
pub(crate) fn delay_least(
    delay: &dyn DelayModel,
    reordering: Option<&dyn ReorderingModel>,
) -> Nanos {
    match reordering {
        Some(model) if model.sends_ahead() => Nanos::ZERO,
        _ => delay.least(),
    }
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
