//! Tests the planner's rules, and compares its plans with every distribution of small networks.

use longwire_engine::Nanos;
use longwire_network::shard_plan::{
    LOOKAHEAD_MIN, SHARDS_MAX, ShardCount, ShardLink, ShardPlan, plan,
};
use proptest::prelude::*;

fn link(lookahead_us: u64, load: u64) -> ShardLink {
    ShardLink {
        lookahead: Nanos::from_micros(lookahead_us),
        load,
        is_fixed: false,
    }
}

fn planned(links: &[ShardLink], paths: &[Vec<u32>], shards: usize) -> ShardPlan {
    plan(links, paths.iter().map(Vec::as_slice), shards)
}

/// Returns the load of each shard.
fn loads_of(links: &[ShardLink], shard_of: &[u16], shards: usize) -> Vec<u64> {
    let mut loads = vec![0; shards];
    for (link, shard) in links.iter().zip(shard_of) {
        loads[usize::from(*shard)] += link.load;
    }
    loads
}

/// Asserts a plan's invariants.
fn assert_sound(links: &[ShardLink], paths: &[Vec<u32>], asked: usize, plan: &ShardPlan) {
    assert!((1..=asked).contains(&plan.shards), "{plan:?}");
    assert_eq!(plan.shard_of.len(), links.len());
    let mut fixed = links.iter().zip(&plan.shard_of);
    assert!(
        fixed.all(|(link, shard)| !link.is_fixed || *shard == 0),
        "{plan:?}"
    );
    let loads = loads_of(links, &plan.shard_of, plan.shards);
    assert_eq!(loads, plan.loads);
    let is_idle = loads.contains(&0);
    assert!(plan.shards == 1 || !is_idle, "an idle shard: {plan:?}");
    let hops = paths.iter().flat_map(|path| path.windows(2));
    let mut cuts: Vec<_> = hops
        .filter(|hop| plan.shard_of[hop[0] as usize] != plan.shard_of[hop[1] as usize])
        .map(|hop| (hop[0], hop[1], links[hop[0] as usize].lookahead))
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    let stated = plan
        .cuts
        .iter()
        .map(|cut| (cut.link, cut.to, cut.lookahead));
    assert_eq!(stated.collect::<Vec<_>>(), cuts);
    assert_eq!(plan.lookahead, cuts.iter().map(|cut| cut.2).min());
    assert!(cuts.iter().all(|cut| cut.2 >= LOOKAHEAD_MIN), "{plan:?}");
    assert!(!plan.reason.is_empty() && !plan.reason.ends_with('.'));
}

/// Returns the minimum busiest load over all permitted distributions.
fn least_busiest(links: &[ShardLink], paths: &[Vec<u32>], shards: usize) -> u64 {
    let combinations = shards.pow(links.len() as u32);
    let distributions = (0..combinations).map(|number| {
        let digit = |nth: u32| (number / shards.pow(nth) % shards) as u16;
        (0..links.len() as u32).map(digit).collect::<Vec<u16>>()
    });
    let is_allowed = |shard_of: &Vec<u16>| {
        let fixed = links.iter().zip(shard_of);
        let mut hops = paths.iter().flat_map(|path| path.windows(2));
        fixed
            .clone()
            .all(|(link, shard)| !link.is_fixed || *shard == 0)
            && hops.all(|hop| {
                let (from, to) = (hop[0] as usize, hop[1] as usize);
                shard_of[from] == shard_of[to] || links[from].lookahead >= LOOKAHEAD_MIN
            })
    };
    let busiest = |shard_of: Vec<u16>| {
        let loads = loads_of(links, &shard_of, shards);
        loads.into_iter().max().unwrap_or(0)
    };
    distributions
        .filter(is_allowed)
        .map(busiest)
        .min()
        .unwrap_or(0)
}

fn any_links(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<ShardLink>> {
    let lookahead = prop_oneof![
        Just(0u64),
        Just(49_999),
        Just(50_000),
        1u64..100_000_000,
        Just(20_000_000)
    ];
    let load = prop_oneof![Just(0u64), Just(1), 1u64..100, Just(1000)];
    let link = (lookahead, load, prop::bool::weighted(0.1));
    let link = link.prop_map(|(nanos, load, is_fixed)| ShardLink {
        lookahead: Nanos::from_nanos(nanos),
        load,
        is_fixed,
    });
    prop::collection::vec(link, count)
}

fn any_paths(links: usize, count: usize) -> impl Strategy<Value = Vec<Vec<u32>>> {
    let path = prop::collection::vec(0..links as u32, 1..6);
    prop::collection::vec(path, 0..count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_plan_keeps_the_rules(
        (links, paths) in any_links(1..200)
            .prop_flat_map(|links| { let n = links.len(); (Just(links), any_paths(n, 60)) }),
        shards in 1usize..20,
    ) {
        let plan = planned(&links, &paths, shards);
        assert_sound(&links, &paths, shards, &plan);
        prop_assert_eq!(&plan, &planned(&links, &paths, shards));
        // The plan does not depend on the order of paths.
        let reversed: Vec<_> = paths.iter().rev().cloned().collect();
        prop_assert_eq!(&plan, &planned(&links, &reversed, shards));
    }

    /// The busiest load is at most 3/2 of the optimum, as documented for `plan`.
    #[test]
    fn loads_are_as_even_as_any_allowed_distribution(
        (links, paths) in any_links(1..8)
            .prop_flat_map(|links| { let n = links.len(); (Just(links), any_paths(n, 5)) }),
        asked in 1usize..5,
    ) {
        let plan = planned(&links, &paths, asked);
        assert_sound(&links, &paths, asked, &plan);
        let busiest = plan.loads.iter().copied().max().unwrap_or(0);
        let best = least_busiest(&links, &paths, plan.shards);
        prop_assert!(busiest >= best);
        prop_assert!(busiest * 2 <= best * 3, "{busiest} for {best}: {plan:?}");
        // Against the requested number of shards, the bound is 3/2 times 21/20: the plan omits
        // shards that would gain at most 1/20.
        let best = least_busiest(&links, &paths, asked);
        prop_assert!(busiest * 40 <= best * 63, "{busiest} for {best} on {asked}: {plan:?}");
    }
}

#[test]
fn separate_paths_are_not_cut() {
    let links = vec![link(20_000, 3); 64];
    let paths: Vec<Vec<u32>> = (0..32).map(|n| vec![2 * n, 2 * n + 1]).collect();
    let plan = planned(&links, &paths, 4);
    assert_sound(&links, &paths, 4, &plan);
    assert_eq!((plan.shards, plan.lookahead), (4, None));
    assert_eq!(plan.loads, [48; 4]);
    assert_eq!(
        plan.reason,
        "no path changes shards, and all shards have the same load"
    );
}

#[test]
fn a_chain_is_cut_where_its_delay_is_long() {
    // Eight links in a row, each with 1 ms except for the fourth.
    let mut links = vec![link(1_000, 10); 8];
    links[3] = link(30_000, 10);
    let paths = [(0..8).collect::<Vec<u32>>()];
    let plan = planned(&links, &paths, 2);
    assert_sound(&links, &paths, 2, &plan);
    assert_eq!(plan.shard_of, [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(plan.lookahead, Some(Nanos::from_millis(30)));
    assert_eq!(
        plan.reason,
        "paths change shards at 1 hop, with a delay of 30ms, and all shards have the same load"
    );
}

/// A row of links with equal delay; each path crosses four adjacent links. A plan that ignores
/// neighbours would cut at least half of all hops.
#[test]
fn neighbours_stay_together() {
    const LINKS: u32 = 4_096;
    let links = vec![link(5_000, 10); LINKS as usize];
    let paths: Vec<Vec<u32>> = (0..LINKS - 3).map(|n| (n..n + 4).collect()).collect();
    for shards in [2, 8] {
        let plan = planned(&links, &paths, shards);
        assert_sound(&links, &paths, shards, &plan);
        let (cuts, hops) = (plan.cuts.len(), LINKS as usize - 1);
        assert!(cuts * 50 <= hops, "{shards} shards: {cuts} of {hops} hops");
        let busiest = plan.loads.iter().copied().max().unwrap_or(0);
        let even = u64::from(LINKS) * 10 / shards as u64;
        assert!(busiest * 10 <= even * 11, "{:?}", plan.loads);
    }
}

#[test]
fn reasons_name_the_limit() {
    let (short, long) = (link(49, 1), link(1_000, 1));
    let plugin = ShardLink {
        is_fixed: true,
        ..long
    };
    let mut heavy = vec![long; 8];
    (heavy[2], heavy[3]) = (link(0, 5), link(0, 880));
    let mut one = vec![link(1_000, 5); 9];
    one[4] = link(1_000, 60);
    let idle = "no path crosses a link";
    let joined = "hops with less than 50us of guaranteed delay";
    let inseparable = format!("all links with paths are connected by {joined}");
    let plugins = format!(
        "all links with paths have plugins, or are connected to links with plugins by {joined}"
    );
    let largest = format!(
        "more shards would gain little: links with 99.4 % of the load are connected by {joined}, \
         or have plugins"
    );
    let cut = "paths change shards at 2 hops, with a delay of at least 1ms, and";
    let even = "all shards have the same load; the network has no more than 3 separable parts";
    let uneven = "the busiest shard has 20.0 % more load than an even share; more than 2 would \
                  gain little: one link has 60.0 % of the load";
    // Each case's links form a chain. The numbers are those of shards requested and in use.
    for (links, shards, reason) in [
        (vec![short; 4], [4, 1], inseparable),
        (vec![short; 4], [1, 1], "one shard was requested".to_owned()),
        (vec![link(1_000, 0); 4], [4, 1], idle.to_owned()),
        (Vec::new(), [4, 1], idle.to_owned()),
        (vec![plugin; 4], [4, 1], plugins),
        (vec![long; 3], [8, 3], format!("{cut} {even}")),
        (heavy, [8, 1], largest),
        (one, [8, 2], format!("{cut} {uneven}")),
    ] {
        let plan = planned(&links, &[(0..links.len() as u32).collect()], shards[0]);
        assert_eq!((plan.shards, plan.reason), (shards[1], reason));
    }
    // There are no paths at all.
    for links in [vec![link(1_000, 0); 4], Vec::new()] {
        let plan = planned(&links, &[], 4);
        assert_eq!((plan.shards, plan.reason.as_str()), (1, idle));
    }
}

#[test]
fn odd_numbers_of_shards_count_as_the_nearest_allowed() {
    let links = vec![link(1_000, 1); 200];
    assert_eq!(planned(&links, &[], 0).shards, 1);
    assert_eq!(planned(&links, &[], 1_000).shards, SHARDS_MAX);
}

/// A million links in 250,000 paths with four shared links each, and lookaheads over six orders of
/// magnitude.
#[test]
fn a_million_links_are_planned() {
    const LINKS: u64 = 1_000_000;
    let mix = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let links: Vec<ShardLink> = (0..LINKS)
        .map(|n| link(1 << (mix(n) % 20), 1 + n % 7))
        .collect();
    let path = |n: u64| {
        (0..5)
            .map(|hop| (mix(n * 5 + hop) % LINKS) as u32)
            .collect()
    };
    let paths: Vec<Vec<u32>> = (0..LINKS / 4).map(path).collect();
    // Takes seconds; a planner with quadratic time would not finish.
    let plan = planned(&links, &paths, 16);
    assert_sound(&links, &paths, 16, &plan);
}

#[test]
fn counts_are_read_as_they_are_written() {
    for text in ["auto", "1", "2", "64"] {
        let count: ShardCount = text.parse().expect(text);
        assert_eq!(count.to_string(), text);
    }
    for text in ["", "0", "65", "-1", "two", "1.5", "Auto", "300"] {
        let error = text.parse::<ShardCount>().expect_err(text);
        let expected = format!("'{text}' is not a number of shards; write 1 to 64, or auto");
        assert_eq!(error.to_string(), expected);
    }
}
