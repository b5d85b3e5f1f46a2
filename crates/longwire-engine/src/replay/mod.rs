//! The replay schedule: due times of a trace's frames.
//!
//! A [`ReplaySchedule`] receives each frame's timestamp and length, in trace order, and
//! returns its due time relative to the start of the replay. Each time is computed from the
//! start, not from the previous frame, so rounding does not accumulate.

mod pace;
mod schedule;

pub use pace::Pace;
pub use schedule::ReplaySchedule;
