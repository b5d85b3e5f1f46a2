//! A topology with engine numbers for its links, paths and rules, and their current state.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longwire_engine::{LinkConfig, LinkId, LinkSpec, Loader, OptionError, PathId};
use longwire_packet::classify::{Classifier, Matcher};
use longwire_runtime::deciding::{LinkCells, NetworkParts, PortCarrier, Sharding, Target};
use longwire_topology::glob::{self, fits};
use longwire_topology::steps::Steps;
use longwire_topology::{
    Added, Class, Direction, Hop, State, Topology, Unmatched, split_direction,
};

use crate::by_class::ByClass;

/// An engine link: one direction of a named link, or both if they share a queue. Reading its
/// counters does not lock the network.
#[derive(Clone, Debug)]
pub struct NumberedLink {
    /// Number in the engine.
    pub id: LinkId,
    /// Name, with `.up` or `.down` if the directions are separate.
    pub name: String,
    /// Current options.
    pub options: Arc<LinkSpec>,
    /// Current state.
    pub state: State,
    /// Counters.
    pub cells: Arc<LinkCells>,
    /// Whether the link was removed during the run.
    pub removed: bool,
}

/// A topology with engine numbers for links and paths.
pub struct Numbered {
    pub(super) topology: Topology,
    /// Links by engine number. Numbers are never reused.
    pub(super) links: Vec<NumberedLink>,
    /// Numbers of each named link for up and down; equal for shared links.
    pub(super) numbers: Vec<[LinkId; 2]>,
    /// Links of each path, by path number.
    paths: Vec<Vec<LinkId>>,
    /// Path of each class for up and down; `None` if removed.
    path_of: ByClass<[Option<PathId>; 2]>,
    /// Range of each class's rules, which are contiguous.
    rules_of: ByClass<Range<u32>>,
    /// Existing links by name.
    pub(super) by_name: BTreeMap<Arc<str>, u32>,
    /// Classes whose frames were moved to another class.
    pub(super) moved: HashMap<Class, Class>,
}

/// Links, paths and rules to add to the running network.
pub(super) struct Additions {
    pub links: Vec<(LinkId, LinkConfig, Arc<LinkCells>)>,
    pub paths: Vec<(PathId, Vec<LinkId>)>,
    pub rules: Vec<(u32, Matcher, Target)>,
}

/// Links and paths to remove from the running network.
#[derive(Clone, Debug, Default)]
pub(super) struct Removals {
    pub paths: Vec<PathId>,
    pub links: Vec<LinkId>,
}

/// The directions, in the order of link numbers.
const DIRECTIONS: [Direction; 2] = [Direction::Up, Direction::Down];

impl Numbered {
    /// Returns the options of all links by number.
    pub fn options(&self) -> Vec<Arc<LinkSpec>> {
        let links = self.links.iter();
        links.map(|link| Arc::clone(&link.options)).collect()
    }

    /// Numbers the links, paths and rules of a topology.
    pub fn new(topology: Topology) -> Numbered {
        let all = Added {
            links: 0..topology.links.len(),
            paths: 0..topology.paths.len(),
            rules: 0..topology.rules.len(),
        };
        let (links, paths) = (all.links.len(), all.paths.len());
        let mut numbered = Numbered {
            topology,
            links: Vec::with_capacity(2 * links),
            numbers: Vec::with_capacity(links),
            paths: Vec::with_capacity(2 * (links + paths)),
            path_of: ByClass::with_capacity(links, paths),
            rules_of: ByClass::with_capacity(links, paths),
            by_name: BTreeMap::new(),
            moved: HashMap::new(),
        };
        numbered.number(&all);
        numbered
    }

    /// Numbers the parts added to the topology.
    fn number(&mut self, added: &Added) {
        for index in added.links.clone() {
            self.number_link(index as u32);
        }
        for index in added.paths.clone() {
            for direction in DIRECTIONS {
                let hops = self.topology.paths[index].hops(direction);
                let number = |hop: &Hop| self.numbers[hop.link as usize][hop.direction as usize];
                let links = hops.iter().map(number).collect();
                self.add_path(Class::Path(index as u32), direction, links);
            }
        }
        for index in added.rules.clone() {
            let rule = index as u32;
            let rules = self.rules_of.entry(self.topology.rules[index].target.class);
            if Range::is_empty(rules) {
                *rules = rule..rule;
            }
            debug_assert_eq!(rules.end, rule, "a class's rules stand together");
            rules.end = rule + 1;
        }
    }

    fn number_link(&mut self, index: u32) {
        let plan = &self.topology.links[index as usize];
        let up = LinkId(self.links.len() as u32);
        let link = |id: LinkId, end: &str, options: &Arc<LinkSpec>| NumberedLink {
            id,
            name: format!("{}{end}", plan.name),
            options: Arc::clone(options),
            state: State::On,
            cells: Arc::default(),
            removed: false,
        };
        let numbers = match &plan.down {
            None => {
                let end = if plan.is_one_way { ".up" } else { "" };
                self.links.push(link(up, end, &plan.up));
                [up, up]
            }
            Some(options) => {
                let down = LinkId(up.0 + 1);
                self.links.push(link(up, ".up", &plan.up));
                self.links.push(link(down, ".down", options));
                [up, down]
            }
        };
        self.by_name.insert(Arc::clone(&plan.name), index);
        self.numbers.push(numbers);
        for direction in DIRECTIONS {
            let links = vec![numbers[direction as usize]];
            self.add_path(Class::Link(index), direction, links);
        }
    }

    fn add_path(&mut self, class: Class, direction: Direction, links: Vec<LinkId>) {
        let id = PathId(self.paths.len() as u32);
        self.paths.push(links);
        self.path_of.entry(class)[direction as usize] = Some(id);
    }

    pub(super) fn target(&self, class: Class, direction: Direction) -> Target {
        self.path_of(class, direction)
            .map_or(Target::Drop, Target::Path)
    }

    fn path_of(&self, class: Class, direction: Direction) -> Option<PathId> {
        self.path_of.get(class)?[direction as usize]
    }

    /// Returns the links of a class in one direction.
    pub(super) fn links_of(&self, class: Class, direction: Direction) -> Option<&[LinkId]> {
        let path = self.path_of(class, direction)?;
        self.paths.get(path.0 as usize).map(Vec::as_slice)
    }

    /// Returns a class's rules.
    pub(super) fn rules_of(&self, class: Class) -> Range<u32> {
        self.rules_of.get(class).cloned().unwrap_or_default()
    }

    /// Returns the topology from which the numbers were assigned.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns a link, unless it has been removed.
    pub(super) fn existing(&self, id: LinkId) -> Option<&NumberedLink> {
        let link = self.links.get(id.0 as usize)?;
        (!link.removed).then_some(link)
    }

    /// Returns all engine links by number, including removed ones.
    pub fn links(&self) -> &[NumberedLink] {
        &self.links
    }

    /// Builds the network without its scenario.
    ///
    /// # Errors
    /// If a model's file or plugin has disappeared since the topology was read, or the classifier
    /// refuses a rule.
    pub fn parts(&self, loader: &dyn Loader) -> Result<NetworkParts, NetworkError> {
        let stop = AtomicBool::new(false);
        self.parts_in_steps(loader, Steps::ignored(), &stop)
    }

    /// Like [`Numbered::parts`], with progress reports and cancellation.
    ///
    /// # Errors
    /// [`NetworkError::Link`] if a model's file or plugin has disappeared since the topology was
    /// read; [`NetworkError::Rule`] if the classifier refuses a rule; [`NetworkError::Interrupted`]
    /// once `stop` is set.
    pub fn parts_in_steps(
        &self,
        loader: &dyn Loader,
        steps: &Steps,
        stop: &AtomicBool,
    ) -> Result<NetworkParts, NetworkError> {
        steps.begin("building the classifier", None);
        let unmatched = match self.topology.unmatched {
            Unmatched::Pass => Target::Pass,
            Unmatched::Drop => Target::Drop,
            Unmatched::Link(link) => self.target(Class::Link(link), Direction::Up),
        };
        let rules = self.topology.rules.iter().map(|rule| {
            let target = self.target(rule.target.class, rule.target.direction);
            (rule.matcher.clone(), target, 0)
        });
        let classifier = Classifier::with_rules(self.topology.order, unmatched, rules);
        let classifier = classifier.map_err(|(rule, error)| NetworkError::Rule {
            number: rule + 1,
            reason: error.to_string(),
        })?;
        steps.begin("preparing links", Some(self.links.len() as u64));
        let mut links = Vec::with_capacity(self.links.len());
        for link in &self.links {
            steps.advance();
            if stop.load(Ordering::Relaxed) {
                return Err(NetworkError::Interrupted);
            }
            let config = link.options.build(loader);
            let config = config.map_err(|source| NetworkError::Link {
                name: link.name.clone(),
                source,
            })?;
            links.push((config, Arc::clone(&link.cells)));
        }
        Ok(NetworkParts {
            switch: self.topology.bridge.clone(),
            classifier,
            links,
            paths: self.paths.clone(),
            orders: Vec::new(),
            on_port_loss: self.topology.on_port_loss,
            sharding: Sharding::one(),
            remote: None,
        })
    }

    /// Numbers the parts added to the topology. Returns the numbers of the first new link and path.
    /// Reverted by [`Numbered::undo`].
    pub(super) fn add(&mut self, added: &Added) -> (usize, usize) {
        let first = (self.links.len(), self.paths.len());
        self.number(added);
        first
    }

    /// Builds added links, paths and rules for the running network.
    ///
    /// # Errors
    /// If an option is refused; names the link and the option.
    pub(super) fn additions(
        &self,
        added: &Added,
        (links, paths): (usize, usize),
        loader: &dyn Loader,
    ) -> Result<Additions, (String, OptionError)> {
        let mut configs = Vec::new();
        for plan in &self.topology.links[added.links.clone()] {
            for options in std::iter::once(&plan.up).chain(&plan.down) {
                let config = options.build(loader);
                configs.push(config.map_err(|error| (plan.name.to_string(), error))?);
            }
        }
        let links = self.links[links..].iter().zip(configs);
        let links = links.map(|(link, config)| (link.id, config, Arc::clone(&link.cells)));
        let new = self.paths[paths..].iter().enumerate();
        let new = new.map(|(index, links)| (PathId((paths + index) as u32), links.clone()));
        let rules = added.rules.clone().map(|index| {
            let rule = &self.topology.rules[index];
            let target = self.target(rule.target.class, rule.target.direction);
            (index as u32, rule.matcher.clone(), target)
        });
        Ok(Additions {
            links: links.collect(),
            paths: new.collect(),
            rules: rules.collect(),
        })
    }

    /// Reverts the last [`Numbered::add`].
    pub(super) fn undo(&mut self, added: &Added) {
        for rule in &self.topology.rules[added.rules.clone()] {
            self.rules_of.take(rule.target.class);
        }
        let links = added.links.clone().map(|link| Class::Link(link as u32));
        let paths = added.paths.clone().map(|path| Class::Path(path as u32));
        for class in links.chain(paths) {
            for path in self.path_of.take(class).into_iter().flatten() {
                self.paths.truncate(self.paths.len().min(path.0 as usize));
            }
            if let Class::Link(link) = class {
                let [up, _] = self.numbers[link as usize];
                self.links.truncate(self.links.len().min(up.0 as usize));
                self.by_name
                    .remove(&self.topology.links[link as usize].name);
            }
        }
        self.numbers.truncate(added.links.start);
    }

    /// Removes links and paths. Returns the rules, which must be removed first, and the links and
    /// paths.
    pub(super) fn remove(&mut self, classes: &[Class]) -> (Vec<u32>, Removals) {
        let mut removals = Removals::default();
        let mut rules = Vec::new();
        for class in classes {
            rules.extend(self.rules_of.take(*class));
            let paths = self.path_of.take(*class).into_iter().flatten();
            removals.paths.extend(paths);
            self.moved.remove(class);
            let Class::Link(index) = class else { continue };
            let [up, down] = self.numbers[*index as usize];
            removals.links.push(up);
            removals.links.extend((down != up).then_some(down));
            self.by_name
                .remove(&self.topology.links[*index as usize].name);
        }
        for link in &removals.links {
            self.links[link.0 as usize].removed = true;
        }
        self.topology.remove(classes);
        (rules, removals)
    }

    /// Returns named links that match a pattern, with the direction if the pattern selects one.
    pub(super) fn named(&self, pattern: &str) -> Vec<(u32, Option<Direction>)> {
        if !glob::is_pattern(pattern) {
            let (bare, direction) = split_direction(pattern);
            let found = self.by_name.get(bare);
            return found.map(|index| (*index, direction)).into_iter().collect();
        }
        let all = self.by_name.iter();
        let fitting = all.filter_map(|(name, index)| Some((*index, direction_of(pattern, name)?)));
        fitting.collect()
    }

    /// Matches a pattern against the next `names` names after `after`. Returns the matching links;
    /// if more names follow, also the last name compared.
    pub(super) fn some_fitting(
        &self,
        pattern: &str,
        after: Option<&str>,
        names: usize,
    ) -> (Vec<LinkId>, Option<Arc<str>>) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut following = self.by_name.range::<str, _>((from, Bound::Unbounded));
        let mut found = Vec::new();
        let mut last = None;
        for (name, index) in following.by_ref().take(names) {
            if let Some(direction) = direction_of(pattern, name) {
                found.extend(self.numbers_of(*index, direction));
            }
            last = Some(name);
        }
        let more = following.next().is_some();
        (found, last.filter(|_| more).cloned())
    }

    /// Returns the links that match a pattern, in both directions unless the pattern ends in `.up`
    /// or `.down`.
    pub fn fitting(&self, pattern: &str) -> Vec<LinkId> {
        let named = self.named(pattern).into_iter();
        let numbers = named.flat_map(|(index, direction)| self.numbers_of(index, direction));
        numbers.collect()
    }

    /// Returns each port whose carrier follows links, with these links.
    pub fn carriers(&self) -> Vec<PortCarrier> {
        let carriers = self.topology.carriers.iter().map(|carrier| {
            let toward = carrier.links.iter().flat_map(|link| self.fitting(link));
            let port = &self.topology.ports[usize::from(carrier.port.0)];
            PortCarrier {
                port: carrier.port,
                name: port.name.clone(),
                toward: toward.collect(),
            }
        });
        carriers.collect()
    }

    /// Returns the engine numbers of a named link, or of one of its directions.
    fn numbers_of(
        &self,
        index: u32,
        direction: Option<Direction>,
    ) -> impl Iterator<Item = LinkId> + use<> {
        let [up, down] = self.numbers[index as usize];
        let (first, second) = match direction {
            // A shared link has the same number in both directions.
            _ if up == down => (up, None),
            Some(Direction::Up) => (up, None),
            Some(Direction::Down) => (down, None),
            None => (up, Some(down)),
        };
        std::iter::once(first).chain(second)
    }
}

/// Matches a name against a pattern. Returns `None` if it does not match; the inner option is the
/// direction that the pattern selects.
fn direction_of(pattern: &str, name: &str) -> Option<Option<Direction>> {
    if fits(pattern, name) {
        return Some(None);
    }
    let (bare, direction) = split_direction(pattern);
    direction.filter(|_| fits(bare, name)).map(Some)
}

/// An error in building a network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The classifier refused a rule.
    #[error("rule {number}: {reason}")]
    Rule {
        /// The rule's number, from 1.
        number: usize,
        /// The reason for the refusal.
        reason: String,
    },
    /// A link's options were refused, for example because a file was deleted.
    #[error("link '{name}': {source}")]
    Link {
        /// The link.
        name: String,
        /// The reason for the refusal.
        source: OptionError,
    },
    /// The caller interrupted the construction.
    #[error("interrupted before the network started")]
    Interrupted,
}
