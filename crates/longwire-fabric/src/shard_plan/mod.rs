//! Shards: the parts of a network that are decided in parallel.
//!
//! Each shard has some of the links and an event queue. All shards process their events
//! in a window of emulated time, then exchange the frames that continue on links of other
//! shards (conservative synchronous simulation: YAWNS, Nicol 1993). A window is as long
//! as the minimum lookahead of the links behind which a path changes its shard;
//! [`plan()`] chooses these links.
//!
//! This module is pure: it reads no clock and starts no thread.

mod count;
mod groups;
mod place;
mod plan;
mod reason;
mod types;

pub use count::{AUTO_LINKS_MIN, ShardCount, ShardCountError};
pub use plan::plan;
pub use types::{Cut, LOOKAHEAD_MIN, SHARDS_MAX, ShardLink, ShardPlan};
