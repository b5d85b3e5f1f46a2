//! Stages, threads, clock and measurement: the parts that turn the engine and the ports into a
//! running link.
//!
//! ```
//! use longwire_engine::{Bytes, LinkSpec, NoLoader};
//! use longwire_io::port::mem::pipe;
//! use longwire_io::port::one_way::{DiscardTx, SilentRx};
//! use longwire_io::port::registry::{AnyRx, AnyTx, Port};
//! use longwire_runtime::{LinkSetup, NetworkPlan, RunConfig, start};
//!
//! // A link of 20 ms from one in-memory cable to another.
//! let (_sender, into_link) = pipe(Bytes(1 << 20))?;
//! let (out_of_link, _receiver) = pipe(Bytes(1 << 20))?;
//! let port = |name: &str, rx, tx| Port { name: name.to_owned(), rx, tx, notes: Vec::new() };
//! let a = port("a", AnyRx::Pipe(Box::new(into_link)), AnyTx::Discard(DiscardTx::default()));
//! let b = port("b", AnyRx::Silent(SilentRx), AnyTx::Pipe(Box::new(out_of_link)));
//! let spec: LinkSpec = "delay=20ms".parse()?;
//! let link = LinkSetup { name: "link.up".to_owned(), config: spec.build(&NoLoader)? };
//! let plan = NetworkPlan::link(a, b, link, None);
//! let running = start(plan, RunConfig::default(), None)?;
//! // Frames pushed into `_sender` arrive at `_receiver` 20 ms later.
//! let report = running.stop();
//! assert_eq!(report.links[0].name, "link.up");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Start reading at [`stage::Ingress::step`] and the step of [`stage::Egress`], which together
//! process every frame of a run.

pub mod clock;
pub mod config;
pub mod counters;
pub mod crossing;
pub mod deciding;
mod faults;
pub mod feed;
mod grade;
pub mod host;
pub mod loader;
pub mod network;
pub mod pipeline;
pub mod placement;
pub mod plugin;
mod port_loss;
pub mod record;
pub mod replay;
pub mod report;
pub mod sent;
pub mod shutdown;
pub mod stage;
mod start_error;
mod stops;
pub mod suggest;
pub mod summary;
pub mod sync;
mod thread;
mod threads;
mod waiting;
mod witness;

pub use config::{DIRECTIONS, LinkSetup, Placement, RunConfig, WaitMode};
pub use counters::{Artifact, Spread};
pub use deciding::Simulation;
pub use faults::Faults;
pub use feed::{Feed, FeedFrame, FeedStatus};
pub use grade::Grade;
pub use loader::{FileLoader, PluginUse, try_plugin};
pub use longwire_capture::files::{Directory, FileAccess, FileError, FileReader, ReadLimits};
pub use network::{NetworkPlan, RunningNetwork, start};
pub use plugin::CPlugin;
pub use port_loss::{LostPort, OnPortLoss};
pub use record::{FileRecorder, RecordError, RecordHandle, Recorder};
pub use report::{DepartureReport, InputReport, LinkReport, Pauses, RunReport, SendStampReport};
pub use start_error::StartError;
