//! Shards: the parts of a network of links that are decided in parallel.
//!
//! Each shard has some of the links and its own queue of events. All shards process their
//! events in a window of emulated time, then exchange the frames that continue on another
//! shard's link (conservative synchronous simulation: YAWNS, Nicol 1993). A window is as
//! long as the smallest lookahead of the links behind which a path changes its shard, so
//! [`plan()`] chooses those links.
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
