//! Estimates how often a scenario changes links, and rejects excessive rates.

use std::collections::HashMap;
use std::ops::Range;

use longwire_engine::Nanos;

use super::builder::{Builder, split_direction};
use super::glob;
use super::plan::Topology;
use super::timeline::{Action, Event};
use super::tree::{self, Placed};
use super::value::Table;

/// Maximum link changes/s from repetitions and ramps. Preparing a change takes microseconds, so
/// this rate leaves time for frames and signals.
pub(super) const CHANGES_PER_SECOND_MAX: u64 = 100_000;

/// Returns the number of events per second for this period, rounded up.
fn per_second(every: Nanos) -> u64 {
    1_000_000_000_u64.div_ceil(every.as_nanos().max(1))
}

/// Rejects events that repeat or ramp too fast.
pub(super) fn check(events: &[(Event, Range<usize>)], builder: &mut Builder) {
    let mut links: HashMap<String, u64> = HashMap::new();
    let mut repeated: u64 = 0;
    // Skip zero periods, which have already been reported.
    let timed = |(event, _): &&(Event, _)| event.every != Some(Nanos::ZERO);
    for (event, span) in events.iter().filter(timed) {
        let load = Load::of(event, &mut |pattern: &str| {
            let known = links.entry(pattern.to_owned());
            *known.or_insert_with(|| count(pattern, &builder.topology))
        });
        if load.per_second > CHANGES_PER_SECOND_MAX {
            let (field, reason, remedy) = load.refusal(event);
            builder.refuse(span.clone(), field, reason, remedy);
        } else if event.every.is_some() {
            repeated = repeated.saturating_add(load.per_second);
            if repeated > CHANGES_PER_SECOND_MAX {
                let reason = format!("together with earlier events: {repeated} link changes/s");
                let remedy = format!(
                    "the maximum is {CHANGES_PER_SECOND_MAX}; repeat less often, or \
                     change fewer links"
                );
                return builder.refuse(span.clone(), "at.every", reason, remedy);
            }
        }
    }
}

/// Link changes caused by one event.
struct Load {
    /// Number of changes per round.
    each: u64,
    /// Maximum changes per second.
    per_second: u64,
    /// Maximum changes per second of the ramps within one round.
    ramps: u64,
}

impl Load {
    fn of(event: &Event, links: &mut impl FnMut(&str) -> u64) -> Load {
        let mut at_once: u64 = 0;
        for action in &event.actions {
            at_once = at_once.saturating_add(match action {
                Action::Set { pattern, .. } | Action::State { pattern, .. } => links(pattern),
                Action::Move { .. } => 1,
            });
        }
        let (mut each, mut ramps) = (at_once, 0_u64);
        for ramp in &event.ramps {
            let links = links(&ramp.pattern);
            // The first value and each step are one change.
            let steps = ramp.steps.saturating_add(1);
            let step = Nanos::from_nanos(ramp.time.as_nanos() / ramp.steps.max(1));
            let within = per_second(step).saturating_add(1).min(steps);
            ramps = ramps.saturating_add(links.saturating_mul(within));
            each = each.saturating_add(links.saturating_mul(steps));
        }
        let repeated = event.every.map_or(0, |every| {
            let all = each.saturating_mul(event.times.unwrap_or(u64::MAX));
            let sustained = u128::from(each) * 1_000_000_000 / u128::from(every.as_nanos().max(1));
            u64::try_from(sustained).unwrap_or(u64::MAX).min(all)
        });
        Load {
            each,
            per_second: repeated.max(ramps),
            ramps,
        }
    }

    /// Returns the field, the reason and the remedy.
    fn refusal(&self, event: &Event) -> (&'static str, String, String) {
        let most = format!("the maximum is {CHANGES_PER_SECOND_MAX}");
        let changes = format!("{} link changes/s", self.per_second);
        match event.every {
            Some(every) if self.ramps <= CHANGES_PER_SECOND_MAX => {
                let longer = u128::from(self.each) * 1_000_000_000;
                let longer = longer.div_ceil(u128::from(CHANGES_PER_SECOND_MAX));
                let longer = Nanos::from_nanos(u64::try_from(longer).unwrap_or(u64::MAX));
                let reason = format!("every = \"{every}\" means {changes}");
                let remedy = format!("{most}; write every = \"{longer}\" or more");
                ("at.every", reason, remedy)
            }
            _ => {
                let remedy = format!("{most}; use fewer steps, a longer time, or fewer links");
                ("at.ramp", changes, remedy)
            }
        }
    }
}

/// Returns the number of links that match a pattern, at least 1.
fn count(pattern: &str, topology: &Topology) -> u64 {
    let (bare, _) = split_direction(pattern);
    if !glob::is_pattern(bare) {
        return 1;
    }
    topology.links_fitting(bare).count().max(1) as u64
}

/// Reports a zero period, or repetitions without a period.
pub(super) fn check_every(
    item: &Placed<&Table<'_>>,
    every: Option<Nanos>,
    times: Option<u64>,
    builder: &mut Builder,
) {
    let remedy = "write every = \"10s\"";
    let diagnostics = &mut builder.diagnostics;
    if every == Some(Nanos::ZERO) {
        let span = tree::text(item.value, "every").map_or(item.span.clone(), |every| every.span);
        let reason = "a period of 0 would repeat the event forever at the same time";
        diagnostics.refuse(span, "at.every", reason, remedy);
    } else if every.is_none() && times.is_some_and(|times| times > 1) {
        let reason = "times is given without every";
        diagnostics.refuse(item.span.clone(), "at.every", reason, remedy);
    }
}
