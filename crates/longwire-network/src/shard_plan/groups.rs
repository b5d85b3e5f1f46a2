//! Groups of inseparable links, and their placement on shards.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use longwire_engine::Nanos;

use super::ShardLink;

/// A hop from a link to the next, on one or more paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hop {
    pub from: u32,
    pub to: u32,
    /// Number of times that paths use the hop.
    pub crossings: u32,
}

/// Returns every hop once, sorted by link, without hops from a link to itself.
pub(super) fn hops<'a>(paths: impl Iterator<Item = &'a [u32]>) -> Vec<Hop> {
    let mut pairs = Vec::new();
    for path in paths {
        let steps = path.windows(2).map(|pair| (pair[0], pair[1]));
        pairs.extend(steps.filter(|(from, to)| from != to));
    }
    pairs.sort_unstable();
    let mut hops: Vec<Hop> = Vec::new();
    for (from, to) in pairs {
        match hops.last_mut() {
            Some(hop) if (hop.from, hop.to) == (from, to) => {
                hop.crossings = hop.crossings.saturating_add(1);
            }
            _ => hops.push(Hop {
                from,
                to,
                crossings: 1,
            }),
        }
    }
    hops
}

/// Disjoint sets (union-find). A set's smallest member represents it.
#[derive(Clone, Debug)]
pub(super) struct Sets(Vec<u32>);

impl Sets {
    pub fn new(members: usize) -> Sets {
        Sets((0..members as u32).collect())
    }

    /// Returns the representative of a member's set.
    pub fn find(&mut self, mut member: u32) -> u32 {
        loop {
            let parent = self.0[member as usize];
            if parent == member {
                return member;
            }
            // Path halving speeds up later searches.
            let next = self.0[parent as usize];
            self.0[member as usize] = next;
            member = next;
        }
    }

    pub fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one.max(other) as usize] = one.min(other);
    }
}

/// A partition of the links. Groups are numbered in order of their first links.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// The group of each link.
    pub of: Vec<u32>,
    /// The load of each group.
    pub loads: Vec<u128>,
    /// The group of the links fixed to shard 0.
    pub fixed: Option<u32>,
}

impl Groups {
    pub fn of_sets(sets: &mut Sets, links: &[ShardLink]) -> Groups {
        const NONE: u32 = u32::MAX;
        let mut number = vec![NONE; links.len()];
        let mut groups = Groups {
            of: Vec::with_capacity(links.len()),
            loads: Vec::new(),
            fixed: None,
        };
        for (index, link) in links.iter().enumerate() {
            let first = sets.find(index as u32) as usize;
            if number[first] == NONE {
                number[first] = groups.loads.len() as u32;
                groups.loads.push(0);
            }
            let group = number[first];
            groups.of.push(group);
            groups.loads[group as usize] += u128::from(link.load);
            if link.is_fixed {
                groups.fixed = Some(group);
            }
        }
        groups
    }

    pub fn total(&self) -> u128 {
        self.loads.iter().sum()
    }

    pub fn largest(&self) -> u128 {
        self.loads.iter().copied().max().unwrap_or(0)
    }

    /// Returns the number of groups with load.
    pub fn busy(&self) -> usize {
        self.loads.iter().filter(|load| **load > 0).count()
    }

    /// Returns a lower bound of the busiest shard's load with this number of shards.
    pub fn bound(&self, shards: usize) -> u128 {
        self.total().div_ceil(shards as u128).max(self.largest())
    }
}

/// Returns the sets of inseparable links: fixed links, and links joined by hops with a lookahead
/// below `least`.
pub(super) fn inseparable(links: &[ShardLink], hops: &[Hop], least: Nanos) -> Sets {
    let mut sets = Sets::new(links.len());
    let fixed = links.iter().enumerate().filter(|(_, link)| link.is_fixed);
    let mut fixed = fixed.map(|(index, _)| index as u32);
    if let Some(first) = fixed.next() {
        fixed.for_each(|other| sets.join(first, other));
    }
    for hop in hops {
        if links[hop.from as usize].lookahead < least {
            sets.join(hop.from, hop.to);
        }
    }
    sets
}

/// Joins groups along their most frequent hops, starting with short lookaheads, as long as no
/// group's load exceeds `load_max`. This reduces the number of frames that change shards.
pub(super) fn gathered(
    mut sets: Sets,
    links: &[ShardLink],
    hops: &[Hop],
    load_max: u128,
) -> Groups {
    let mut loads = vec![0; links.len()];
    for (index, link) in links.iter().enumerate() {
        loads[sets.find(index as u32) as usize] += u128::from(link.load);
    }
    let apart = |hop: &Hop, sets: &mut Sets| sets.find(hop.from) != sets.find(hop.to);
    let between = hops.iter().copied().filter(|hop| apart(hop, &mut sets));
    let mut between: Vec<Hop> = between.collect();
    between.sort_by_key(|hop| {
        let octave = links[hop.from as usize]
            .lookahead
            .as_nanos()
            .leading_zeros();
        (std::cmp::Reverse((octave, hop.crossings)), hop.from, hop.to)
    });
    for hop in between {
        let (from, to) = (sets.find(hop.from), sets.find(hop.to));
        let load = loads[from as usize] + loads[to as usize];
        if from != to && load <= load_max {
            sets.join(from, to);
            loads[from.min(to) as usize] = load;
        }
    }
    Groups::of_sets(&mut sets, links)
}

/// Maximum number of rounds that move groups to their neighbours' shards.
const ROUNDS_MAX: usize = 8;

/// Each group's shard, and each shard's load.
#[derive(Clone, Debug)]
pub(super) struct PlacedGroups {
    pub shard_of: Vec<u16>,
    pub loads: Vec<u128>,
}

impl PlacedGroups {
    pub fn busiest(&self) -> u128 {
        self.loads.iter().copied().max().unwrap_or(0)
    }
}

/// Returns whether `load` is at most 10 % above `least`.
pub(super) fn is_even(load: u128, least: u128) -> bool {
    load.saturating_mul(10) <= least.saturating_mul(11)
}

/// Divisor of the minimum busiest load that gives the maximum excess of a shard (here 1/20) when
/// groups are placed next to their neighbours. In the model of decision 0037 (two to eight cores,
/// crossings as expensive as events), 1/10 costs more through uneven loads than it saves in
/// crossings.
const SLACK_PARTS: u128 = 20;

/// Returns the maximum load of a shard if the minimum busiest load is `least`.
pub(super) fn with_slack(least: u128) -> u128 {
    least.saturating_add(least / SLACK_PARTS)
}

/// Returns the groups by descending load.
fn by_load(groups: &Groups) -> Vec<u32> {
    let mut order: Vec<u32> = (0..groups.loads.len() as u32).collect();
    order.sort_by_key(|group| (Reverse(groups.loads[*group as usize]), *group));
    order
}

/// Places groups by descending load, each on the least loaded shard (longest processing time
/// first). The busiest load is at most 4/3 of the optimum (Graham, 1969).
pub(super) fn evenly(groups: &Groups, shards: usize) -> PlacedGroups {
    let mut shard_of = vec![0; groups.loads.len()];
    let mut loads = vec![0; shards];
    let mut heap: BinaryHeap<_> = (0..shards as u16)
        .map(|shard| Reverse((0, shard)))
        .collect();
    for group in by_load(groups) {
        let Some(Reverse((load, shard))) = heap.pop() else {
            break;
        };
        let load = load + groups.loads[group as usize];
        shard_of[group as usize] = shard;
        loads[usize::from(shard)] = load;
        heap.push(Reverse((load, shard)));
    }
    PlacedGroups { shard_of, loads }
}

/// Places each group on the shard to which it has the most crossings, among those with room. Falls
/// back to [`evenly`] if the resulting loads are uneven.
pub(super) fn nearby(groups: &Groups, hops: &[Hop], shards: usize) -> PlacedGroups {
    let even = evenly(groups, shards);
    let bound = groups.bound(shards).max(even.busiest());
    let mut placer = Placer {
        groups,
        neighbours: neighbours(groups, hops),
        placement: PlacedGroups {
            shard_of: vec![Placer::NOWHERE; groups.loads.len()],
            loads: vec![0; shards],
        },
        bound,
        crossings: vec![0; shards],
    };
    for group in by_load(groups) {
        placer.place(group);
    }
    for _ in 0..ROUNDS_MAX {
        if !placer.improve() {
            break;
        }
    }
    let near = placer.placement;
    let is_used = near.loads.iter().all(|load| *load > 0);
    if is_used && is_even(near.busiest(), even.busiest()) {
        near
    } else {
        even
    }
}

/// Returns each group's neighbours with their numbers of crossings.
fn neighbours(groups: &Groups, hops: &[Hop]) -> Vec<Vec<(u32, u32)>> {
    let mut neighbours = vec![Vec::new(); groups.loads.len()];
    for hop in hops {
        let (one, other) = (groups.of[hop.from as usize], groups.of[hop.to as usize]);
        if one != other {
            neighbours[one as usize].push((other, hop.crossings));
            neighbours[other as usize].push((one, hop.crossings));
        }
    }
    neighbours
}

/// A placement in progress.
#[derive(Debug)]
struct Placer<'a> {
    groups: &'a Groups,
    neighbours: Vec<Vec<(u32, u32)>>,
    placement: PlacedGroups,
    /// Load that shards may exceed by one part in [`SLACK_PARTS`].
    bound: u128,
    /// Scratch memory for the crossings between a group and each shard.
    crossings: Vec<u64>,
}

impl Placer<'_> {
    const NOWHERE: u16 = u16::MAX;

    /// Counts the crossings between a group and each shard.
    fn count(&mut self, group: u32) {
        self.crossings.fill(0);
        for (neighbour, crossings) in &self.neighbours[group as usize] {
            let shard = self.placement.shard_of[*neighbour as usize];
            if shard != Placer::NOWHERE {
                self.crossings[usize::from(shard)] += u64::from(*crossings);
            }
        }
    }

    /// Returns the shard with the most crossings to a group, among those with room for it. Ties go
    /// to the least loaded.
    fn nearest(&mut self, group: u32) -> Option<u16> {
        self.count(group);
        let load = self.groups.loads[group as usize];
        let loads = &self.placement.loads;
        let most = with_slack(self.bound);
        let room = |shard: &usize| loads[*shard] + load <= most;
        let shards = (0..loads.len()).filter(room);
        let best = shards.max_by_key(|shard| {
            let least = Reverse((loads[*shard], *shard));
            (self.crossings[*shard], least)
        });
        best.map(|shard| shard as u16)
    }

    fn place(&mut self, group: u32) {
        let shard = self.nearest(group).unwrap_or_else(|| {
            let loads = self.placement.loads.iter().enumerate();
            let least = loads.min_by_key(|(shard, load)| (**load, *shard));
            least.map_or(0, |(shard, _)| shard as u16)
        });
        self.placement.shard_of[group as usize] = shard;
        self.placement.loads[usize::from(shard)] += self.groups.loads[group as usize];
    }

    /// Moves groups to the shards with which they have the most crossings. Returns whether any
    /// group moved.
    fn improve(&mut self) -> bool {
        let mut has_moved = false;
        for group in 0..self.groups.loads.len() as u32 {
            if self.neighbours[group as usize].is_empty() {
                continue;
            }
            let load = self.groups.loads[group as usize];
            let own = usize::from(self.placement.shard_of[group as usize]);
            let Some(best) = self.nearest(group).map(usize::from) else {
                continue;
            };
            // Do not move a shard's only load.
            if self.crossings[best] <= self.crossings[own] || self.placement.loads[own] <= load {
                continue;
            }
            self.placement.loads[own] -= load;
            self.placement.loads[best] += load;
            self.placement.shard_of[group as usize] = best as u16;
            has_moved = true;
        }
        has_moved
    }
}
