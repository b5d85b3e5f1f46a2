//! Links, paths and rules of a running network, as returned by the control API.

use std::ops::Bound;
use std::sync::Arc;

use longwire_engine::{LinkId, LinkSpec};
use longwire_runtime::counters::NamedCounts;
use longwire_runtime::deciding::{FlowCount, LinkTotals, Occupancy};
use longwire_topology::glob::{fits, is_pattern};
use longwire_topology::{Class, Hop, RulePlan, State};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::controller::Controller;
use super::json;
use super::numbered::{Numbered, NumberedLink};

/// A named link.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Link")]
pub struct LinkView {
    /// Name of the link.
    pub name: String,
    /// Whether both directions share one queue and rate; only `up` is present then.
    pub shared: bool,
    /// Matchers for both directions.
    #[serde(rename = "match")]
    pub matchers: Vec<String>,
    /// Link or path to which the link's frames were moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// Direction of frames that `match` selects.
    pub up: DirectionView,
    /// The opposite direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<DirectionView>,
}

/// One direction of a link.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Direction")]
pub struct DirectionView {
    /// State of the direction.
    pub state: State,
    /// Options by name.
    #[schemars(schema_with = "options_schema")]
    pub options: Map<String, Value>,
    /// Counters of the direction.
    #[serde(flatten)]
    pub counted: Totals,
    /// State of the queue; present if the link was requested by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Occupancy>,
}

/// Counters of a link, or sums over several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Counters of the link, or their sums.
    #[serde(flatten)]
    pub totals: LinkTotals,
    /// Drops by reason, without zeros. A later version will omit this field.
    pub dropped: NamedCounts,
    /// Frames queued or in service.
    pub queued: u64,
}

impl From<LinkTotals> for Totals {
    fn from(totals: LinkTotals) -> Totals {
        Totals {
            dropped: totals.drops.nonzero(),
            queued: totals.queued(),
            totals,
        }
    }
}

/// Refers to the schema component generated from the option registry.
fn options_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "#/components/schemas/Options" })
}

/// A path.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Path")]
pub struct PathView {
    /// Name of the path.
    pub name: String,
    /// Links in the order of direction up, with `.down` for links crossed in direction down.
    pub via: Vec<String>,
    /// Matchers for both directions.
    #[serde(rename = "match")]
    pub matchers: Vec<String>,
    /// Link or path to which the path's frames were moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
}

/// A rule.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Rule")]
pub struct RuleView {
    /// Number of the rule, in order of addition.
    pub rule: u32,
    /// Matcher of the rule.
    #[serde(rename = "match")]
    pub matcher: String,
    /// Link or path that matching frames cross, with its direction.
    pub leads_to: String,
}

impl Controller {
    /// Returns the number of named links.
    pub fn link_count(&self) -> usize {
        self.look(|network| network.by_name.len())
    }

    /// Returns a link with its queues.
    pub fn link(&self, name: &str) -> Option<LinkView> {
        let (mut view, [up, down]) = self.look(|network| {
            let index = *network.by_name.get(name)?;
            let numbers = network.numbers[index as usize];
            Some((network.view(index), numbers))
        })?;
        let mut queues = self.occupancies(vec![up, down]).into_iter();
        view.up.queue = queues.next().flatten();
        if let Some(view) = &mut view.down {
            view.queue = queues.next().flatten();
        }
        Some(view)
    }

    /// Returns at most `limit` links that match a pattern, sorted by name, from the first after
    /// `after`, which need not exist.
    pub fn links(&self, pattern: &str, after: Option<&str>, limit: usize) -> Vec<LinkView> {
        self.look(|network| {
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let links = network.by_name.range::<str, _>((from, Bound::Unbounded));
            let fitting = links.filter(|(name, _)| fits(pattern, name));
            let fitting = fitting.take(limit);
            fitting.map(|(_, index)| network.view(*index)).collect()
        })
    }

    /// Returns all paths.
    pub fn paths(&self) -> Vec<PathView> {
        self.look(|network| {
            let paths = network.topology.paths.iter().enumerate();
            let there = paths.filter(|(_, path)| !path.is_removed());
            let there = there.map(|(index, _)| network.path_view(index as u32));
            there.collect()
        })
    }

    /// Returns at most `limit` rules in order, after the first `skip`.
    pub fn rules(&self, skip: usize, limit: usize) -> Vec<RuleView> {
        self.look(|network| {
            let topology = &network.topology;
            let rules = topology.rules.iter().enumerate();
            let there = rules.filter(|(_, rule)| !topology.is_removed(rule.target.class));
            let there = there.skip(skip).take(limit);
            let view = |(number, rule): (usize, &RulePlan)| {
                let class = rule.target.class;
                let to = network.moved.get(&class).copied().unwrap_or(class);
                let direction = rule.target.direction.name();
                RuleView {
                    rule: number as u32,
                    matcher: topology.matcher_in_words(&rule.matcher),
                    leads_to: format!("{}.{direction}", topology.name_of(to)),
                }
            };
            there.map(view).collect()
        })
    }

    /// Returns the number of engine links that match a pattern, and the sums of their counters.
    pub fn totals(&self, pattern: &str) -> (usize, LinkTotals) {
        let mut count = 0;
        let mut sum = LinkTotals::default();
        self.each_totals(pattern, &mut |_, totals| {
            count += 1;
            sum.add(&totals);
        });
        (count, sum)
    }

    /// Calls `visit` with the name and counters of each engine link that matches a pattern.
    /// Releases the lock after each batch of names.
    pub fn each_totals(&self, pattern: &str, visit: &mut dyn FnMut(&str, LinkTotals)) {
        /// Number of names compared in less than 1 ms.
        const PART: usize = 1000;
        if !is_pattern(pattern) {
            self.look(|network| network.visit_totals(network.fitting(pattern), visit));
            return;
        }
        let mut after: Option<Arc<str>> = None;
        loop {
            let next = self.look(|network| {
                let (links, next) = network.some_fitting(pattern, after.as_deref(), PART);
                network.visit_totals(links, visit);
                next
            });
            match next {
                Some(next) => after = Some(next),
                None => return,
            }
        }
    }
}

impl Numbered {
    fn visit_totals(&self, links: Vec<LinkId>, visit: &mut dyn FnMut(&str, LinkTotals)) {
        for LinkId(link) in links {
            let link = &self.links[link as usize];
            visit(&link.name, link.cells.totals());
        }
    }

    fn view(&self, index: u32) -> LinkView {
        let plan = &self.topology.links[index as usize];
        let [up, down] = self.numbers[index as usize];
        LinkView {
            name: plan.name.to_string(),
            shared: up == down && !plan.is_one_way,
            matchers: self.matchers(Class::Link(index)),
            moved_to: self.moved_to(Class::Link(index)),
            up: self.direction_view(up),
            down: (up != down).then(|| self.direction_view(down)),
        }
    }

    fn direction_view(&self, LinkId(link): LinkId) -> DirectionView {
        let link = &self.links[link as usize];
        DirectionView {
            state: link.state,
            options: json::options(&link.options),
            counted: link.cells.totals().into(),
            queue: None,
        }
    }

    fn path_view(&self, index: u32) -> PathView {
        let plan = &self.topology.paths[index as usize];
        let hop = |hop: &Hop| {
            let name = &self.topology.links[hop.link as usize].name;
            format!("{name}.{}", hop.direction.name())
        };
        PathView {
            name: plan.name.to_string(),
            via: plan.hops.iter().map(hop).collect(),
            matchers: self.matchers(Class::Path(index)),
            moved_to: self.moved_to(Class::Path(index)),
        }
    }

    fn matchers(&self, class: Class) -> Vec<String> {
        let rules = self.rules_of(class);
        let topology = &self.topology;
        let matcher = |rule: u32| topology.matcher_in_words(&topology.rules[rule as usize].matcher);
        rules.map(matcher).collect()
    }

    fn moved_to(&self, class: Class) -> Option<String> {
        let to = self.moved.get(&class)?;
        Some(self.topology.name_of(*to).to_owned())
    }
}

impl Controller {
    /// Returns the number of directions of existing links.
    pub fn direction_count(&self) -> usize {
        self.look(|network| network.links.iter().filter(|link| !link.removed).count())
    }

    /// Returns all directions in order of addition.
    pub fn directions(&self) -> Vec<NumberedLink> {
        self.look(|network| {
            let links = network.links.iter().filter(|link| !link.removed);
            links.cloned().collect()
        })
    }

    /// Returns the direction with this name, such as `adsl7.up`.
    pub fn direction(&self, name: &str) -> Option<NumberedLink> {
        self.look(|network| match network.fitting(name).as_slice() {
            [id] => network.existing(*id).cloned(),
            _ => None,
        })
    }

    /// Returns a direction's current data; `None` if it has been removed.
    pub fn direction_of(&self, id: LinkId) -> Option<NumberedLink> {
        self.look(|network| network.existing(id).cloned())
    }

    /// Returns the current options of directions; `None` for removed ones.
    pub fn options_of(&self, directions: &[LinkId]) -> Vec<Option<Arc<LinkSpec>>> {
        self.look(|network| {
            let links = directions.iter().map(|id| network.existing(*id));
            links.map(|link| Some(Arc::clone(&link?.options))).collect()
        })
    }

    /// Measures frame delays only in these directions.
    pub fn watch_delays(&self, directions: Vec<LinkId>) {
        self.handle().ask(move |core| core.watch(&directions));
    }

    /// Counts flows in this direction; `None` stops counting.
    pub fn watch_flows(&self, direction: Option<LinkId>) {
        self.handle().ask(move |core| core.watch_flows(direction));
    }

    /// Returns the number of frames and the largest flows, in descending order, in the direction
    /// being counted.
    pub fn flows(&self) -> (u64, Vec<FlowCount>) {
        self.handle().query(|core| core.flows()).unwrap_or_default()
    }

    /// Returns each direction's queue occupancy; empty once the network has ended.
    pub fn occupancies(&self, directions: Vec<LinkId>) -> Vec<Option<Occupancy>> {
        if !self.takes_changes() {
            self.handle().refresh();
            let directions = directions.iter();
            return directions
                .map(|id| self.handle().output_occupancy(*id))
                .collect();
        }
        let read = self.handle().query(move |core| {
            let directions = directions.iter();
            directions.map(|id| core.occupancy(*id)).collect()
        });
        read.unwrap_or_default()
    }
}
