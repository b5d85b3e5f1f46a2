//! Arguments and results of the planner, and its limits.

use longwire_engine::Nanos;
use longwire_runtime::fabric::Sharding;

/// A link, as the planner sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardLink {
    /// Lower bound of the time between a frame's arrival and its release
    /// ([`LinkConfig::lookahead`](longwire_engine::LinkConfig::lookahead)).
    pub lookahead: Nanos,
    /// Share of the work, in any unit. A link without load is placed anywhere.
    pub load: u64,
    /// The link must be in shard 0: it has plugins.
    pub is_fixed: bool,
}

/// A place where paths change their shard.
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
    /// Number of shards in use, from 1 to the number asked for.
    pub shards: usize,
    /// The shard of each link.
    pub shard_of: Vec<u16>,
    /// Length of a window: the smallest lookahead of all cuts; `None` if no path changes
    /// its shard.
    pub lookahead: Option<Nanos>,
    /// Places where paths change their shard, by link and next link.
    pub cuts: Vec<Cut>,
    /// The load of each shard.
    pub loads: Vec<u64>,
    /// A sentence for the user: the reasons for this number of shards and for these cuts.
    pub reason: String,
}

impl ShardPlan {
    /// Returns the distribution over the cores of this machine; `None` for a single shard.
    pub fn sharding(&self) -> Option<Sharding> {
        Sharding::on_cores(&self.shard_of, self.shards)
    }
}

/// Minimum lookahead behind which a path may change its shard.
///
/// Each window costs two barriers of all threads, and at a million frames a second there
/// are 50 frames in a window of 50 us. A spinning barrier of two threads was measured at
/// 80 ns (median) on cores that share a cache; where cores share none, a line takes 200 ns
/// and more to the next core, and a barrier some 500 ns. The model of decision 0037
/// (events of 100 ns, a million frames a second) then gives speed-ups of 1.4 to 3.2 at
/// 50 us on two to eight shards, but of 0.9 on eight shards of a star at 20 us: slower
/// than one shard.
pub const LOOKAHEAD_MIN: Nanos = Nanos::from_micros(50);

/// Maximum number of shards.
pub const SHARDS_MAX: usize = 64;
