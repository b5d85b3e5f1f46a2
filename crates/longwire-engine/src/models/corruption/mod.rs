//! Corruption: frames that arrive with inverted bits.

use alloc::boxed::Box;
use core::fmt;

use dyn_clone::DynClone;

use longwire_packet::edit::Corruption;
use longwire_units::Nanos;
use longwire_units::random::Stream;

use crate::frame_context::FrameContext;
use crate::models::{Kind, PartModel};

pub mod bit_error;
pub mod offset;
pub mod random;
mod target;

/// A process that inverts bits of delivered frames.
pub trait CorruptionModel: DynClone + fmt::Debug + Send + Sync {
    /// Called once, first; `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Decides the corruption of this frame. Called for every frame that reaches the
    /// medium, including frames lost there.
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Corruption>;

    /// Writes the model in the user's notation.
    ///
    /// # Errors
    /// If writing to `f` fails.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

dyn_clone::clone_trait_object!(CorruptionModel);

impl PartModel for Box<dyn CorruptionModel> {}

impl fmt::Display for dyn CorruptionModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

/// Corruption models.
pub static KIND: Kind<Box<dyn CorruptionModel>> = Kind {
    name: "corrupt",
    example: "1%",
    entries: &[random::ENTRY, bit_error::ENTRY, offset::ENTRY],
};
