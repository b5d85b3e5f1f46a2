//! Warnings: valid values that are probably unintended.

use longwire_engine::models::is_scheduled;
use longwire_engine::{LinkSpec, NoLoader, PARTS};
use longwire_packet::classify::{Classifier, RuleId};
use longwire_units::count_of;

use super::builder::Builder;
use super::glob::fits;
use super::plan::{Class, Target, Topology};
use super::timeline::Action;
use super::tree;
use super::value::Table;

/// Maximum number of overlapping rule pairs reported.
const OVERLAPS_MAX: usize = 5;

/// Maximum number of additional rule pairs requested from the classifier, because pairs on the same
/// link are discarded.
const COMPARED_MAX: usize = 10_000;

/// Maximum number of unreachable rules reported.
const UNREACHABLE_MAX: usize = 5;

/// Warns about links and paths that no frame crosses.
pub(super) fn warn_of_unused(file: &Table<'_>, builder: &mut Builder) {
    let remedy = "give it a match, or remove it";
    let links = builder.topology.links.iter().zip(&builder.used);
    let unused = links.filter(|(_, used)| !**used);
    let unused: Vec<String> = unused.map(|(link, _)| link.name.to_string()).collect();
    if let [first, rest @ ..] = unused.as_slice() {
        let more = match rest.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let reason = format!(
            "no frame crosses link '{first}'{more}: it has no matcher, and no path uses it"
        );
        let named =
            |table: &Table| tree::text(table, "name").is_some_and(|name| name.value == first);
        let items = tree::tables(file, "link");
        let place = items.into_iter().find(|item| named(item.value));
        let span = place.map_or(0..0, |item| item.span);
        builder.diagnostics.warn(span, "link.match", reason, remedy);
    }
    for item in tree::tables(file, "path") {
        let Some(name) = tree::text(item.value, "name") else {
            continue;
        };
        let is_target = |action: &Action| match action {
            Action::Move { to, .. } => to == name.value,
            _ => false,
        };
        let is_reached =
            item.value.contains_key("match") || builder.topology.timeline.actions().any(is_target);
        if !is_reached {
            let reason = format!("no frame takes path '{}'", name.value);
            builder
                .diagnostics
                .warn(name.span, "path.match", reason, remedy);
        }
    }
}

/// Removes the first value from a model's text, so that models that differ only in that value
/// compare equal.
fn without_value(text: &str) -> String {
    let start = text.find(|c: char| c.is_ascii_digit());
    let start = start.unwrap_or(text.len());
    let value = |c: char| c.is_ascii_alphanumeric() || ".%".contains(c);
    text[..start].to_owned() + text[start..].trim_start_matches(value)
}

impl Topology {
    /// Returns whether there is a scenario, or a model that follows a schedule from the start of
    /// the run.
    pub fn is_scheduled(&self) -> bool {
        let links = self.links.iter();
        let specs = links.flat_map(|link| [Some(&link.up), link.down.as_ref()]);
        let texts = specs
            .flatten()
            .flat_map(|spec| PARTS.iter().filter_map(|part| part.texts(spec)).flatten());
        !self.timeline.events.is_empty() || texts.into_iter().any(|text| is_scheduled(&text))
    }

    /// Returns a warning for each ramp that replaces a link's model by a plain value.
    fn replaced_by_ramps(&self) -> Vec<String> {
        let ramps = self.timeline.events.iter().flat_map(|event| &event.ramps);
        let replaced = ramps.filter_map(|ramp| {
            let part = PARTS.iter().find(|part| part.name == ramp.option)?;
            let mut plain = LinkSpec::new();
            plain.set(ramp.option, &ramp.ends[0], &NoLoader).ok()?;
            let plain = part.texts(&plain)?.join(" ");
            let replaces = |name: String, spec: &LinkSpec| {
                let text = part.texts(spec)?.join(" ");
                let is_other = !text.is_empty() && without_value(&text) != without_value(&plain);
                (is_other && fits(&ramp.pattern, &name)).then_some((name, text))
            };
            let (name, text) = self.links.iter().find_map(|link| {
                let name = link.name.as_ref();
                replaces(name.to_owned(), &link.up)
                    .or_else(|| replaces(format!("{name}.up"), &link.up))
                    .or_else(|| replaces(format!("{name}.down"), link.down.as_ref()?))
            })?;
            Some(format!(
                "the ramp of {} replaces '{text}' of '{name}' with plain values; its other \
                 parameters are lost",
                ramp.option
            ))
        });
        replaced.collect()
    }

    /// Returns warnings about ramps that replace a model, unreachable rules, overlapping rules and
    /// slow classification. Builds a classifier; takes time linear in the number of rules.
    pub fn doubts(&self) -> Vec<String> {
        let first = Target {
            class: Class::Link(0),
            direction: super::Direction::Up,
        };
        let rules = self.rules.iter();
        let rules = rules.map(|rule| (rule.matcher.clone(), rule.target, 0));
        let classifier = match Classifier::with_rules(self.order, first, rules) {
            Ok(classifier) => classifier,
            Err((rule, error)) => return vec![format!("rule {rule}: {error}")],
        };
        let mut doubts = self.replaced_by_ramps();
        let unreachable = classifier.unreachable().rules;
        for rule in unreachable.iter().take(UNREACHABLE_MAX) {
            doubts.push(format!(
                "{} can never match: {} precedes it and matches all its frames",
                self.rule_words(rule.rule),
                self.rule_words(rule.covered_by)
            ));
        }
        if unreachable.len() > UNREACHABLE_MAX {
            let more = count_of((unreachable.len() - UNREACHABLE_MAX) as u64, "more rule");
            doubts.push(format!("{more} can never match"));
        }
        // Ignore overlaps within one link: both directions may match the same frames, for example
        // between hosts in one subnet.
        let class = |rule: RuleId| self.rules[rule.0 as usize].target.class;
        let mut overlaps = classifier.overlaps(OVERLAPS_MAX + self.rules.len().min(COMPARED_MAX));
        overlaps
            .pairs
            .retain(|pair| class(pair.winner) != class(pair.loser));
        let more = overlaps.pairs.len() > OVERLAPS_MAX;
        for pair in overlaps.pairs.iter().take(OVERLAPS_MAX) {
            doubts.push(format!(
                "{} and {} overlap: frames that match both go to the former",
                self.rule_words(pair.winner),
                self.rule_words(pair.loser)
            ));
        }
        if more || !overlaps.complete {
            doubts.push("there may be more overlaps: not all rules were compared".to_owned());
        }
        let cost = classifier.cost();
        if cost.is_high() {
            doubts.push(format!(
                "classifying a frame takes up to {} table lookups (one per combination of fields \
                 and prefix lengths) and {} checks of port ranges and filters; matchers on the \
                 same fields are cheapest",
                cost.shapes, cost.longest_chain
            ));
        }
        doubts
    }

    /// Formats a rule as its matcher and target.
    pub fn rule_words(&self, rule: RuleId) -> String {
        let rule = &self.rules[rule.0 as usize];
        let Target { class, direction } = rule.target;
        format!(
            "'{}' of {}.{}",
            self.matcher_in_words(&rule.matcher),
            self.name_of(class),
            direction.name()
        )
    }
}
