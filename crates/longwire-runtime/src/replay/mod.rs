//! Replay: sends frames known ahead of time exactly when they are due.
//!
//! A reading thread takes frames from a [feed](crate::feed), offers them to emulated
//! links at their times, and keeps delay lines filled. A sending thread only waits and
//! sends, to all ports in one order. Each departure follows from the schedule, not from
//! the previous departure, so errors do not accumulate.

mod alarms;
mod build;
mod config;
mod disturbance;
mod observed;
mod outputs;
mod pacer;
mod pump;
mod reader;
mod summary;

pub(crate) use build::ReplayPlan;
pub use config::{ReplayConfig, ReplayOutput, Start};
pub(crate) use observed::{ObservedOutput, OfferLogger};
pub(crate) use summary::ReplayInput;
