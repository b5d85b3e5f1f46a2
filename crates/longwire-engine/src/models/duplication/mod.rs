//! Duplication: frames that arrive several times.

use alloc::boxed::Box;
use core::fmt;

use dyn_clone::DynClone;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use crate::frame_context::FrameContext;
use crate::models::{Kind, PartModel};

pub mod nth;
pub mod random;
pub mod trace;

/// Copies of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// Copies in addition to the frame itself.
    pub count: u32,
    /// Whether each copy draws a delay from the link's delay model; otherwise all share the
    /// frame's.
    pub own_delay: bool,
}

/// A process that duplicates frames on the medium.
pub trait DuplicationModel: DynClone + fmt::Debug + Send + Sync {
    /// Called once, first; `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Decides the copies of this frame. Called for every frame that reaches the medium,
    /// even if it is lost there.
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Copies>;

    /// Writes the model in the user's notation.
    ///
    /// # Errors
    /// If writing to `f` fails.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

dyn_clone::clone_trait_object!(DuplicationModel);

impl PartModel for Box<dyn DuplicationModel> {}

impl fmt::Display for dyn DuplicationModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

/// Duplication models.
pub static KIND: Kind<Box<dyn DuplicationModel>> = Kind {
    name: "duplicate",
    example: "1%",
    entries: &[random::ENTRY, nth::ENTRY, trace::ENTRY],
};
