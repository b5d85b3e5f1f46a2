//! Input, output and limits of the planner.

use longwire_engine::Nanos;
use longwire_runtime::fabric::Sharding;

/// A link of the planner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardLink {
    /// Minimum time from a frame's arrival to its release
    /// ([`LinkConfig::lookahead`](longwire_engine::LinkConfig::lookahead)).
    pub lookahead: Nanos,
    /// Load in any unit. Links without load may be placed anywhere.
    pub load: u64,
    /// Whether the link must be in shard 0, because it has plugins.
    pub is_fixed: bool,
}

/// A hop on which paths change their shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cut {
    /// The link that a frame leaves.
    pub link: u32,
    /// The next link, on another shard.
    pub to: u32,
    /// The lookahead of `link`.
    pub lookahead: Nanos,
}

/// A distribution of links over shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardPlan {
    /// Number of shards in use, at most the requested number.
    pub shards: usize,
    /// The shard of each link.
    pub shard_of: Vec<u16>,
    /// Window length: the minimum lookahead of all cuts; `None` without cuts.
    pub lookahead: Option<Nanos>,
    /// Hops on which paths change their shard, sorted by link and next link.
    pub cuts: Vec<Cut>,
    /// The load of each shard.
    pub loads: Vec<u64>,
    /// Explains the number of shards and the cuts in one sentence.
    pub reason: String,
}

impl ShardPlan {
    /// Returns the distribution over the cores of this machine.
    pub fn sharding(&self) -> Sharding {
        Sharding::on_cores(&self.shard_of, self.shards)
    }
}

/// Minimum lookahead of a link after which paths may change their shard.
///
/// Each window costs two barriers; at 1,000,000 frames/s a window of 50 us holds 50
/// frames. The median of a spinning barrier of two threads was 80 ns on cores that share
/// a cache; otherwise a cache line takes at least 200 ns, and a barrier about 500 ns. In
/// the model of decision 0037 (events of 100 ns, 1,000,000 frames/s), the speed-up is 1.4
/// to 3.2 at 50 us on two to eight shards, but 0.9 at 20 us on eight shards of a star.
pub const LOOKAHEAD_MIN: Nanos = Nanos::from_micros(50);

/// Maximum number of shards.
pub const SHARDS_MAX: usize = 64;
