//! Shards: subsets of a network's links, processed in parallel.
//!
//! Each shard has some of the links and an event queue. All shards process the events of a window
//! of emulated time, then exchange the frames that continue on other shards' links (conservative
//! synchronous simulation: YAWNS, Nicol 1993). The window length is the minimum lookahead of the
//! links after which a path changes shards; [`plan()`] chooses these links.
//!
//! This module is pure: it reads no clock and starts no thread.

mod groups;
mod plan;

use std::fmt;
use std::str::FromStr;

use longwire_engine::Nanos;
use longwire_runtime::deciding::Sharding;

pub use plan::plan;

/// The planner's input for one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardLink {
    /// Minimum time from a frame's arrival to its release
    /// ([`LinkConfig::lookahead`](longwire_engine::LinkConfig::lookahead)).
    pub lookahead: Nanos,
    /// Load in any unit. Links without load may be placed anywhere.
    pub load: u64,
    /// Whether the link must be on shard 0, because it has plugins.
    pub is_fixed: bool,
}

/// A hop at which paths change shards.
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
    /// Hops at which paths change shards, sorted by link and next link.
    pub cuts: Vec<Cut>,
    /// The load of each shard.
    pub loads: Vec<u64>,
    /// Explanation of the number of shards and the cuts, in one sentence.
    pub reason: String,
}

impl ShardPlan {
    /// Returns the distribution over this machine's cores.
    pub fn sharding(&self) -> Sharding {
        Sharding::on_cores(&self.shard_of, self.shards)
    }
}

/// Minimum lookahead of a link after which paths may change shards.
///
/// Each window costs two barriers; at 1,000,000 frames/s, a window of 50 us contains 50 frames. The
/// median of a spinning barrier for two threads was 80 ns on cores that share a cache; otherwise,
/// moving a cache line takes at least 200 ns, and a barrier about 500 ns. In the model of decision
/// 0037 (events of 100 ns, 1,000,000 frames/s), the speed-up at 50 us is 1.4 to 3.2 on two to eight
/// shards; at 20 us, it is 0.9 on eight shards of a star.
pub const LOOKAHEAD_MIN: Nanos = Nanos::from_micros(50);

/// Maximum number of shards.
pub const SHARDS_MAX: usize = 64;

/// Minimum number of links for which `auto` uses several shards.
///
/// The links of a smaller network fit in a core's cache (the engine assumes the same number). An
/// event in such a network costs 50 to 90 ns, and moving one cache line between cores takes 50 to
/// 200 ns, so a frame that changes shards would cost more than it saves.
pub const AUTO_LINKS_MIN: usize = 512;

/// A number of shards: `--shards N|auto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardCount {
    /// Two per core, so that other threads can take over part of a delayed thread's work. One for a
    /// single core or fewer than [`AUTO_LINKS_MIN`] links.
    #[default]
    Auto,
    /// A number from 1 to [`SHARDS_MAX`], created only by [`ShardCount::exactly`] and the parser.
    Exactly(ExactCount),
}

/// A number from 1 to [`SHARDS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactCount(u8);

/// The error for text that is not a number of shards.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a number of shards; write 1 to {SHARDS_MAX}, or auto")]
pub struct ShardCountError(String);

impl ShardCount {
    /// Returns this number of shards; `None` unless it is from 1 to [`SHARDS_MAX`].
    pub fn exactly(count: usize) -> Option<ShardCount> {
        let is_allowed = (1..=SHARDS_MAX).contains(&count);
        is_allowed.then_some(ShardCount::Exactly(ExactCount(count as u8)))
    }

    /// Distributes links over the requested number of shards ([`plan()`]). `cores` is the number of
    /// cores available to this process.
    ///
    /// # Panics
    /// If a path has an index out of range.
    pub fn plan<'a>(
        self,
        links: &[ShardLink],
        paths: impl Iterator<Item = &'a [u32]> + Clone,
        cores: usize,
    ) -> ShardPlan {
        let wanted = self.wanted(links.len(), cores);
        let mut plan = plan(links, paths, wanted);
        if self == ShardCount::Auto && wanted == 1 {
            plan.reason = if links.len() < AUTO_LINKS_MIN {
                format!("fewer than {AUTO_LINKS_MIN} links fit into the cache of one core")
            } else {
                "only one core".to_owned()
            };
        }
        plan
    }

    /// Returns the number of shards to request from [`plan()`], which may use fewer.
    fn wanted(self, links: usize, cores: usize) -> usize {
        match self {
            ShardCount::Auto if links < AUTO_LINKS_MIN => 1,
            ShardCount::Auto if cores < 2 => 1,
            ShardCount::Auto => (2 * cores).min(SHARDS_MAX),
            ShardCount::Exactly(ExactCount(count)) => usize::from(count),
        }
    }
}

impl FromStr for ShardCount {
    type Err = ShardCountError;

    fn from_str(text: &str) -> Result<ShardCount, ShardCountError> {
        if text == "auto" {
            return Ok(ShardCount::Auto);
        }
        let count = text.parse().ok().and_then(ShardCount::exactly);
        count.ok_or_else(|| ShardCountError(text.to_owned()))
    }
}

impl fmt::Display for ShardCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShardCount::Auto => f.write_str("auto"),
            ShardCount::Exactly(ExactCount(count)) => write!(f, "{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_follows_links_and_cores() {
        let (few, many) = (AUTO_LINKS_MIN - 1, AUTO_LINKS_MIN);
        assert_eq!(ShardCount::Auto.wanted(few, 8), 1);
        assert_eq!(ShardCount::Auto.wanted(many, 8), 16);
        assert_eq!(ShardCount::Auto.wanted(many, 200), SHARDS_MAX);
        assert_eq!(ShardCount::Auto.wanted(many, 0), 1);
        let four = ShardCount::exactly(4).expect("an allowed number");
        assert_eq!((four.wanted(1, 1), four.wanted(many, 1)), (4, 4));

        let link = ShardLink {
            load: 1,
            ..ShardLink::default()
        };
        let plan = |count: ShardCount, links, cores| {
            let plan = count.plan(&vec![link; links], std::iter::empty(), cores);
            (plan.shards, plan.reason)
        };
        let few_links = "fewer than 512 links fit into the cache of one core";
        assert_eq!(plan(ShardCount::Auto, few, 8), (1, few_links.to_owned()));
        let one_core = "only one core".to_owned();
        assert_eq!(plan(ShardCount::Auto, many, 1), (1, one_core));
        assert_eq!(plan(ShardCount::Auto, many, 8).0, 16);
        assert_eq!(plan(four, few, 1).0, 4);
    }
}
