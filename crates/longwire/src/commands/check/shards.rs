//! The shards of a network, for display.

use longwire_engine::Nanos;
use longwire_fabric::Numbered;
use longwire_fabric::shard_plan::ShardCount;
use longwire_units::count_of;
use serde::Serialize;

/// Maximum link names shown per shard.
const NAMES_SHOWN: usize = 6;

/// Maximum cuts shown.
const CUTS_SHOWN: usize = 10;

/// A distribution of links over shards, by name.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Shards {
    /// The requested number, as written.
    asked: String,
    /// Reasons for the number of shards and for the cuts.
    reason: String,
    /// Smallest lookahead of all cuts, in nanoseconds: no shard runs ahead by more.
    lookahead_ns: Option<u64>,
    /// The shards, by number.
    shards: Vec<Shard>,
    /// Cuts, where paths change shards; shortest lookahead first.
    cuts: Vec<NamedCut>,
}

/// One shard.
#[derive(Clone, Debug, Serialize)]
struct Shard {
    /// Names of its links.
    links: Vec<String>,
    /// Load, in bit/s where rates are known.
    load: u64,
    /// Share of the total load, from 0 to 1.
    share: f64,
}

/// A cut, where paths change shards.
#[derive(Clone, Debug, Serialize)]
struct NamedCut {
    link: String,
    to: String,
    lookahead_ns: u64,
}

impl Shards {
    /// Plans the shards of a network for a machine with `cores` cores.
    pub(super) fn of(network: &Numbered, count: ShardCount, cores: usize) -> Shards {
        let plan = network.shard_plan(count, cores);
        let links = network.links();
        let total: f64 = plan.loads.iter().map(|load| *load as f64).sum();
        let mut shards: Vec<Shard> = plan
            .loads
            .iter()
            .map(|load| Shard {
                links: Vec::new(),
                load: *load,
                share: if total > 0.0 {
                    *load as f64 / total
                } else {
                    1.0
                },
            })
            .collect();
        let present = links
            .iter()
            .zip(&plan.shard_of)
            .filter(|(link, _)| !link.removed);
        for (link, shard) in present {
            shards[usize::from(*shard)].links.push(link.name.clone());
        }
        let name = |link: u32| links[link as usize].name.clone();
        let mut cuts = plan.cuts;
        cuts.sort_by_key(|cut| (cut.lookahead, cut.link, cut.to));
        let named = cuts.iter().map(|cut| NamedCut {
            link: name(cut.link),
            to: name(cut.to),
            lookahead_ns: cut.lookahead.as_nanos(),
        });
        Shards {
            asked: count.to_string(),
            reason: plan.reason,
            lookahead_ns: plan.lookahead.map(Nanos::as_nanos),
            shards,
            cuts: named.collect(),
        }
    }

    /// Returns the plan as lines of text.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "shards     {} ({} requested): {}",
            self.shards.len(),
            self.asked,
            self.reason
        )];
        for (number, shard) in self.shards.iter().enumerate() {
            let names = &shard.links[..shard.links.len().min(NAMES_SHOWN)];
            let more = match shard.links.len() - names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            lines.push(format!(
                "  shard {number:<2} {:.1} % of the load, {}: {}{more}",
                shard.share * 100.0,
                count_of(shard.links.len() as u64, "link"),
                names.join(", ")
            ));
        }
        for cut in self.cuts.iter().take(CUTS_SHOWN) {
            let lookahead = Nanos::from_nanos(cut.lookahead_ns);
            lines.push(format!(
                "  cut      {lookahead} between {} and {}",
                cut.link, cut.to
            ));
        }
        if self.cuts.len() > CUTS_SHOWN {
            let more = (self.cuts.len() - CUTS_SHOWN) as u64;
            let longest = self.cuts.iter().map(|cut| cut.lookahead_ns).max();
            lines.push(format!(
                "           and {}, up to {}",
                count_of(more, "other cut"),
                Nanos::from_nanos(longest.unwrap_or(0))
            ));
        }
        lines
    }
}
