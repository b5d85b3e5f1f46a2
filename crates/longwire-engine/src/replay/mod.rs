//! The replay schedule: when the frames of a trace are sent.
//!
//! A [`ReplaySchedule`] receives each frame's stamp and length, in the order of the
//! trace, and returns when the frame is due after the start of the replay. Every time
//! is computed from the start and never from the previous frame, so no rounding
//! accumulates.

mod pace;
mod schedule;

pub use pace::Pace;
pub use schedule::ReplaySchedule;
