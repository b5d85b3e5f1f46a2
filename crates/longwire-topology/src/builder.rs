//! Builds a topology: names, links and rules.

use std::collections::HashSet;
use std::sync::Arc;

use longwire_packet::bridge::{PortIndex, Switching};
use longwire_packet::classify::Matcher;

use super::fields::LINKS_MAX;
use super::matchers::PortNames;
use super::options::OptionStore;
use super::plan::{Class, Direction, LinkPlan, RulePlan, Target, Topology};
use super::problem::{Diagnostics, Place, Problem, suggestion};
use super::tree::Placed;
use crate::steps::Steps;

/// The parts of a topology parsed so far.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    pub diagnostics: Diagnostics<'a>,
    pub store: OptionStore,
    /// Progress, advanced once per link.
    pub steps: &'a Steps,
    /// Topology so far. Its rules are added at the end.
    pub topology: Topology,
    /// Addresses of the link specifications whose option combinations have been checked.
    pub judged: HashSet<usize>,
    /// Rules with their position in the file, which determines the order.
    pub rules: Vec<(usize, RulePlan)>,
    /// Classes with matchers; set once all links are read, if the scenario moves frames.
    pub matched: Option<HashSet<Class>>,
    /// Whether frames can reach a link, by link number.
    pub used: Vec<bool>,
}

/// A link's or path's matchers, unparsed.
#[derive(Clone, Debug, Default)]
pub(super) struct Matches {
    /// Matchers for direction up.
    pub forward: Vec<String>,
    /// Matchers for direction down; if empty, those of direction up with source and destination
    /// swapped.
    pub back: Vec<String>,
}

/// A link to be added.
#[derive(Clone, Debug)]
pub(super) struct NewLink {
    pub name: String,
    pub up: Arc<longwire_engine::LinkSpec>,
    pub down: Option<Arc<longwire_engine::LinkSpec>>,
    pub matches: Matches,
    /// Position reported in problems; `position` orders the rules.
    pub place: Place,
    pub position: usize,
}

impl<'a> Builder<'a> {
    pub fn new(diagnostics: Diagnostics<'a>, store: OptionStore) -> Builder<'a> {
        Builder {
            diagnostics,
            store,
            steps: Steps::ignored(),
            topology: Topology::default(),
            judged: HashSet::new(),
            rules: Vec::new(),
            matched: None,
            used: Vec::new(),
        }
    }

    /// Returns the topology.
    ///
    /// # Errors
    /// All problems found so far.
    pub fn finish(mut self) -> Result<Topology, Vec<Problem>> {
        self.add_sorted_rules();
        self.topology.warnings = self.diagnostics.finish()?;
        self.topology.files = Arc::new(self.store.files.named());
        Ok(self.topology)
    }

    /// Appends the rules to the topology's rules, in file order.
    pub fn add_sorted_rules(&mut self) {
        self.rules.sort_by_key(|(position, _)| *position);
        let rules = self.rules.drain(..).map(|(_, rule)| rule);
        self.topology.rules.extend(rules);
    }
}

impl Builder<'_> {
    /// Like [`Diagnostics::refuse`].
    pub fn refuse(
        &mut self,
        place: impl Into<Place>,
        field: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.diagnostics.refuse(place, field, reason, remedy);
    }

    /// Adds a link; returns `false` if it was rejected.
    pub fn add_link(&mut self, link: NewLink) -> bool {
        self.steps.advance();
        for options in [Some(&link.up), link.down.as_ref()].into_iter().flatten() {
            // Check options once, although all links of a table share them.
            if !self.judged.insert(Arc::as_ptr(options) as usize) {
                continue;
            }
            for doubt in options.joint_doubts() {
                let field = format!("link.{}", doubt.option);
                self.diagnostics
                    .warn_once(link.place.clone(), field, doubt.message);
            }
        }
        let class = Class::Link(self.topology.links.len() as u32);
        if self.topology.links.len() as u64 >= LINKS_MAX {
            let reason = format!("more than {LINKS_MAX} links");
            self.refuse(link.place, "link", reason, "remove some");
            return false;
        }
        let Some(name) = self.add_name(&link.name, class, link.place.clone(), "link.name") else {
            return false;
        };
        let shared = link.down.is_none();
        self.topology.links.push(LinkPlan {
            name,
            up: link.up,
            down: link.down,
            is_one_way: false,
        });
        self.used.push(!link.matches.forward.is_empty());
        let at = (link.place, link.position);
        self.add_rules(class, &link.matches, shared, at, "link.match")
    }

    /// Sends all frames from a port up the last link, and makes that link one-way.
    pub fn one_way_from(&mut self, port: PortIndex) {
        let Some(link) = self.topology.links.last_mut() else {
            return;
        };
        link.is_one_way = true;
        let class = Class::Link(self.topology.links.len() as u32 - 1);
        let matcher = Matcher {
            arrival_port: Some(port),
            ..Matcher::default()
        };
        self.push_rule(matcher, class, Direction::Up, 0);
        self.used[self.topology.links.len() - 1] = true;
    }

    /// Registers the name of a link or path. Names are unique among links and paths, because a
    /// scenario may refer to either.
    pub fn add_name(
        &mut self,
        name: &str,
        class: Class,
        place: Place,
        at: &str,
    ) -> Option<Arc<str>> {
        if !is_name(name) || split_direction(name).1.is_some() {
            let reason = format!("{name:?} is not a valid name");
            let remedy = "use letters, digits, '-', '_', '.', ':' and '/'; do not end in .up or \
                          .down; {n}, {a} and {b} need count or between";
            self.refuse(place, at, reason, remedy);
            return None;
        }
        let name: Arc<str> = name.into();
        if self.topology.names.contains_key(&name) {
            let reason = format!("name '{name}' is used twice");
            self.refuse(place, at, reason, "give each link and path a unique name");
            return None;
        }
        self.topology.names.insert(Arc::clone(&name), class);
        Some(name)
    }

    /// Adds the rules of a link or path for both directions. Returns `false` if a matcher is
    /// invalid.
    pub fn add_rules(
        &mut self,
        class: Class,
        matches: &Matches,
        shared: bool,
        (place, position): (Place, usize),
        at: &str,
    ) -> bool {
        let back_way = if shared {
            Direction::Up
        } else {
            Direction::Down
        };
        let mut wrong = Vec::new();
        for text in &matches.forward {
            let names = self.port_names();
            let forward = match names.read(text) {
                Ok(forward) if shared || !matches.back.is_empty() => forward,
                Ok(forward) => names.directed(forward),
                Err(why) => {
                    wrong.push((text, why));
                    continue;
                }
            };
            let back = matches.back.is_empty().then(|| names.back(&forward));
            self.push_rule(forward, class, Direction::Up, position);
            match back {
                Some(Ok(back)) => self.push_rule(back, class, back_way, position),
                // A shared link needs no matcher for direction down.
                Some(Err(why)) if !shared => wrong.push((text, why)),
                _ => {}
            }
        }
        for text in &matches.back {
            match self.port_names().read(text) {
                Ok(matcher) => self.push_rule(matcher, class, back_way, position),
                Err(why) => wrong.push((text, why)),
            }
        }
        let fine = wrong.is_empty();
        for (text, (reason, remedy)) in wrong {
            let reason = format!("'{text}': {reason}");
            self.refuse(place.clone(), at, reason, remedy);
        }
        fine
    }

    fn port_names(&self) -> PortNames<'_> {
        PortNames {
            ports: &self.topology.ports,
            pairs: match &self.topology.bridge.switching {
                Switching::Pairs(pairs) => Some(pairs),
                _ => None,
            },
        }
    }

    fn push_rule(&mut self, matcher: Matcher, class: Class, direction: Direction, position: usize) {
        let target = Target { class, direction };
        self.rules.push((position, RulePlan { matcher, target }));
    }

    /// Reports an unknown link name.
    pub fn no_link(&mut self, name: &str, place: impl Into<Place>, at: &str) {
        // Compare only some names: a million would be too slow.
        let known = self.topology.link_names().take(NAMES_COMPARED_MAX);
        let remedy = suggestion(name, known);
        self.refuse(place, at, format!("no link named '{name}'"), remedy);
    }
}

/// Maximum number of names compared with an unknown name.
const NAMES_COMPARED_MAX: usize = 10_000;

/// Returns whether text is a valid name for a port, link, path or host. Excludes invisible and
/// formatting characters (Unicode categories Cc, Cf, Zl, Zp, Co and Cn), which make different names
/// look alike.
fn is_name(text: &str) -> bool {
    let wrong = |c: char| c.is_whitespace() || is_unprintable(c) || "*?,{}\"'".contains(c);
    !text.is_empty() && !text.contains(wrong)
}

/// Rejects an invalid port or host name; returns whether it is valid.
pub(super) fn check_name(name: &Placed<&str>, field: &str, diagnostics: &mut Diagnostics) -> bool {
    let is_valid = is_name(name.value);
    if !is_valid {
        let reason = format!("{:?} is not a valid name", name.value);
        let remedy = "use letters, digits, '-', '_', '.', ':' and '/'";
        diagnostics.refuse(name.span.clone(), field, reason, remedy);
    }
    is_valid
}

/// Returns whether the standard library escapes this character in any position.
fn is_unprintable(c: char) -> bool {
    if c.is_ascii() {
        return c.is_control();
    }
    // Prefix a letter, because combining characters are escaped at the start only.
    format!("a{c}").escape_debug().count() > 2
}

/// Splits a suffix `.up` or `.down` off a link's name.
pub fn split_direction(name: &str) -> (&str, Option<Direction>) {
    match name.rsplit_once('.') {
        Some((bare, "up")) => (bare, Some(Direction::Up)),
        Some((bare, "down")) => (bare, Some(Direction::Down)),
        _ => (name, None),
    }
}
