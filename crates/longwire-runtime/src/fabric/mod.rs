//! Fabrics: many links behind a switch and a classifier, between any number of ports,
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
//! One thread decides and sends for all ports ([`Fabric`]), so ports share links without
//! locks. [`Core`] contains all state that depends on event time and random streams: the
//! same arrivals lead to the same decisions.

mod backlog;
mod building;
mod carrier_switch;
mod carriers;
mod core;
mod flows;
mod frames;
mod handle;
mod lanes;
mod ledger;
mod live;
mod orders;
mod pair;
pub mod pipeline;
mod remote;
mod report;
mod shards;
mod simulation;
mod stage;
mod state;
mod store;
mod watched;

pub use crate::ledger::{CoreCounts, LinkCells, LinkTotals};

pub use self::core::Core;
pub use building::{DeferredDrop, Occupancy};
pub use carriers::PortCarrier;
pub use flows::FlowCount;
pub use frames::OutputFrame;
pub(crate) use frames::{Frame, Frames};
pub use handle::FabricHandle;
pub(crate) use lanes::LaneTurn;
pub(crate) use ledger::{Ledger, LinkAccount};
pub use live::FabricParts;
pub use orders::{Operation, Order, Query, Task};
pub use remote::{RemoteFrame, RemoteParts, RemoteReader, RemoteWriter, remote_line};
pub(crate) use report::InsideCounts;
pub use report::{PortReport, SwitchReport};
pub use shards::{ShardTimes, Sharding, shard_round};
pub use simulation::Simulation;
pub use stage::Fabric;
pub use state::Target;
