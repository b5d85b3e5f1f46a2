//! Stages, threads, clock and measurement: what turns the engine and the
//! ports into a running link.
//!
//! Start reading at [`stage::Ingress::step`] and [`stage::Egress::step`]: a
//! frame's whole way through a run.

pub mod clock;
pub mod config;
mod counters;
pub mod fabric;
mod faults;
pub mod feed;
mod files;
pub mod host;
mod lateness;
pub mod loader;
pub mod pipeline;
pub mod placement;
pub mod plugin;
mod port_loss;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod sent;
pub mod shutdown;
pub mod stage;
mod start_error;
mod stops;
pub mod suggest;
pub mod summary;
mod thread;
mod threads;
mod waiting;
mod witness;

pub use config::{LinkSetup, Placement, RunConfig, WaitMode};
pub use counters::Artifact;
pub use faults::Faults;
pub use feed::{Fed, Feed, FeedStatus};
pub use files::{Directory, FileAccess, FileError, FileReader, ReadLimits};
pub use loader::{FileLoader, try_plugin};
pub use plugin::CPlugin;
pub use port_loss::{LostPort, OnPortLoss};
pub use record::{Recorder, Tap};
pub use report::{
    DepartureReport, InputReport, Lateness, LinkReport, Pauses, RunReport, SendStampReport,
};
pub use run::{Running, start, start_recorded};
pub use start_error::StartError;
