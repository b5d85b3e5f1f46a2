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
#[cfg(test)]
mod tests;

pub use count::{AUTO_LINKS_MIN, ShardCount, ShardCountError};
pub use plan::{Cut, ShardLink, ShardPlan, plan};

use longwire_engine::Nanos;

/// Minimum lookahead behind which a path may change its shard.
///
/// Each window costs two barriers of all threads, of some 2.5 us each between two to
/// eight cores (more where a thread was descheduled). A live network has as much time to
/// process a window as the window is long: at 50 us, barriers take a tenth of that time
/// from each core. Below, two shards would soon be slower than one.
pub const LOOKAHEAD_MIN: Nanos = Nanos::from_micros(50);

/// Maximum number of shards.
pub const SHARDS_MAX: usize = 64;
