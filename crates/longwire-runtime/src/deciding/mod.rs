//! Networks: many links behind a switch and a classifier, between any number of ports,
//! with changes at run time.
//!
//! ```text
//!  port ─▶ ingress stage ═▶ line ─┐             ┌─▶ links in event time ─┐
//!  port ─▶ ingress stage ═▶ line ─┼▶ by arrival ▶ switch ▶ classifier    ├▶ by release ─▶ ports
//!  port ─▶ ingress stage ═▶ line ─┘             └─▶ pass, drop ──────────┘
//! ```
//!
//! If every port has a separate link, its line is a *lane*: frames bypass the switch and the
//! classifier, and are mostly decided and sent in place.
//!
//! One thread decides and sends for all ports ([`DecidingStage`]), so ports share links without
//! locks. [`Core`] contains all state that depends on event time and random streams: the
//! same arrivals lead to the same decisions.

mod backlog;
mod carrier_switch;
mod carriers;
mod changing;
mod core;
mod flows;
mod frames;
mod handle;
mod lanes;
mod live;
mod orders;
mod pair;
pub mod pipeline;
mod recorder;
mod remote;
mod report;
mod shards;
mod simulation;
mod stage;
mod state;
mod store;
mod watched;

pub use crate::counters::{CoreCounts, LinkCells, LinkTotals};

pub use self::core::Core;
pub use carriers::PortCarrier;
pub use changing::{DeferredDrop, Occupancy};
pub use flows::FlowCount;
pub use frames::OutputFrame;
pub(crate) use frames::{Frame, Frames};
pub use handle::NetworkHandle;
pub(crate) use lanes::InPlaceLane;
pub use live::NetworkParts;
pub use orders::{Operation, Order, Query, Task};
pub(crate) use recorder::{EventRecorder, LinkAccount};
pub use remote::{RemoteFrame, RemoteParts, RemoteReader, RemoteWriter, remote_line};
pub(crate) use report::InsideCounts;
pub use report::{PortReport, SwitchReport};
pub use shards::{ShardTimes, Sharding, shard_round};
pub use simulation::Simulation;
pub use stage::DecidingStage;
pub use state::Target;
