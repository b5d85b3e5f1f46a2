//! Input of the shard planner: loads and lookaheads of links.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use crate::by_class::ByClass;
use crate::shard_plan::{ShardCount, ShardLink, ShardPlan};
use longwire_engine::{BitRate, LinkId, LinkSpec, Nanos};

use crate::Numbered;
use longwire_topology::{Action, Class, Direction, Unmatched};

impl Numbered {
    /// Assigns the links to shards ([`ShardCount::plan`]). `cores` is the number of cores
    /// available to this process.
    pub fn shard_plan(&self, count: ShardCount, cores: usize) -> ShardPlan {
        let links = self.shard_links();
        let joined = self.multi_link_paths();
        count.plan(&links, joined.iter().map(Vec::as_slice), cores)
    }

    /// Returns the planner's input by link number.
    ///
    /// * **Lookahead**: the minimum guaranteed delay over the scenario. Changes through the control
    ///   API are not known in advance.
    /// * **Load**: a topology has no traffic matrix, so each path counts, in each direction in use,
    ///   as the rate of its slowest link in bit/s. A path without rates counts as the fastest path,
    ///   or as 1 if no path has a rate. A link's load is the sum over its paths, at most its own
    ///   rate.
    /// * **Fixed**: links with plugins.
    pub fn shard_links(&self) -> Vec<ShardLink> {
        let loads = self.loads();
        let links = self.links().iter().zip(loads);
        // Links with equal options share one specification, so cache results by its address.
        let mut known: HashMap<*const LinkSpec, (Nanos, bool)> = HashMap::new();
        let mut links: Vec<ShardLink> = links
            .map(|(link, load)| {
                let options = &link.options;
                let known = known.entry(Arc::as_ptr(options));
                let (lookahead, has_plugins) =
                    *known.or_insert_with(|| (options.lookahead(), options.has_plugins()));
                ShardLink {
                    lookahead,
                    load: if link.removed { 0 } else { load },
                    is_fixed: !link.removed && has_plugins,
                }
            })
            .collect();
        for event in &self.topology().timeline.events {
            let ends = event
                .ramps
                .iter()
                .flat_map(|ramp| [0, ramp.steps].map(|n| ramp.step(n)));
            for action in event.actions.iter().cloned().chain(ends) {
                if let Action::Set {
                    pattern, options, ..
                } = action
                {
                    self.note_change(&pattern, &options, &mut links);
                }
            }
        }
        links
    }

    /// Applies a scenario change to the links that it names: lowers their lookahead, and fixes
    /// links that get plugins.
    fn note_change(&self, pattern: &str, change: &LinkSpec, links: &mut [ShardLink]) {
        let has_plugins = change.has_plugins();
        if change.delay.is_none() && change.reordering.is_none() && !has_plugins {
            return;
        }
        for number in self.fitting(pattern) {
            let link = &mut links[number.0 as usize];
            let options = self.links()[number.0 as usize].options.overlay(change);
            link.lookahead = link.lookahead.min(options.lookahead());
            link.is_fixed |= has_plugins;
        }
    }

    /// Returns the paths with at least two links, as engine numbers.
    fn multi_link_paths(&self) -> Vec<Vec<u32>> {
        let paths = 0..self.topology().paths.len() as u32;
        let directions = paths.flat_map(|path| {
            [Direction::Up, Direction::Down].map(|direction| (Class::Path(path), direction))
        });
        let links = directions.filter_map(|(class, direction)| self.links_of(class, direction));
        links
            .filter(|links| links.len() > 1)
            .map(|links| links.iter().map(|link| link.0).collect())
            .collect()
    }

    /// Returns the paths in use, each once: targets of rules, of unmatched frames, and of the
    /// scenario's moves.
    fn used(&self) -> Vec<&[LinkId]> {
        let topology = self.topology();
        let rules = topology.rules.iter();
        let mut targets: Vec<(Class, Direction)> = rules
            .map(|rule| (rule.target.class, rule.target.direction))
            .collect();
        if let Unmatched::Link(link) = topology.unmatched {
            targets.push((Class::Link(link), Direction::Up));
        }
        for event in &topology.timeline.events {
            for action in &event.actions {
                if let Action::Move { to, .. } = action
                    && let Some(class) = topology.named(to)
                {
                    targets.extend([(class, Direction::Up), (class, Direction::Down)]);
                }
            }
        }
        let mut seen: ByClass<[bool; 2]> = ByClass::default();
        targets.retain(|(class, direction)| {
            !mem::replace(&mut seen.entry(*class)[*direction as usize], true)
        });
        let links = targets
            .iter()
            .filter_map(|(class, direction)| self.links_of(*class, *direction));
        links.collect()
    }

    fn loads(&self) -> Vec<u64> {
        let rates = self.links().iter();
        let rates = rates.map(|link| link.options.bit_rate().map(BitRate::bits_per_sec));
        let rates: Vec<Option<u64>> = rates.collect();
        let rate_of = |link: &LinkId| rates[link.0 as usize];
        let slowest = |links: &&[LinkId]| links.iter().filter_map(rate_of).min();
        let used = self.used();
        let fastest = used.iter().filter_map(slowest).max().unwrap_or(1);
        let mut loads = vec![0_u64; self.links().len()];
        for links in &used {
            let rate = slowest(links).unwrap_or(fastest);
            for link in *links {
                let load = &mut loads[link.0 as usize];
                *load = load
                    .saturating_add(rate)
                    .min(rate_of(link).unwrap_or(u64::MAX));
            }
        }
        loads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use longwire_topology::Topology;

    fn numbered(text: &str) -> Numbered {
        let ports = "[ports]\na = \"null\"\nb = \"null\"\n";
        let topology = Topology::parse("net.toml", &format!("{ports}{text}"), Path::new(""));
        Numbered::new(topology.unwrap_or_else(|problems| panic!("{problems:?}")))
    }

    const CHAIN: &str = "
        [[link]]
        name = \"access{n}\"
        count = 3
        rate = \"16mbit\"
        delay = \"20ms\"
        down = { rate = \"100mbit\", delay = \"5ms\" }
        [[link]]
        name = \"core\"
        rate = \"1gbit\"
        delay = \"2ms\"
        [[link]]
        name = \"free\"
        match = \"src=10.9.0.0/16\"
        [[path]]
        name = \"way1\"
        via = [\"access1\", \"core\"]
        match = \"src=10.0.0.1\"
        [[path]]
        name = \"way2\"
        via = [\"access2\", \"core\"]
        match = \"src=10.0.0.2\"
        [[path]]
        name = \"unused\"
        via = [\"access3\", \"core\"]
    ";

    fn links(network: &Numbered) -> Vec<(&str, u64, u64)> {
        let links = network.links().iter().zip(network.shard_links());
        let link = |(link, seen)| {
            let (link, seen): (&crate::NumberedLink, ShardLink) = (link, seen);
            (
                link.name.as_str(),
                seen.load / 1_000_000,
                seen.lookahead.as_nanos() / 1_000,
            )
        };
        links.map(link).collect()
    }

    /// Compares with loads computed by hand: a path counts as its slowest link, a path without
    /// rates as the fastest path, and a path without rules as nothing.
    #[test]
    fn loads_follow_the_paths_that_cross_a_link() {
        let network = numbered(CHAIN);
        let expected = [
            ("access1.up", 16, 20_000),
            ("access1.down", 100, 5_000),
            ("access2.up", 16, 20_000),
            ("access2.down", 100, 5_000),
            ("access3.up", 0, 20_000),
            ("access3.down", 0, 5_000),
            ("core.up", 32, 2_000),
            ("core.down", 200, 2_000),
            ("free.up", 100, 0),
            ("free.down", 100, 0),
        ];
        assert_eq!(links(&network), expected);
    }

    #[test]
    fn a_scenario_shortens_the_lookahead() {
        let text = format!(
            "{CHAIN}
            [[at]]
            time = \"1s\"
            set = {{ \"access1\" = {{ delay = \"1ms\" }}, \"access2.up\" = {{ reorder = \"gap:gap=5\" }} }}
            [[at]]
            time = \"2s\"
            ramp = {{ \"core.up\" = {{ option = \"delay\", from = \"9ms\", to = \"1ms\", time = \"1s\" }} }}
            [[at]]
            time = \"3s\"
            set = {{ \"access3\" = {{ delay = \"1s\" }} }}"
        );
        let network = numbered(&text);
        let lookaheads = links(&network).into_iter().map(|(_, _, micros)| micros);
        let expected = [1_000, 1_000, 0, 5_000, 20_000, 5_000, 1_000, 2_000, 0, 0];
        assert_eq!(lookaheads.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_topology_is_planned() {
        let two = ShardCount::exactly(2).expect("an allowed number");
        let plan = numbered(CHAIN).shard_plan(two, 1);
        assert_eq!(plan.shards, 2);
        assert_eq!(plan.lookahead, Some(Nanos::from_millis(2)));
        assert_eq!(plan.loads.iter().sum::<u64>(), 664_000_000);
    }
}
