//! Groups of inseparable links, and the hops between groups.

use longwire_engine::Nanos;

use super::types::ShardLink;

/// A hop of one or more paths, from a link to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hop {
    pub from: u32,
    pub to: u32,
    /// Number of paths' uses.
    pub crossings: u32,
}

/// Returns every hop once, sorted by link. Hops from a link to itself are omitted.
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

/// Disjoint sets (union-find). The smallest member represents its set.
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

/// A partition of the links. Groups are numbered in the order of their first links.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// The group of each link.
    pub of: Vec<u32>,
    /// The load of each group.
    pub loads: Vec<u128>,
    /// The group of the links that are fixed to shard 0.
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

    /// Returns a lower bound of the busiest shard's load on this many shards.
    pub fn bound(&self, shards: usize) -> u128 {
        self.total().div_ceil(shards as u128).max(self.largest())
    }
}

/// Returns the sets of inseparable links: joined by hops with a lookahead below `least`,
/// or fixed.
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

/// Joins groups along their most frequent hops, those with short lookahead first, while
/// no group's load exceeds `load_max`; so fewer frames change their shard.
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
