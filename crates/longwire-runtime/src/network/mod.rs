//! Live networks: a plan, its start, and the network while it runs.
//!
//! A [`NetworkPlan`] names the ports, or the feed, and what carries frames
//! between them. [`start`] chooses the stages and threads from it:
//!
//! ```text
//!  a link that no one changes    each direction: ingress stage ═▶ egress stage   pair.rs
//!  a network that can be changed ingress stages ═▶ one deciding stage            fabric/live.rs
//!  a feed with outputs           reading thread ═▶ sending thread                replay/build.rs
//! ```
//!
//! A [`RunningNetwork`] is the same for all of them, and so is its
//! [`RunReport`](crate::RunReport).

mod assembly;
mod pair;
mod plan;
mod running;

pub(crate) use assembly::{Assembly, Foundation, ReportSource, ReportSources, RunFacts};
pub use pair::LEND_FROM;
pub(crate) use pair::{Direction, DirectionConfig, memory_for, memory_held, memory_of};
pub use plan::NetworkPlan;
pub use running::{RunningNetwork, start};
