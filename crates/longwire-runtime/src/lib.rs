//! Stages, threads, clock and measurement: what turns the engine and the
//! ports into a running link.

pub mod config;
pub mod report;

pub use config::{LinkSetup, Placement, RunConfig, WaitMode};
pub use report::{Lateness, LinkReport, Pauses, RunReport};
