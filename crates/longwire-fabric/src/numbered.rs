//! A topology with the numbers of its links, paths and rules, and how they are
//! now.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longwire_engine::{LinkConfig, LinkId, LinkSpec, Loader, OptionError, PathId};
use longwire_packet::bridge::BridgeConfig;
use longwire_packet::classify::{Classifier, Matcher};
use longwire_runtime::fabric::{FabricParts, LinkCells, PortCarrier, Target};

use crate::NetworkError;
use longwire_topology::glob::{self, fits};
use longwire_topology::steps::Steps;
use longwire_topology::{Added, Class, State, Topology, Unmatched, Way, direction};

/// One engine link of a topology's.
#[derive(Debug)]
pub struct NumberedLink {
    /// Its name; with `.up` or `.down` where the directions are apart.
    pub name: String,
    /// Its options now.
    pub options: Arc<LinkSpec>,
    /// Whether it carries frames now.
    pub state: State,
    /// Its counters.
    pub cells: Arc<LinkCells>,
    /// Whether it was taken away while the network ran.
    pub removed: bool,
}

/// A topology with the numbers of its links and paths.
pub struct Numbered {
    pub(super) topology: Topology,
    /// By the engine's numbers, which are not given twice.
    pub(super) links: Vec<NumberedLink>,
    /// Each named link's numbers, up and down: the same where they share one.
    pub(super) numbers: Vec<[LinkId; 2]>,
    /// The links of each path.
    paths: Vec<Vec<LinkId>>,
    path_of: HashMap<(Class, Way), PathId>,
    /// The rules of a class, which stand one behind the other.
    rules_of: HashMap<Class, Range<u32>>,
    /// The links that there are, by name.
    pub(super) by_name: BTreeMap<Arc<str>, u32>,
    /// Whose frames take whose links.
    pub(super) moved: HashMap<Class, Class>,
}

/// Added links, paths and rules, for the fabric.
pub(super) struct Additions {
    pub links: Vec<(LinkId, LinkConfig, Arc<LinkCells>)>,
    pub paths: Vec<(PathId, Vec<LinkId>)>,
    pub rules: Vec<(u32, Matcher, Target)>,
}

/// Removed links and paths, for the fabric.
#[derive(Clone, Debug, Default)]
pub(super) struct Removals {
    pub paths: Vec<PathId>,
    pub links: Vec<LinkId>,
}

fn index_of(way: Way) -> usize {
    match way {
        Way::Up => 0,
        Way::Down => 1,
    }
}

impl Numbered {
    /// Returns the options of all links, by number.
    pub fn options(&self) -> Vec<Arc<LinkSpec>> {
        self.links
            .iter()
            .map(|link| Arc::clone(&link.options))
            .collect()
    }

    /// Numbers links and paths.
    pub fn new(topology: Topology) -> Numbered {
        let all = Added {
            links: 0..topology.links.len(),
            paths: 0..topology.paths.len(),
            rules: 0..topology.rules.len(),
        };
        let mut numbered = Numbered {
            topology,
            links: Vec::new(),
            numbers: Vec::new(),
            paths: Vec::new(),
            path_of: HashMap::new(),
            rules_of: HashMap::new(),
            by_name: BTreeMap::new(),
            moved: HashMap::new(),
        };
        numbered.number(&all);
        numbered
    }

    /// Gives numbers to what is new in the topology.
    fn number(&mut self, added: &Added) {
        for index in added.links.clone() {
            self.number_link(index as u32);
        }
        for index in added.paths.clone() {
            for way in [Way::Up, Way::Down] {
                let hops = self.topology.paths[index].hops(way);
                let numbers = hops.iter();
                let numbers = numbers.map(|hop| self.numbers[hop.link as usize][index_of(hop.way)]);
                let numbers = numbers.collect();
                self.add_path(Class::Path(index as u32), way, numbers);
            }
        }
        for index in added.rules.clone() {
            let rule = index as u32;
            let rules = self.rules_of.entry(self.topology.rules[index].target.class);
            let rules = rules.or_insert(rule..rule);
            debug_assert_eq!(rules.end, rule, "a class's rules stand together");
            rules.end = rule + 1;
        }
    }

    fn number_link(&mut self, index: u32) {
        let plan = &self.topology.links[index as usize];
        let up = LinkId(self.links.len() as u32);
        let link = |name: String, options: &Arc<LinkSpec>| NumberedLink {
            name,
            options: Arc::clone(options),
            state: State::Up,
            cells: Arc::default(),
            removed: false,
        };
        let numbers = match &plan.down {
            None => {
                self.links.push(link(plan.name.to_string(), &plan.up));
                [up, up]
            }
            Some(down) => {
                self.links.push(link(format!("{}.up", plan.name), &plan.up));
                self.links.push(link(format!("{}.down", plan.name), down));
                [up, LinkId(up.0 + 1)]
            }
        };
        self.by_name.insert(Arc::clone(&plan.name), index);
        self.numbers.push(numbers);
        for way in [Way::Up, Way::Down] {
            self.add_path(Class::Link(index), way, vec![numbers[index_of(way)]]);
        }
    }

    fn add_path(&mut self, class: Class, way: Way, links: Vec<LinkId>) {
        let id = PathId(self.paths.len() as u32);
        self.paths.push(links);
        self.path_of.insert((class, way), id);
    }

    pub(super) fn target(&self, class: Class, way: Way) -> Target {
        let path = self.path_of.get(&(class, way));
        path.map_or(Target::Drop, |path| Target::Path(*path))
    }

    /// Returns the links of a class's path in one direction.
    pub(super) fn links_of(&self, class: Class, way: Way) -> Option<&[LinkId]> {
        let path = self.path_of.get(&(class, way))?;
        self.paths.get(path.0 as usize).map(Vec::as_slice)
    }

    /// The rules of a class, by number.
    pub(super) fn rules_of(&self, class: Class) -> Range<u32> {
        self.rules_of.get(&class).cloned().unwrap_or_default()
    }

    /// The topology.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The engine's links, by number; those that were removed too.
    pub fn links(&self) -> &[NumberedLink] {
        &self.links
    }

    /// Returns the parts of the fabric, without its scenario.
    ///
    /// # Errors
    /// If a model's file or plugin has gone since the topology was read.
    pub fn parts(&self, loader: &dyn Loader) -> Result<FabricParts, NetworkError> {
        let stop = AtomicBool::new(false);
        self.parts_in_steps(loader, Steps::ignored(), &stop)
    }

    /// The same; says how far it is, and ends early when it is to stop.
    ///
    /// # Errors
    /// [`NetworkError::Link`] if a model's file or plugin has gone since the topology
    /// was read; [`NetworkError::Rule`] for a rule that the classifier refuses;
    /// [`NetworkError::Interrupted`] once `stop` is set.
    pub fn parts_in_steps(
        &self,
        loader: &dyn Loader,
        steps: &Steps,
        stop: &AtomicBool,
    ) -> Result<FabricParts, NetworkError> {
        steps.begin("building the classifier", None);
        let unmatched = match self.topology.unmatched {
            Unmatched::Pass => Target::Pass,
            Unmatched::Drop => Target::Drop,
            Unmatched::Link(link) => self.target(Class::Link(link), Way::Up),
        };
        let rules = self.topology.rules.iter().map(|rule| {
            let target = self.target(rule.target.class, rule.target.way);
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
            let config: LinkConfig = config.map_err(|source| NetworkError::Link {
                name: link.name.clone(),
                source,
            })?;
            links.push((config, Arc::clone(&link.cells)));
        }
        let switch: BridgeConfig = self.topology.bridge.clone();
        Ok(FabricParts {
            switch,
            classifier,
            links,
            paths: self.paths.clone(),
            orders: Vec::new(),
            on_port_loss: self.topology.on_port_loss,
            sharding: None,
            remote: None,
        })
    }

    /// Numbers what was added to the topology; the first number of its links
    /// and of its paths. [`Numbered::undo`] takes them back.
    pub(super) fn add(&mut self, added: &Added) -> (usize, usize) {
        let first = (self.links.len(), self.paths.len());
        self.number(added);
        first
    }

    /// Returns added links, paths and rules, for the fabric.
    ///
    /// # Errors
    /// The link, and what is wrong with it.
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
        let numbered = self.links[links..].iter().enumerate();
        let links = numbered.zip(configs).map(|((index, link), config)| {
            let id = LinkId((links + index) as u32);
            (id, config, Arc::clone(&link.cells))
        });
        let new = self.paths[paths..].iter().enumerate();
        let new = new.map(|(index, links)| (PathId((paths + index) as u32), links.clone()));
        let rules = added.rules.clone().map(|index| {
            let rule = &self.topology.rules[index];
            let target = self.target(rule.target.class, rule.target.way);
            (index as u32, rule.matcher.clone(), target)
        });
        Ok(Additions {
            links: links.collect(),
            paths: new.collect(),
            rules: rules.collect(),
        })
    }

    /// Takes back the numbers of what was numbered last.
    pub(super) fn undo(&mut self, added: &Added) {
        for rule in &self.topology.rules[added.rules.clone()] {
            self.rules_of.remove(&rule.target.class);
        }
        let links = added.links.clone().map(|link| Class::Link(link as u32));
        let paths = added.paths.clone().map(|path| Class::Path(path as u32));
        for class in links.chain(paths) {
            for way in [Way::Up, Way::Down] {
                if let Some(path) = self.path_of.remove(&(class, way)) {
                    self.paths.truncate(self.paths.len().min(path.0 as usize));
                }
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

    /// Takes links and paths out; says which rules go, and then what else.
    pub(super) fn remove(&mut self, classes: &[Class]) -> (Vec<u32>, Removals) {
        let mut removals = Removals::default();
        let mut rules = Vec::new();
        for class in classes {
            rules.extend(self.rules_of.remove(class).into_iter().flatten());
            for way in [Way::Up, Way::Down] {
                removals.paths.extend(self.path_of.remove(&(*class, way)));
            }
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

    /// The named links that fit a pattern, or one direction of each.
    pub(super) fn named(&self, pattern: &str) -> Vec<(u32, Option<Way>)> {
        if !glob::is_pattern(pattern) {
            let (bare, way) = direction(pattern);
            let found = self.by_name.get(bare);
            return found.map(|index| (*index, way)).into_iter().collect();
        }
        let all = self.by_name.iter();
        let fitting = all.filter_map(|(name, index)| Some((*index, way_of(pattern, name)?)));
        fitting.collect()
    }

    /// The numbers of the links that fit a pattern, among this many names after
    /// `after`; and the last of these names, if there are more.
    pub(super) fn some_fitting(
        &self,
        pattern: &str,
        after: Option<&str>,
        names: usize,
    ) -> (Vec<LinkId>, Option<Arc<str>>) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut behind = self.by_name.range::<str, _>((from, Bound::Unbounded));
        let mut found = Vec::new();
        let mut last = None;
        for (name, index) in behind.by_ref().take(names) {
            if let Some(way) = way_of(pattern, name) {
                found.extend(self.numbers_of(*index, way));
            }
            last = Some(name);
        }
        let more = behind.next().is_some();
        (found, last.filter(|_| more).cloned())
    }

    /// The numbers of links whose name fits a pattern: both directions, or
    /// the one whose name the pattern ends in.
    pub fn fitting(&self, pattern: &str) -> Vec<LinkId> {
        let named = self.named(pattern).into_iter();
        let numbers = named.flat_map(|(index, way)| self.numbers_of(index, way));
        numbers.collect()
    }

    /// Returns the links toward each port whose carrier follows them.
    pub fn carriers(&self) -> Vec<PortCarrier> {
        let carriers = self.topology.carriers.iter();
        let carriers = carriers.map(|carrier| PortCarrier {
            port: carrier.port,
            name: self.topology.ports[usize::from(carrier.port.0)]
                .name
                .clone(),
            toward: carrier
                .links
                .iter()
                .flat_map(|link| self.fitting(link))
                .collect(),
        });
        carriers.collect()
    }

    /// The numbers of a named link's directions, or of one of them.
    fn numbers_of(&self, index: u32, way: Option<Way>) -> impl Iterator<Item = LinkId> + use<> {
        let [up, down] = self.numbers[index as usize];
        let (first, second) = match way {
            // A shared link is both ways at once.
            _ if up == down => (up, None),
            Some(Way::Up) => (up, None),
            Some(Way::Down) => (down, None),
            None => (up, Some(down)),
        };
        std::iter::once(first).chain(second)
    }
}

/// Whether a link's name fits a pattern, and which direction alone is meant.
fn way_of(pattern: &str, name: &str) -> Option<Option<Way>> {
    if fits(pattern, name) {
        return Some(None);
    }
    let (bare, way) = direction(pattern);
    way.filter(|_| fits(bare, name)).map(Some)
}
