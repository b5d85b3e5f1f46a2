//! How much a scenario does in a second, and whether that can be done.

use std::collections::HashMap;
use std::ops::Range;

use longwire_engine::Nanos;

use super::builder::{Builder, direction};
use super::glob;
use super::timeline::{Action, Event};
use super::tree::{self, Placed};
use super::value::Table;

/// The most changes of links within a second that a scenario may come to,
/// where it repeats or ramps something. Preparing a change takes some
/// microseconds, so a scenario of this size leaves time for frames and for
/// signals.
pub(super) const CHANGES_A_SECOND_MAX: u64 = 100_000;

/// The number of times within a second that something happens with this period.
fn in_a_second(every: Nanos) -> u64 {
    Nanos::from_secs(1)
        .as_nanos()
        .div_ceil(every.as_nanos().max(1))
}

/// Refuses events that repeat or ramp so fast that their work cannot be done.
pub(super) fn check(events: &[(Event, Range<usize>)], builder: &mut Builder) {
    let mut links = LinkCounts::default();
    let mut repeated: u64 = 0;
    // A repetition without a time has been complained of.
    let timed = |(event, _): &&(Event, _)| event.every != Some(Nanos::ZERO);
    for (event, span) in events.iter().filter(timed) {
        let load = Load::of(event, &mut |pattern: &str| links.of(pattern, builder));
        if load.a_second > CHANGES_A_SECOND_MAX {
            let (field, reason, remedy) = load.refusal(event);
            builder
                .complaints
                .refuse(span.clone(), field, reason, remedy);
        } else if event.every.is_some() {
            repeated = repeated.saturating_add(load.a_second);
            if repeated > CHANGES_A_SECOND_MAX {
                let reason =
                    format!("with the events above, links are changed {repeated} times a second");
                let remedy = format!(
                    "at most {CHANGES_A_SECOND_MAX} are possible; repeat them less often, or \
                     change fewer links"
                );
                builder
                    .complaints
                    .refuse(span.clone(), "at.every", reason, remedy);
                return;
            }
        }
    }
}

/// The work of one event.
struct Load {
    /// Changes of links each time that it happens.
    each: u64,
    /// The most of them within a second.
    a_second: u64,
    /// The same of its ramps alone, when they happen once.
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
            // A first step, and that many more.
            let steps = ramp.steps.saturating_add(1);
            let step = Nanos::from_nanos(ramp.time.as_nanos() / ramp.steps.max(1));
            let within = in_a_second(step).saturating_add(1).min(steps);
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
            a_second: repeated.max(ramps),
            ramps,
        }
    }

    /// The field to blame, why, and what to write instead.
    fn refusal(&self, event: &Event) -> (&'static str, String, String) {
        let most = format!("at most {CHANGES_A_SECOND_MAX} are possible");
        let changes = format!("links would be changed {} times a second", self.a_second);
        match event.every {
            Some(every) if self.ramps <= CHANGES_A_SECOND_MAX => {
                let longer = u128::from(self.each) * 1_000_000_000;
                let longer = longer.div_ceil(u128::from(CHANGES_A_SECOND_MAX));
                let longer = Nanos::from_nanos(u64::try_from(longer).unwrap_or(u64::MAX));
                let reason = format!("repeated every {every}, {changes}");
                let remedy = format!("{most}; write every = \"{longer}\" or more");
                ("at.every", reason, remedy)
            }
            _ => {
                let remedy = format!("{most}; take fewer steps, a longer time, or fewer links");
                ("at.ramp", changes, remedy)
            }
        }
    }
}

/// The number of links that fit patterns, looked up once each.
#[derive(Default)]
struct LinkCounts(HashMap<String, u64>);

impl LinkCounts {
    fn of(&mut self, pattern: &str, builder: &Builder) -> u64 {
        if let Some(count) = self.0.get(pattern) {
            return *count;
        }
        let (bare, _) = direction(pattern);
        let count = if glob::is_pattern(bare) {
            let links = builder.links.iter().filter(|link| !link.is_gone());
            links.filter(|link| glob::fits(bare, &link.name)).count() as u64
        } else {
            1
        };
        self.0.insert(pattern.to_owned(), count.max(1));
        count.max(1)
    }
}

/// Complains of a repetition without a time, or with none between two times.
pub(super) fn check_every(
    item: &Placed<&Table<'_>>,
    every: Option<Nanos>,
    times: Option<u64>,
    builder: &mut Builder,
) {
    let remedy = "write every = \"10s\"";
    let complaints = &mut builder.complaints;
    if every == Some(Nanos::ZERO) {
        let span = tree::text(item.value, "every").map_or(item.span.clone(), |every| every.span);
        let reason = "is no time at all: the event would repeat without end at one time";
        complaints.refuse(span, "at.every", reason, remedy);
    } else if every.is_none() && times.is_some_and(|times| times > 1) {
        let reason = "there is a number of times, and no time between two of them";
        complaints.refuse(item.span.clone(), "at.every", reason, remedy);
    }
}
