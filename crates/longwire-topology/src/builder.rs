//! The plan while it is being put together: names, links and rules.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use longwire_engine::presets::Duplex;
use longwire_packet::bridge::{BridgeConfig, PortIndex};
use longwire_packet::classify::{Matcher, Order};
use longwire_runtime::OnPortLoss;

use super::fields::LINKS_MAX;
use super::matchers::PortNames;
use super::options::OptionStore;
use super::plan::{
    AttachPlan, Class, LinkPlan, PathPlan, PortPlan, RulePlan, Target, Topology, Unmatched, Way,
};
use super::problem::{Complaints, Place, Problem, meant};
use super::timeline::Timeline;
use crate::steps::Steps;

/// The parts of a topology that have been read.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    pub complaints: Complaints<'a>,
    pub store: OptionStore,
    /// Counts each link.
    pub steps: &'a Steps,
    /// The folder of files that the file names.
    pub folder: &'a Path,
    pub ports: Vec<PortPlan>,
    pub attached: Vec<AttachPlan>,
    pub pairs: Option<Vec<(PortIndex, PortIndex)>>,
    pub defaults: Duplex,
    pub templates: HashMap<String, Duplex>,
    pub links: Vec<LinkPlan>,
    /// The addresses of options whose combination has been judged.
    pub judged: HashSet<usize>,
    pub paths: Vec<PathPlan>,
    /// With their place in the file, which decides about their order.
    pub rules: Vec<(usize, RulePlan)>,
    /// The classes that matchers lead to, once all of a file are known and some are moved.
    pub matched: Option<HashSet<Class>>,
    pub names: HashMap<Arc<str>, Class>,
    /// Links that something leads to, by number.
    pub used: Vec<bool>,
}

/// The matchers of a link or a path, as texts.
#[derive(Clone, Debug, Default)]
pub(super) struct Matches {
    /// Upwards.
    pub forward: Vec<String>,
    /// Downwards; the same swapped when there is none.
    pub back: Vec<String>,
}

/// A link that is to be made.
#[derive(Clone, Debug)]
pub(super) struct NewLink {
    pub name: String,
    pub up: Arc<longwire_engine::LinkSpec>,
    pub down: Option<Arc<longwire_engine::LinkSpec>>,
    pub matches: Matches,
    /// Its place, for problems and for the order of rules.
    pub place: Place,
    pub position: usize,
}

impl<'a> Builder<'a> {
    /// Returns a builder without ports and links.
    pub fn new(complaints: Complaints<'a>, store: OptionStore) -> Builder<'a> {
        Builder {
            complaints,
            store,
            steps: Steps::ignored(),
            folder: Path::new(""),
            ports: Vec::new(),
            attached: Vec::new(),
            pairs: None,
            defaults: Duplex::default(),
            templates: HashMap::new(),
            links: Vec::new(),
            judged: HashSet::new(),
            paths: Vec::new(),
            rules: Vec::new(),
            matched: None,
            names: HashMap::new(),
            used: Vec::new(),
        }
    }

    /// Returns the topology, with defaults where the builder does not know better.
    ///
    /// # Errors
    /// The problems that were found.
    pub fn finish(
        mut self,
        bridge: BridgeConfig,
        timeline: Timeline,
    ) -> Result<Topology, Vec<Problem>> {
        self.rules.sort_by_key(|(position, _)| *position);
        let warnings = self.complaints.finish()?;
        Ok(Topology {
            seed: None,
            ports: self.ports,
            attached: self.attached,
            carriers: Vec::new(),
            bridge,
            links: self.links,
            paths: self.paths,
            rules: self.rules.into_iter().map(|(_, rule)| rule).collect(),
            order: Order::First,
            unmatched: Unmatched::Pass,
            on_port_loss: OnPortLoss::End,
            cluster: None,
            timeline,
            replaced: 0,
            warnings,
            names: self.names,
            defaults: self.defaults,
            templates: self.templates,
            folder: self.folder.to_owned(),
            files: Arc::new(self.store.files.named()),
        })
    }
}

impl Builder<'_> {
    /// Makes a link; false if there is something wrong with it.
    pub fn add_link(&mut self, link: NewLink) -> bool {
        self.steps.advance();
        for options in [Some(&link.up), link.down.as_ref()].into_iter().flatten() {
            // Links of one description share it.
            if !self.judged.insert(Arc::as_ptr(options) as usize) {
                continue;
            }
            for doubt in options.joint_doubts() {
                let field = format!("link.{}", doubt.option);
                self.complaints
                    .warn_once(link.place.clone(), field, doubt.message);
            }
        }
        let class = Class::Link(self.links.len() as u32);
        if self.links.len() as u64 >= LINKS_MAX {
            let reason = format!("there are more than {LINKS_MAX} links");
            self.complaints
                .refuse(link.place, "link", reason, "make fewer");
            return false;
        }
        let Some(name) = self.add_name(&link.name, class, link.place.clone(), "link.name") else {
            return false;
        };
        let shared = link.down.is_none();
        self.links.push(LinkPlan {
            name,
            up: link.up,
            down: link.down,
        });
        self.used.push(!link.matches.forward.is_empty());
        let at = (link.place, link.position);
        self.add_rules(class, &link.matches, shared, at, "link.match")
    }

    /// Takes a name for a link or a path; names are of one of them only, for
    /// a scenario may mean either.
    pub fn add_name(
        &mut self,
        name: &str,
        class: Class,
        place: Place,
        at: &str,
    ) -> Option<Arc<str>> {
        if !is_name(name) || direction(name).1.is_some() {
            let reason = format!("{name:?} cannot be a name");
            let remedy = "use letters, digits, '-', '_', '.', ':' and '/', without .up or .down \
                          at the end; {n}, {a} and {b} are for many links";
            self.complaints.refuse(place, at, reason, remedy);
            return None;
        }
        let name: Arc<str> = name.into();
        if self.names.contains_key(&name) {
            let reason = format!("the name '{name}' is used twice");
            self.complaints.refuse(
                place,
                at,
                reason,
                "give each link and path a name of its own",
            );
            return None;
        }
        self.names.insert(Arc::clone(&name), class);
        Some(name)
    }

    /// Makes the rules of a link or a path in both directions.
    pub fn add_rules(
        &mut self,
        class: Class,
        matches: &Matches,
        shared: bool,
        (place, position): (Place, usize),
        at: &str,
    ) -> bool {
        let back_way = if shared { Way::Up } else { Way::Down };
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
            self.push_rule(forward, class, Way::Up, position);
            match back {
                Some(Ok(back)) => self.push_rule(back, class, back_way, position),
                // Of a shared link, one that has no direction is all right.
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
            self.complaints.refuse(place.clone(), at, reason, remedy);
        }
        fine
    }

    fn port_names(&self) -> PortNames<'_> {
        PortNames {
            ports: &self.ports,
            pairs: self.pairs.as_deref(),
        }
    }

    fn push_rule(&mut self, matcher: Matcher, class: Class, way: Way, position: usize) {
        let target = Target { class, way };
        self.rules.push((position, RulePlan { matcher, target }));
    }

    /// Complains of a name that is of no link.
    pub fn no_link(&mut self, name: &str, place: impl Into<Place>, at: &str) {
        let mut known: Vec<&str> = self.links.iter().map(|link| &*link.name).collect();
        // Looking for what was meant among a million names takes too long.
        known.truncate(NAMES_COMPARED_MAX);
        let remedy = meant(name, known);
        self.complaints
            .refuse(place, at, format!("there is no link '{name}'"), remedy);
    }
}

/// The most names that are compared with an unknown one.
const NAMES_COMPARED_MAX: usize = 10_000;

/// Whether a text is printable, and so can name a port, a link, a path or a host. Invisible and
/// formatting characters (Unicode categories Cc, Cf, Zl, Zp, Co and Cn) would make two names look
/// alike.
pub fn is_name(text: &str) -> bool {
    let wrong = |c: char| c.is_whitespace() || is_unprintable(c) || "*?,{}\"'".contains(c);
    !text.is_empty() && !text.contains(wrong)
}

/// Whether the standard library escapes a character wherever it stands.
fn is_unprintable(c: char) -> bool {
    if c.is_ascii() {
        return c.is_control();
    }
    // At the start, a combining character would be escaped as well.
    format!("a{c}").escape_debug().count() > 2
}

/// Splits a name into the link and the direction of its suffix `.up` or `.down`.
pub fn direction(name: &str) -> (&str, Option<Way>) {
    for way in [Way::Up, Way::Down] {
        let bare = name.strip_suffix(way.name());
        if let Some(bare) = bare.and_then(|bare| bare.strip_suffix('.')) {
            return (bare, Some(way));
        }
    }
    (name, None)
}
