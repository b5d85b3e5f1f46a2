//! Replay: frames that are known ahead of time, sent exactly when they are due.
//!
//! A reading thread takes frames from a [feed](crate::feed), offers them to
//! emulated links as of their times, and keeps delay lines filled. A sending
//! thread does nothing but wait and send, to all ports in one order. Every departure follows from the
//! schedule and never from the departure before, so errors do not accumulate.

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
