//! Changes to a running network: the actions of `[[at]]`, plus links and paths to add or remove.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use longwire_engine::Nanos;
use serde_json::Value;

use super::builder::Builder;
use super::files::Files;
use super::options::OptionStore;
use super::plan::{Class, Topology, Unmatched};
use super::problem::{Diagnostics, Problem, suggestion};
use super::timeline::Action;
use super::tree::{self, Placed};
use super::value::{JsonSource, Table};
use super::{events, fields, glob, links};

/// When a change applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeTime {
    /// Immediately.
    #[default]
    Now,
    /// At a time since the start of the run.
    At(Nanos),
    /// After a delay, counted from now.
    In(Nanos),
}

/// A parsed and checked change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// When the change applies.
    pub time: ChangeTime,
    /// Actions on existing links.
    pub actions: Vec<Action>,
    /// Added links and paths, which are already part of the topology.
    pub added: Added,
    /// Links and paths to remove, which are still part of the topology.
    pub removed: Vec<Class>,
    /// Warnings: valid values that are probably unintended.
    pub warnings: Vec<Problem>,
}

/// Indices of the parts added by a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// In [`Topology::links`].
    pub links: Range<usize>,
    /// In [`Topology::paths`].
    pub paths: Range<usize>,
    /// In [`Topology::rules`].
    pub rules: Range<usize>,
}

impl Added {
    /// Returns whether no link or path was added.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && self.paths.is_empty()
    }
}

/// Name shown in problems instead of a file name.
const NAME: &str = "change";

impl Topology {
    /// Reads a change: a JSON object with the fields in [`fields::CHANGE`]. Adds links and paths to
    /// the topology, but leaves removals to the caller ([`Topology::remove`]). `moved` maps each
    /// moved class to the class whose links its frames cross; `files` opens the files named in the
    /// change.
    ///
    /// # Errors
    /// All problems; the topology is then unchanged.
    pub fn read_change(
        &mut self,
        body: &Value,
        moved: &HashMap<Class, Class>,
        files: &Arc<dyn Files>,
    ) -> Result<Change, Vec<Problem>> {
        let mut source = JsonSource::of(NAME);
        let file = source
            .read(body.as_object())
            .map_err(|fault| vec![*fault])?;
        let mut diagnostics = Diagnostics::of_json(source);
        diagnostics.may_quote_rows = files.may_quote();
        let mut draft = self.begin(diagnostics, files);
        let builder = &mut draft.builder;
        builder.diagnostics.checking_shape = true;
        tree::check(&fields::CHANGE, &file, "", &mut builder.diagnostics);
        builder.diagnostics.checking_shape = false;
        let mut change = Change::default();
        // Values of an invalid shape would only cause further errors.
        if builder.diagnostics.has_no_errors() {
            change = read(&file, moved, builder);
        }
        Ok(Change {
            warnings: draft.take_diagnostics().finish()?,
            added: draft.commit(),
            ..change
        })
    }

    /// Removes the links, paths and rules of the last addition.
    pub fn revert(&mut self, added: &Added) {
        let links = self.links.drain(added.links.start..).map(|link| link.name);
        let paths = self.paths.drain(added.paths.start..).map(|path| path.name);
        for name in links.chain(paths) {
            self.names.remove(&name);
        }
        self.rules.truncate(added.rules.start);
    }

    /// Removes links and paths. The remaining ones keep their indices.
    pub fn remove(&mut self, classes: &[Class]) {
        let nothing: Arc<str> = Arc::from("");
        for class in classes {
            let name = match class {
                Class::Link(link) => &mut self.links[*link as usize].name,
                Class::Path(path) => &mut self.paths[*path as usize].name,
            };
            let name = std::mem::replace(name, Arc::clone(&nothing));
            self.names.remove(&name);
        }
    }

    /// Returns whether a link or path has been removed.
    pub fn is_removed(&self, class: Class) -> bool {
        self.name_of(class).is_empty()
    }
}

fn read(file: &Table<'_>, moved: &HashMap<Class, Class>, builder: &mut Builder) -> Change {
    let before = (builder.topology.links.len(), builder.topology.paths.len());
    if let Some(added) = tree::table(file, "add") {
        links::read_all(added, builder);
    }
    warn_of_unused(before.0, builder);
    let actions = events::actions(file, "", builder);
    let mut removed = Vec::new();
    for text in tree::texts(file, "remove") {
        removed.extend(fitting(&text, before, builder));
    }
    removed.sort_unstable();
    removed.dedup();
    check_removed(&removed, moved, builder);
    let comes_or_goes = (builder.topology.links.len(), builder.topology.paths.len()) != before
        || !removed.is_empty();
    if actions.is_empty() && !comes_or_goes && builder.diagnostics.has_no_errors() {
        let remedy = "send set, on, off, pause, move, add or remove";
        builder.refuse(0..0, "", "empty change", remedy);
    }
    let time = time(file, builder);
    if comes_or_goes && time != ChangeTime::Now {
        let reason = "adding or removing links and paths cannot be scheduled";
        let remedy = "remove at and in; to use a link later, add it turned off, and turn it on \
                      later";
        builder.refuse(0..0, "at", reason, remedy);
    }
    Change {
        time,
        actions,
        removed,
        ..Change::default()
    }
}

fn time(file: &Table<'_>, builder: &mut Builder) -> ChangeTime {
    let diagnostics = &mut builder.diagnostics;
    let at = tree::unit(file, "at", "", diagnostics);
    let after = tree::unit(file, "in", "", diagnostics);
    match (at, after) {
        (Some(_), Some(_)) => {
            diagnostics.refuse(0..0, "in", "both at and in are given", "remove one");
            ChangeTime::Now
        }
        (Some(at), None) => ChangeTime::At(at),
        (None, Some(after)) => ChangeTime::In(after),
        (None, None) => ChangeTime::Now,
    }
}

fn warn_of_unused(first: usize, builder: &mut Builder) {
    let unused = builder.used[first..].iter().position(|used| !used);
    if let Some(unused) = unused {
        let name = &builder.topology.links[first + unused].name;
        let reason =
            format!("no frame crosses link '{name}': it has no matcher, and no path uses it");
        let remedy = "give it a match, or add a path through it";
        let diagnostics = &mut builder.diagnostics;
        diagnostics.warn(0..0, "add.link.match", reason, remedy);
    }
}

/// Returns the links and paths with this name or matching this pattern, except those added by the
/// same change.
fn fitting(
    text: &Placed<&str>,
    (links, paths): (usize, usize),
    builder: &mut Builder,
) -> Vec<Class> {
    let pattern = text.value;
    let topology = &builder.topology;
    let found: Vec<Class> = if glob::is_pattern(pattern) {
        let links = (0..links as u32).map(Class::Link);
        let classes = links.chain((0..paths as u32).map(Class::Path));
        let fits = |name: &str| !name.is_empty() && glob::fits(pattern, name);
        classes
            .filter(|class| fits(topology.name_of(*class)))
            .collect()
    } else {
        let found = topology.named(pattern);
        let found = found.filter(|class| class.is_before(links, paths));
        found.into_iter().collect()
    };
    if found.is_empty() {
        let remedy = suggestion(pattern, topology.link_names().take(1000));
        let reason = format!("no link or path named '{pattern}'");
        builder.refuse(text.span.clone(), "remove", reason, remedy);
    }
    found
}

/// Reports removed links that are still in use.
fn check_removed(removed: &[Class], moved: &HashMap<Class, Class>, builder: &mut Builder) {
    let goes = |class: Class| removed.binary_search(&class).is_ok();
    let mut refused: Vec<(String, &str)> = Vec::new();
    for (index, path) in builder.topology.paths.iter().enumerate() {
        if let Some(hop) = path.hops.iter().find(|hop| goes(Class::Link(hop.link)))
            && !path.is_removed()
            && !goes(Class::Path(index as u32))
        {
            let link = &builder.topology.links[hop.link as usize].name;
            let reason = format!("path '{}' crosses link '{link}'", path.name);
            refused.push((reason, "remove the path too"));
        }
    }
    if let Unmatched::Link(link) = builder.topology.unmatched
        && goes(Class::Link(link))
    {
        let name = &builder.topology.links[link as usize].name;
        let reason = format!("unmatched frames cross link '{name}'");
        refused.push((reason, "it cannot be removed"));
    }
    for (class, to) in moved {
        if goes(*to) && !goes(*class) {
            let name = |class: Class| builder.topology.name_of(class);
            let reason = format!("frames of '{}' take '{}'", name(*class), name(*to));
            refused.push((reason, "move them elsewhere first"));
        }
    }
    for (reason, remedy) in refused {
        builder.refuse(0..0, "remove", reason, remedy);
    }
}

/// A topology being extended. Unless committed, it is restored on drop, even during a panic.
pub(super) struct Draft<'t, 'a> {
    topology: &'t mut Topology,
    /// Contains the parts of the topology until the draft is committed or dropped.
    pub builder: Builder<'a>,
    links: usize,
    paths: usize,
    committed: bool,
}

impl Topology {
    pub(super) fn begin<'t, 'a>(
        &'t mut self,
        diagnostics: Diagnostics<'a>,
        files: &Arc<dyn Files>,
    ) -> Draft<'t, 'a> {
        let (links, paths) = (self.links.len(), self.paths.len());
        let mut builder = Builder::new(diagnostics, OptionStore::with(Arc::clone(files)));
        builder.topology = std::mem::take(self);
        builder.used = vec![true; links];
        Draft {
            topology: self,
            builder,
            links,
            paths,
            committed: false,
        }
    }
}

impl<'a> Draft<'_, 'a> {
    /// Keeps the additions and returns them.
    pub fn commit(mut self) -> Added {
        self.committed = true;
        let rules = self.builder.topology.rules.len();
        self.builder.add_sorted_rules();
        self.added(rules)
    }

    /// Returns the indices of the additions; rules start at `rules`.
    fn added(&self, rules: usize) -> Added {
        let topology = &self.builder.topology;
        Added {
            links: self.links..topology.links.len(),
            paths: self.paths..topology.paths.len(),
            rules: rules..topology.rules.len(),
        }
    }

    /// Takes the diagnostics, leaving none.
    pub fn take_diagnostics(&mut self) -> Diagnostics<'a> {
        std::mem::replace(&mut self.builder.diagnostics, Diagnostics::new("", ""))
    }

    fn roll_back(&mut self) {
        let added = self.added(self.builder.topology.rules.len());
        let topology = &mut self.builder.topology;
        topology.revert(&added);
        if std::thread::panicking() {
            // A panic may occur between registering a name and adding its link.
            let (links, paths) = (self.links, self.paths);
            topology
                .names
                .retain(|_, class| class.is_before(links, paths));
        }
    }
}

impl Drop for Draft<'_, '_> {
    fn drop(&mut self) {
        if !self.committed {
            self.roll_back();
        }
        *self.topology = std::mem::take(&mut self.builder.topology);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::Path;

    use super::*;

    const NETWORK: &str = "[ports]\na = \"packet:a\"\nb = \"packet:b\"\n\
        [templates.slow]\nrate = \"1mbit\"\n\
        [[link]]\nname = \"one\"\nmatch = \"src=10.0.0.1\"\n\
        [[path]]\nname = \"p\"\nvia = [\"one\"]\nmatch = \"src=10.0.0.2\"\n";

    const ADDED: &str = "[[link]]\nname = \"two\"\nmatch = \"src=10.0.0.3\"\n";

    fn parts(topology: &Topology) -> String {
        let mut names: Vec<_> = topology.names.iter().collect();
        names.sort();
        format!(
            "{:?} {:?} {:?} {:?} {:?} {names:?}",
            topology.ports, topology.links, topology.paths, topology.rules, topology.templates
        )
    }

    fn network() -> Topology {
        let topology = Topology::parse("net.toml", NETWORK, Path::new(""));
        topology.expect("a topology")
    }

    /// Returns an uncommitted draft that adds the links in `ADDED`.
    fn draft(topology: &mut Topology) -> Draft<'_, 'static> {
        let files = crate::files::StartFiles::any();
        let mut draft = topology.begin(Diagnostics::new("change", ADDED), &files);
        let (file, _) = toml::de::DeTable::parse_recoverable(ADDED);
        for item in tree::tables(&file.into_inner().into(), "link") {
            links::read(&item, &mut draft.builder);
        }
        draft
    }

    #[test]
    fn a_panic_while_reading_restores_the_topology() {
        let mut topology = network();
        let before = parts(&topology);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut draft = draft(&mut topology);
            assert_eq!(draft.builder.topology.links.len(), 2);
            // Simulate a name whose link has not been added yet.
            draft
                .builder
                .topology
                .names
                .insert("three".into(), Class::Link(2));
            std::panic::resume_unwind(Box::new("a fault in the reader"));
        }));
        assert!(panicked.is_err());
        assert_eq!(parts(&topology), before);
        assert_eq!(topology.named("one"), Some(Class::Link(0)));
    }

    #[test]
    fn committed_additions_stay() {
        let mut topology = network();
        let added = draft(&mut topology).commit();
        let expected = Added {
            links: 1..2,
            paths: 1..1,
            rules: 4..6,
        };
        assert_eq!(added, expected);
        assert_eq!(topology.named("two"), Some(Class::Link(1)));
        topology.revert(&added);
        assert_eq!(parts(&topology), parts(&network()));
    }
}
