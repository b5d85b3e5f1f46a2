//! Explanations of plans.

use super::types::{LOOKAHEAD_MIN, ShardPlan};

/// The limit of the number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// The requested number.
    Requested,
    /// No link has load.
    Idle,
    /// All links with load are fixed to shard 0, or joined to fixed links.
    Fixed,
    /// All links with load form one group.
    Inseparable,
    /// There are fewer groups than requested shards.
    Groups,
    /// One group has this share of the load in thousandths; the rest fits on fewer
    /// shards.
    Largest { per_mille: u64, is_one_link: bool },
}

/// Returns a sentence without a full stop.
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
        (None, _) => "no path changes its shard".to_owned(),
        (Some(lookahead), 1) => {
            format!("paths change their shard at 1 hop, with {lookahead} of delay")
        }
        (Some(lookahead), cuts) => {
            format!("paths change their shard at {cuts} hops, with at least {lookahead} of delay")
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
            "the busiest shard has {}.{} % more than an even share",
            above / 10,
            above % 10
        ),
    };
    format!("{cut}, and {even}{limited}")
}
