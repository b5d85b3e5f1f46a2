//! A topology as a running fabric: its links and paths by number, its rules,
//! and its scenario as orders.

mod report;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use longwire_engine::bridge::BridgeConfig;
use longwire_engine::classify::{Classifier, RuleId};
use longwire_engine::{
    LinkChange, LinkConfig, LinkId, LinkOptions, LinkState, Loader, Nanos, OptionError, PathId,
    Replaced,
};
use longwire_runtime::fabric::{FabricParts, LinkCells, Target, Work};

use crate::Error;
use crate::topology::glob::fits;
use crate::topology::{Action, Class, Command, State, Topology, Unmatched, Way};
pub use report::{LinkRow, NetworkReport, write_text};

/// One engine link of a topology's.
#[derive(Debug)]
pub struct NumberedLink {
    /// Its name; with `.up` or `.down` where the directions are apart.
    pub name: String,
    /// Its options at the start.
    pub options: Arc<LinkOptions>,
    /// What is counted of it.
    pub cells: Arc<LinkCells>,
}

/// A topology with the numbers of its links and paths.
pub struct Numbered {
    topology: Topology,
    /// By the engine's numbers.
    links: Vec<NumberedLink>,
    /// Each named link's numbers, up and down: the same where they share one.
    numbers: Vec<[LinkId; 2]>,
    /// What frames of a class cross.
    paths: Vec<Vec<LinkId>>,
    path_of: HashMap<(Class, Way), PathId>,
}

fn index_of(way: Way) -> usize {
    match way {
        Way::Up => 0,
        Way::Down => 1,
    }
}

impl Numbered {
    /// Numbers links and paths.
    pub fn new(topology: Topology) -> Numbered {
        let mut links = Vec::new();
        let mut numbers = Vec::new();
        for plan in &topology.links {
            let up = LinkId(links.len() as u32);
            let link = |name: String, options: &Arc<LinkOptions>| NumberedLink {
                name,
                options: Arc::clone(options),
                cells: Arc::default(),
            };
            match &plan.down {
                None => {
                    links.push(link(plan.name.to_string(), &plan.up));
                    numbers.push([up, up]);
                }
                Some(down) => {
                    links.push(link(format!("{}.up", plan.name), &plan.up));
                    links.push(link(format!("{}.down", plan.name), down));
                    numbers.push([up, LinkId(up.0 + 1)]);
                }
            }
        }
        let mut numbered = Numbered {
            topology,
            links,
            numbers,
            paths: Vec::new(),
            path_of: HashMap::new(),
        };
        numbered.number_paths();
        numbered
    }

    fn number_paths(&mut self) {
        for link in 0..self.topology.links.len() as u32 {
            for way in [Way::Up, Way::Down] {
                let number = self.numbers[link as usize][index_of(way)];
                self.add_path(Class::Link(link), way, vec![number]);
            }
        }
        for path in 0..self.topology.paths.len() as u32 {
            for way in [Way::Up, Way::Down] {
                let hops = self.topology.paths[path as usize].hops(way);
                let numbers = hops.iter();
                let numbers = numbers.map(|hop| self.numbers[hop.link as usize][index_of(hop.way)]);
                self.add_path(Class::Path(path), way, numbers.collect());
            }
        }
    }

    fn add_path(&mut self, class: Class, way: Way, links: Vec<LinkId>) {
        let id = PathId(self.paths.len() as u32);
        self.paths.push(links);
        self.path_of.insert((class, way), id);
    }

    fn target(&self, class: Class, way: Way) -> Target {
        let path = self.path_of.get(&(class, way));
        path.map_or(Target::Drop, |path| Target::Path(*path))
    }

    /// The topology.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The engine's links, by number.
    pub fn links(&self) -> &[NumberedLink] {
        &self.links
    }

    /// What the fabric is made of, without its scenario.
    ///
    /// # Errors
    /// If a model's file or plugin has gone since the topology was read.
    pub fn parts(&self, loader: &dyn Loader) -> Result<FabricParts, Error> {
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
        let classifier = classifier
            .map_err(|(rule, error)| Error::Failed(format!("rule {}: {error}", rule + 1)))?;
        let mut links = Vec::with_capacity(self.links.len());
        for link in &self.links {
            let config = link.options.parse_with(loader);
            let config: LinkConfig = config.map_err(|error| refused(&link.name, &error))?;
            links.push((config, Arc::clone(&link.cells)));
        }
        let switch: BridgeConfig = self.topology.bridge.clone();
        Ok(FabricParts {
            switch,
            classifier,
            links,
            paths: self.paths.clone(),
            orders: Vec::new(),
        })
    }

    /// The numbers of links whose name fits a pattern: both directions, or
    /// the one whose name the pattern ends in.
    fn fitting(&self, pattern: &str) -> Vec<LinkId> {
        let mut found = Vec::new();
        for (plan, [up, down]) in self.topology.links.iter().zip(&self.numbers) {
            let apart = up != down;
            let whole = fits(pattern, &plan.name);
            let fits_way =
                |way: Way| apart && fits(pattern, &format!("{}.{}", plan.name, way.name()));
            if whole || fits_way(Way::Up) {
                found.push(*up);
            }
            if apart && (whole || fits_way(Way::Down)) {
                found.push(*down);
            }
        }
        found
    }

    /// What a command does, prepared: all is read and checked here, and the
    /// fabric only applies it. What is replaced goes to `bin`. Some commands
    /// need a second step later.
    ///
    /// # Errors
    /// What of it cannot be, and nothing is done.
    pub fn works(
        &self,
        command: &Command,
        loader: &dyn Loader,
        bin: &Sender<Replaced>,
    ) -> Result<Vec<(Nanos, Work)>, Error> {
        let at = command.at.unwrap_or(Nanos::ZERO);
        let mut changes: Vec<(LinkId, LinkChange)> = Vec::new();
        let mut targets: Vec<(RuleId, Target)> = Vec::new();
        let mut later: Vec<(Nanos, Vec<(RuleId, Target)>)> = Vec::new();
        for action in &command.actions {
            match action {
                Action::Set { pattern, options } => {
                    for link in self.fitting(pattern) {
                        let change = options.parse_change_with(loader);
                        let name = &self.links[link.0 as usize].name;
                        changes.push((link, change.map_err(|error| refused(name, &error))?));
                    }
                }
                Action::State { pattern, state } => {
                    let fitting = self.fitting(pattern).into_iter();
                    changes.extend(fitting.map(|link| (link, changed_state(*state))));
                }
                Action::Move { class, to, outage } => {
                    let moved = self.moved(class, to)?;
                    if *outage == Nanos::ZERO {
                        targets.extend(moved);
                        continue;
                    }
                    targets.extend(moved.iter().map(|(rule, _)| (*rule, Target::Drop)));
                    later.push((at.saturating_add(*outage), moved));
                }
            }
        }
        let mut works = vec![(at, work(changes, targets, bin))];
        for (at, targets) in later {
            works.push((at, work(Vec::new(), targets, bin)));
        }
        Ok(works)
    }

    /// The rules of a class, and where they lead when its frames take another
    /// one's way.
    fn moved(&self, class: &str, to: &str) -> Result<Vec<(RuleId, Target)>, Error> {
        let named = |name: &str| {
            let found = self.topology.named(name);
            found.ok_or_else(|| Error::Failed(format!("no link or path is called '{name}'")))
        };
        let (class, to) = (named(class)?, named(to)?);
        let rules = self.topology.rules.iter().enumerate();
        let of_class = rules.filter(|(_, rule)| rule.target.class == class);
        let moved =
            of_class.map(|(index, rule)| (RuleId(index as u32), self.target(to, rule.target.way)));
        Ok(moved.collect())
    }
}

fn refused(link: &str, error: &OptionError) -> Error {
    Error::Failed(format!("link '{link}': {error}"))
}

fn changed_state(state: State) -> LinkChange {
    let state = match state {
        State::Up => LinkState::Up,
        State::Down => LinkState::Down,
        State::Paused => LinkState::Paused,
    };
    LinkChange {
        state: Some(state),
        ..LinkChange::default()
    }
}

fn work(
    changes: Vec<(LinkId, LinkChange)>,
    targets: Vec<(RuleId, Target)>,
    bin: &Sender<Replaced>,
) -> Work {
    let bin = bin.clone();
    Box::new(move |core, at| {
        for (link, change) in changes {
            if let Some(replaced) = core.change_link(link, at, change) {
                // Without anybody there to drop it, it is dropped here.
                let _ = bin.send(replaced);
            }
        }
        for (rule, target) in targets {
            // Rules are never removed: they are all there.
            let _ = core.classifier.set_target(rule, target);
        }
    })
}
