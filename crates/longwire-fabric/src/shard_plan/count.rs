//! The number of shards that a user asks for.

use std::fmt;
use std::str::FromStr;

use super::plan::plan;
use super::types::{SHARDS_MAX, ShardLink, ShardPlan};

/// Minimum number of links for which `auto` uses several shards.
///
/// Fewer links fit into a core's cache (the engine assumes the same number). An event of
/// such a network costs 50 to 90 ns, while one cache line takes 50 to 200 ns between
/// cores: a frame that changes its shard would cost more than it saves.
pub const AUTO_LINKS_MIN: usize = 512;

/// A number of shards: `--shards N|auto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardCount {
    /// Two for each core, so that a thread which is delayed leaves a part of its work to the
    /// others; one for a single core, and for fewer than [`AUTO_LINKS_MIN`] links.
    #[default]
    Auto,
    /// A number from 1 to [`SHARDS_MAX`], created by [`ShardCount::exactly`] and the
    /// parser only.
    Exactly(ExactCount),
}

/// A number from 1 to [`SHARDS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactCount(u8);

/// The error for a text that is not a number of shards.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a number of shards; write 1 to {SHARDS_MAX}, or auto")]
pub struct ShardCountError {
    text: String,
}

impl ShardCount {
    /// Returns this number of shards; `None` unless it is 1 to [`SHARDS_MAX`].
    pub fn exactly(count: usize) -> Option<ShardCount> {
        let is_allowed = (1..=SHARDS_MAX).contains(&count);
        is_allowed.then_some(ShardCount::Exactly(ExactCount(count as u8)))
    }

    /// Distributes links over the requested number of shards ([`plan()`]). `cores` is the
    /// number of cores available to this process.
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
        count.ok_or_else(|| ShardCountError {
            text: text.to_owned(),
        })
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
