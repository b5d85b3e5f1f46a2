//! Distributes links over shards.

use std::collections::BTreeSet;

use longwire_engine::Nanos;

use super::groups::{
    Groups, Hop, PlacedGroups, Sets, evenly, gathered, hops, inseparable, is_even, nearby,
    with_slack,
};
use super::{Cut, LOOKAHEAD_MIN, SHARDS_MAX, ShardLink, ShardPlan};

/// Divisor of a shard's even share that gives the maximum load of a group joined along frequent
/// hops (here 1/32), so that groups can still be placed evenly. In the model of decision 0037, 1/8
/// was worse.
const PARTS_PER_SHARD: u128 = 32;

/// Distributes links over at most `shards` shards, clamped to 1 to [`SHARDS_MAX`]. Each path is a
/// sequence of indices into `links`.
///
/// * No path changes shards after a link whose lookahead is below [`LOOKAHEAD_MIN`], and fixed
///   links are on shard 0. Links that must share a shard form an inseparable group.
/// * A shard is added only if that lowers the busiest shard's load by more than 1/20.
/// * Windows are as long as possible: the plan uses the longest lookahead, to within a factor of
///   two, with which the busiest shard exceeds the minimum possible load by at most a tenth. If no
///   lookahead satisfies this, the plan uses the one with the most even loads.
/// * Paths change shards at infrequent hops, as long as loads are even.
///
/// The busiest shard has at most 3/2 of the busiest load in the best distribution over the same
/// number of shards that satisfies the first rule; in practice, 21/20. Equal arguments yield equal
/// plans. Takes `O((links + hops) log (links + hops))` for each factor of two between the shortest
/// and the longest lookahead.
///
/// # Panics
/// If a path has an index out of range.
pub fn plan<'a>(
    links: &[ShardLink],
    paths: impl Iterator<Item = &'a [u32]> + Clone,
    shards: usize,
) -> ShardPlan {
    let asked = shards.clamp(1, SHARDS_MAX);
    let hops = hops(paths);
    let mut sets = inseparable(links, &hops, LOOKAHEAD_MIN);
    let groups = Groups::of_sets(&mut sets, links);
    let (useful, limit) = useful_shards(links, &groups, asked);
    let (groups, placement) = if useful == 1 {
        let placement = evenly(&groups, 1);
        (groups, placement)
    } else {
        place_on_many(links, &hops, (sets, groups), useful)
    };
    let (shard_of, loads) = by_first_link(&groups, &placement);
    let cuts = cuts(links, &hops, &shard_of);
    let lookahead = cuts.iter().map(|cut| cut.lookahead).min();
    let mut plan = ShardPlan {
        shards: useful,
        shard_of,
        lookahead,
        cuts,
        loads,
        reason: String::new(),
    };
    plan.reason = reason(&plan, asked, limit);
    plan
}

/// Returns the minimum number of shards, at most `asked`, with which the busiest load is close to
/// that with `asked` shards. Also returns the limiting factor.
fn useful_shards(links: &[ShardLink], groups: &Groups, asked: usize) -> (usize, Limit) {
    let busy = groups.busy();
    let most = asked.min(busy).max(1);
    if most == 1 {
        let limit = match (asked, busy) {
            (1, _) => Limit::Requested,
            (_, 0) => Limit::Idle,
            _ if groups
                .fixed
                .is_some_and(|fixed| groups.loads[fixed as usize] > 0) =>
            {
                Limit::Fixed
            }
            _ => Limit::Inseparable,
        };
        return (1, limit);
    }
    let largest = groups.largest();
    let mut useful = most;
    if largest >= groups.total().div_ceil(most as u128) {
        let busiest = evenly(groups, most).busiest();
        let busiest = with_slack(busiest);
        let enough = |shards: &usize| evenly(groups, *shards).busiest() <= busiest;
        let least = groups.total().div_ceil(busiest) as usize;
        useful = (least..most).find(enough).unwrap_or(most);
    }
    let limit = if useful < most {
        Limit::Largest {
            per_mille: (largest.saturating_mul(1_000) / groups.total()) as u64,
            is_one_link: links.iter().any(|link| u128::from(link.load) == largest),
        }
    } else if useful < asked {
        Limit::Groups
    } else {
        Limit::Requested
    };
    (useful, limit)
}

/// Returns a lookahead's octave relative to [`LOOKAHEAD_MIN`].
fn octave(lookahead: Nanos) -> u32 {
    (lookahead.as_nanos() / LOOKAHEAD_MIN.as_nanos())
        .max(1)
        .ilog2()
}

/// Distributes inseparable groups over several shards.
fn place_on_many(
    links: &[ShardLink],
    hops: &[Hop],
    inseparable: (Sets, Groups),
    shards: usize,
) -> (Groups, PlacedGroups) {
    let (sets, groups) = inseparable;
    let bound = groups.bound(shards);
    let mut chosen = longest_window(links, hops, (sets, groups), shards);
    let mut groups = gathered(chosen.clone(), links, hops, bound / PARTS_PER_SHARD);
    if groups.busy() < shards {
        groups = Groups::of_sets(&mut chosen, links);
    }
    let placement = nearby(&groups, hops, shards);
    (groups, placement)
}

/// Returns the groups with the longest window that can still be placed evenly. Joins hops in order
/// of increasing lookahead.
fn longest_window(
    links: &[ShardLink],
    hops: &[Hop],
    (mut sets, groups): (Sets, Groups),
    shards: usize,
) -> Sets {
    let bound = groups.bound(shards);
    let octave_of = |hop: &Hop| {
        let lookahead = links[hop.from as usize].lookahead;
        (lookahead >= LOOKAHEAD_MIN).then(|| octave(lookahead))
    };
    let octaves: BTreeSet<u32> = hops.iter().filter_map(octave_of).collect();
    let mut best = (evenly(&groups, shards).busiest(), sets.clone());
    for next in octaves {
        for hop in hops.iter().filter(|hop| octave_of(hop) == Some(next)) {
            sets.join(hop.from, hop.to);
        }
        let groups = Groups::of_sets(&mut sets, links);
        if groups.busy() < shards {
            break;
        }
        let busiest = evenly(&groups, shards).busiest();
        if is_even(busiest, bound) || busiest <= best.0 {
            best = (busiest, sets.clone());
        }
    }
    best.1
}

/// Returns the shard of each link and the load of each shard. Shards are numbered in order of their
/// first links; fixed links are on shard 0.
fn by_first_link(groups: &Groups, placement: &PlacedGroups) -> (Vec<u16>, Vec<u64>) {
    const NONE: u16 = u16::MAX;
    let mut number = vec![NONE; placement.loads.len()];
    let mut next = 0;
    let fixed = groups.fixed.into_iter();
    for group in fixed.chain(groups.of.iter().copied()) {
        let shard = usize::from(placement.shard_of[group as usize]);
        if number[shard] == NONE {
            number[shard] = next;
            next += 1;
        }
    }
    let shard_of = groups.of.iter().map(|group| {
        let shard = placement.shard_of[*group as usize];
        number[usize::from(shard)]
    });
    let mut loads = vec![0; placement.loads.len()];
    for (shard, load) in placement.loads.iter().enumerate() {
        if let Some(numbered) = loads.get_mut(usize::from(number[shard])) {
            *numbered = u64::try_from(*load).unwrap_or(u64::MAX);
        }
    }
    (shard_of.collect(), loads)
}

fn cuts(links: &[ShardLink], hops: &[Hop], shard_of: &[u16]) -> Vec<Cut> {
    let is_cut = |hop: &&Hop| shard_of[hop.from as usize] != shard_of[hop.to as usize];
    let cut = |hop: &Hop| Cut {
        link: hop.from,
        to: hop.to,
        lookahead: links[hop.from as usize].lookahead,
    };
    hops.iter().filter(is_cut).map(cut).collect()
}

/// The factor that limits the number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// The requested number.
    Requested,
    /// No link has load.
    Idle,
    /// All links with load are fixed to shard 0 or joined to fixed links.
    Fixed,
    /// All links with load form one group.
    Inseparable,
    /// There are fewer groups than requested shards.
    Groups,
    /// One group has this share of the load, in thousandths; the remaining load needs fewer shards.
    Largest { per_mille: u64, is_one_link: bool },
}

/// Explains the number of shards and the cuts in one sentence, without a full stop.
pub(super) fn reason(plan: &ShardPlan, asked: usize, limit: Limit) -> String {
    let short = format!("hops with less than {LOOKAHEAD_MIN} of guaranteed delay");
    let shards = plan.shards;
    match limit {
        Limit::Requested if asked == 1 => return "one shard was requested".to_owned(),
        Limit::Idle => return "no path crosses a link".to_owned(),
        Limit::Fixed => {
            return format!(
                "all links with paths have plugins, or are connected to links with plugins by \
                 {short}"
            );
        }
        Limit::Inseparable => return format!("all links with paths are connected by {short}"),
        Limit::Requested | Limit::Groups | Limit::Largest { .. } => {}
    }
    let limited = match limit {
        Limit::Groups => {
            format!("; the network has no more than {shards} separable parts")
        }
        Limit::Largest {
            per_mille,
            is_one_link,
        } => {
            let (whole, tenths) = (per_mille / 10, per_mille % 10);
            let why = if is_one_link {
                format!("one link has {whole}.{tenths} % of the load")
            } else {
                format!(
                    "links with {whole}.{tenths} % of the load are connected by {short}, or have \
                     plugins"
                )
            };
            if shards == 1 {
                return format!("more shards would gain little: {why}");
            }
            format!("; more than {shards} would gain little: {why}")
        }
        _ => String::new(),
    };
    let cut = match (plan.lookahead, plan.cuts.len()) {
        (None, _) => "no path changes shards".to_owned(),
        (Some(lookahead), 1) => {
            format!("paths change shards at 1 hop, with a delay of {lookahead}")
        }
        (Some(lookahead), cuts) => {
            format!("paths change shards at {cuts} hops, with a delay of at least {lookahead}")
        }
    };
    let busiest = plan.loads.iter().copied().max().unwrap_or(0);
    let total: u128 = plan.loads.iter().copied().map(u128::from).sum();
    let above = (u128::from(busiest) * shards as u128 * 1_000)
        .checked_div(total)
        .unwrap_or(1_000)
        .saturating_sub(1_000);
    let even = match above {
        0 => "all shards have the same load".to_owned(),
        _ => format!(
            "the busiest shard has {}.{} % more load than an even share",
            above / 10,
            above % 10
        ),
    };
    format!("{cut}, and {even}{limited}")
}
