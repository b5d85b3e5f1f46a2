//! When the frames of a trace are sent: the replay schedule.
//!
//! A [`Schedule`] is given each frame's stamp and length, in the order of the
//! trace, and tells when the frame is due after the start of the replay. Every
//! time is computed from the start and never from the frame before, so no
//! rounding accumulates.

mod pace;
mod schedule;

pub use pace::Pace;
pub use schedule::{RoundEnd, Schedule};
