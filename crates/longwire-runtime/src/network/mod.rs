//! Live networks: a plan, its start, and the running network.
//!
//! A [`NetworkPlan`] consists of ports or a feed, and the links between them. [`start`]
//! derives stages and threads from it:
//!
//! ```text
//!  a link that never changes     each direction: ingress stage ═▶ egress stage   pair.rs
//!  a network that can be changed ingress stages ═▶ one deciding stage            deciding/live.rs
//!  a feed with outputs           reading thread ═▶ sending thread                replay/build.rs
//! ```
//!
//! Each runs as a [`RunningNetwork`] and produces a [`RunReport`](crate::RunReport).

mod assembly;
mod pair;
mod plan;
mod running;

pub(crate) use assembly::{Assembly, Foundation, ReportSources, RunFacts};
pub use pair::LEND_FROM;
pub(crate) use pair::{Direction, DirectionConfig, memory_for, memory_held, memory_of};
pub use plan::NetworkPlan;
pub use running::{RunningNetwork, start};
