//! Placement of groups on shards: even loads first, then few crossings.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::groups::{Groups, Hop};

/// Maximum number of rounds that move groups to their neighbours' shards.
const ROUNDS_MAX: usize = 8;

/// The shard of each group, and the load of each shard.
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

/// Whether `load` exceeds `least` by at most 10 %.
pub(super) fn is_even(load: u128, least: u128) -> bool {
    load.saturating_mul(10) <= least.saturating_mul(11)
}

/// Groups are placed next to their neighbours while no shard exceeds the minimum busiest
/// load by more than this fraction, 1/20. In the model of decision 0037 (two to eight
/// cores, crossings as expensive as events), 1/10 loses more to uneven loads than it
/// saves on crossings.
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

/// Places groups by descending load, each on the shard with the least load (longest
/// processing time first). The busiest load is at most 4/3 of the optimum (Graham, 1969).
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

/// Places each group on the shard with most of its neighbours while loads stay even;
/// falls back to [`evenly`].
pub(super) fn nearby(groups: &Groups, hops: &[Hop], shards: usize) -> PlacedGroups {
    let even = evenly(groups, shards);
    let bound = groups.bound(shards).max(even.busiest());
    let mut placer = Placer {
        groups,
        neighbours: Neighbours::new(groups, hops),
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

/// The neighbours of each group, in compressed rows.
#[derive(Debug)]
struct Neighbours {
    starts: Vec<usize>,
    /// Neighbour and number of crossings.
    entries: Vec<(u32, u32)>,
}

impl Neighbours {
    fn new(groups: &Groups, hops: &[Hop]) -> Neighbours {
        let ends = |hop: &Hop| (groups.of[hop.from as usize], groups.of[hop.to as usize]);
        let between = || hops.iter().filter(move |hop| ends(hop).0 != ends(hop).1);
        let mut starts = vec![0; groups.loads.len() + 1];
        for hop in between() {
            let (one, other) = ends(hop);
            starts[one as usize + 1] += 1;
            starts[other as usize + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut free = starts.clone();
        let mut entries = vec![(0, 0); starts.last().copied().unwrap_or(0)];
        for hop in between() {
            let (one, other) = ends(hop);
            for (group, neighbour) in [(one, other), (other, one)] {
                entries[free[group as usize]] = (neighbour, hop.crossings);
                free[group as usize] += 1;
            }
        }
        Neighbours { starts, entries }
    }

    fn of(&self, group: u32) -> &[(u32, u32)] {
        let group = group as usize;
        &self.entries[self.starts[group]..self.starts[group + 1]]
    }
}

/// A placement in progress.
#[derive(Debug)]
struct Placer<'a> {
    groups: &'a Groups,
    neighbours: Neighbours,
    placement: PlacedGroups,
    /// Shards may exceed this load by a [`SLACK_PARTS`]th.
    bound: u128,
    /// Scratch memory: crossings between a group and each shard.
    crossings: Vec<u64>,
}

impl Placer<'_> {
    const NOWHERE: u16 = u16::MAX;

    /// Counts the crossings between a group and each shard.
    fn count(&mut self, group: u32) {
        self.crossings.fill(0);
        for (neighbour, crossings) in self.neighbours.of(group) {
            let shard = self.placement.shard_of[*neighbour as usize];
            if shard != Placer::NOWHERE {
                self.crossings[usize::from(shard)] += u64::from(*crossings);
            }
        }
    }

    /// Returns the shard with room for a group and most crossings with it; ties go to the
    /// least load.
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

    /// Moves groups to the shards with which they have most crossings. Returns whether
    /// any moved.
    fn improve(&mut self) -> bool {
        let mut has_moved = false;
        for group in 0..self.groups.loads.len() as u32 {
            if self.neighbours.of(group).is_empty() {
                continue;
            }
            let load = self.groups.loads[group as usize];
            let own = usize::from(self.placement.shard_of[group as usize]);
            let Some(best) = self.nearest(group).map(usize::from) else {
                continue;
            };
            // A shard keeps its last load.
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
