//! Changes of a running network: what `[[at]]` says, read now, and links and
//! paths that come and go.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use longwire_engine::Nanos;
use serde_json::Value;

use super::builder::Builder;
use super::fields;
use super::files::Files;
use super::glob;
use super::plan::{Class, Topology, Unmatched};
use super::problem::{Complaints, Problem, meant};
use super::timeline::Action;
use super::tree::{self, Placed};
use super::value::{JsonFault, JsonSource, Table};
use super::{events, links, paths};

/// The time of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// At once.
    #[default]
    Now,
    /// At a time since the start of the run.
    At(Nanos),
    /// So long from now.
    In(Nanos),
}

/// A change of a topology, read and checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Its time.
    pub moment: Moment,
    /// Actions on existing links.
    pub actions: Vec<Action>,
    /// Added links and paths, which the topology has already.
    pub added: Added,
    /// Removed links and paths, which the topology still has.
    pub removed: Vec<Class>,
    /// Valid values that are probably not meant.
    pub warnings: Vec<Problem>,
}

/// Numbers of what was added to a topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Of [`Topology::links`].
    pub links: Range<usize>,
    /// Of [`Topology::paths`].
    pub paths: Range<usize>,
    /// Of [`Topology::rules`].
    pub rules: Range<usize>,
}

impl Added {
    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && self.paths.is_empty()
    }
}

/// The name of a change in problems, in place of a file's.
const NAME: &str = "change";

impl Topology {
    /// Reads a change: a JSON object of the fields of [`fields::CHANGE`]. What
    /// it adds is added here; what it removes is for the caller to remove
    /// ([`Topology::remove`]). `moved` says whose frames take whose links, and
    /// `files` opens what it names.
    ///
    /// # Errors
    /// All that is wrong, by field. The topology is then as it was.
    pub fn read_change(
        &mut self,
        body: &Value,
        moved: &HashMap<Class, Class>,
        files: &Arc<dyn Files>,
    ) -> Result<Change, Vec<Problem>> {
        let refused = |field: &str, reason: &str, remedy: &str| {
            vec![Problem {
                file: NAME.to_owned(),
                field: field.to_owned(),
                reason: reason.to_owned(),
                remedy: remedy.to_owned(),
                is_malformed: true,
                ..Problem::default()
            }]
        };
        let Some(object) = body.as_object() else {
            let remedy = "send an object, as in {\"set\": {\"NAME\": {\"rate\": \"5mbit\"}}}";
            return Err(refused("", "the change is no JSON object", remedy));
        };
        let mut source = JsonSource::default();
        let file = source.read(object).map_err(|fault| match fault {
            JsonFault::Null { field, pointer } => {
                let remedy = "leave it out; only options under set can be null";
                let mut problems = refused(&field, "is null", remedy);
                problems[0].pointer = pointer;
                problems
            }
            JsonFault::TooLong => {
                let reason = "a name has more than 4 KiB, or a text more than 1 MiB";
                let remedy = "name links by a pattern, and data by a file";
                refused("", reason, remedy)
            }
        })?;
        let (folder, unmatched) = (self.folder.clone(), self.unmatched);
        let mut complaints = Complaints::of_json(NAME, source);
        if !files.may_quote() {
            complaints.quote_no_rows();
        }
        let mut draft = self.begin(complaints, &folder, files);
        let builder = &mut draft.builder;
        builder.complaints.checking_shape = true;
        tree::check(&fields::CHANGE, &file, "", &mut builder.complaints);
        builder.complaints.checking_shape = false;
        let mut change = Change::default();
        // What follows from a field that could not be read is no help.
        if builder.complaints.is_fine() {
            change = read(&file, unmatched, moved, builder);
        }
        match draft.take_complaints().finish() {
            Ok(warnings) => Ok(Change {
                warnings,
                added: draft.commit(),
                ..change
            }),
            Err(problems) => Err(problems),
        }
    }

    /// Undoes what a change added, if it was the last to add something.
    pub fn forget(&mut self, added: &Added) {
        let links = self.links.drain(added.links.start..).map(|link| link.name);
        let names: Vec<Arc<str>> = links
            .chain(self.paths.drain(added.paths.start..).map(|path| path.name))
            .collect();
        for name in names {
            self.names.remove(&name);
        }
        self.rules.truncate(added.rules.start);
    }

    /// Takes links and paths out. Others keep their numbers.
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

    /// Whether a link or path was removed.
    pub fn is_gone(&self, class: Class) -> bool {
        self.name_of(class).is_empty()
    }
}

fn read(
    file: &Table<'_>,
    unmatched: Unmatched,
    moved: &HashMap<Class, Class>,
    builder: &mut Builder,
) -> Change {
    let before = (builder.links.len(), builder.paths.len());
    if let Some(added) = tree::table(file, "add") {
        for item in tree::tables(added, "link") {
            links::read(&item, builder);
        }
        for item in tree::tables(added, "path") {
            paths::read(&item, builder);
        }
    }
    warn_of_unused(before.0, builder);
    let actions = events::actions(file, "", builder);
    let mut removed = Vec::new();
    for text in tree::texts(file, "remove") {
        removed.extend(fitting(&text, before, builder));
    }
    removed.sort_unstable();
    removed.dedup();
    check_removed(&removed, unmatched, moved, builder);
    let comes_or_goes = (builder.links.len(), builder.paths.len()) != before || !removed.is_empty();
    if actions.is_empty() && !comes_or_goes && builder.complaints.is_fine() {
        let remedy = "send set, up, down, pause, move, add or remove";
        builder
            .complaints
            .refuse(0..0, "", "nothing is changed", remedy);
    }
    let moment = moment(file, builder);
    if comes_or_goes && moment != Moment::Now {
        let reason = "links and paths come and go at once";
        let remedy = "leave at and in out; a link may be added down, and be up at a time";
        builder.complaints.refuse(0..0, "at", reason, remedy);
    }
    Change {
        moment,
        actions,
        removed,
        ..Change::default()
    }
}

fn moment(file: &Table<'_>, builder: &mut Builder) -> Moment {
    let complaints = &mut builder.complaints;
    let at = tree::unit(file, "at", "", complaints);
    let after = tree::unit(file, "in", "", complaints);
    match (at, after) {
        (Some(_), Some(_)) => {
            let reason = "there is an at and an in";
            complaints.refuse(0..0, "in", reason, "leave one of both out");
            Moment::Now
        }
        (Some(at), None) => Moment::At(at),
        (None, Some(after)) => Moment::In(after),
        (None, None) => Moment::Now,
    }
}

fn warn_of_unused(first: usize, builder: &mut Builder) {
    let unused = builder.used[first..].iter().position(|used| !used);
    if let Some(unused) = unused {
        let name = &builder.links[first + unused].name;
        let reason = format!("no frame crosses link '{name}': no matcher, no path");
        let remedy = "give it a match, or add a path that crosses it";
        builder
            .complaints
            .warn(0..0, "add.link.match", reason, remedy);
    }
}

/// Links and paths of a name, or those that fit a pattern; not what the same
/// change adds.
fn fitting(
    text: &Placed<&str>,
    (links, paths): (usize, usize),
    builder: &mut Builder,
) -> Vec<Class> {
    let pattern = text.value;
    let found: Vec<Class> = if glob::is_pattern(pattern) {
        let links = builder.links[..links].iter().enumerate();
        let links = links.filter(|(_, link)| !link.is_gone() && glob::fits(pattern, &link.name));
        let paths = builder.paths[..paths].iter().enumerate();
        let paths = paths.filter(|(_, path)| !path.is_gone() && glob::fits(pattern, &path.name));
        let links = links.map(|(index, _)| Class::Link(index as u32));
        links
            .chain(paths.map(|(index, _)| Class::Path(index as u32)))
            .collect()
    } else {
        let old = |class: &Class| match class {
            Class::Link(link) => (*link as usize) < links,
            Class::Path(path) => (*path as usize) < paths,
        };
        builder
            .names
            .get(pattern)
            .copied()
            .filter(old)
            .into_iter()
            .collect()
    };
    if found.is_empty() {
        let known = builder.links.iter().take(1000).map(|link| &*link.name);
        let remedy = meant(pattern, known.filter(|name| !name.is_empty()));
        let reason = format!("there is no link and no path '{pattern}'");
        builder
            .complaints
            .refuse(text.span.clone(), "remove", reason, remedy);
    }
    found
}

/// Complains of links that something needs which stays.
fn check_removed(
    removed: &[Class],
    unmatched: Unmatched,
    moved: &HashMap<Class, Class>,
    builder: &mut Builder,
) {
    let goes = |class: Class| removed.binary_search(&class).is_ok();
    let mut refused: Vec<(String, &str)> = Vec::new();
    for (index, path) in builder.paths.iter().enumerate() {
        let needed = path.hops.iter().find(|hop| goes(Class::Link(hop.link)));
        if let Some(hop) = needed
            && !path.is_gone()
            && !goes(Class::Path(index as u32))
        {
            let link = &builder.links[hop.link as usize].name;
            let reason = format!("path '{}' crosses link '{link}'", path.name);
            refused.push((reason, "remove the path too"));
        }
    }
    if let Unmatched::Link(link) = unmatched
        && goes(Class::Link(link))
    {
        let name = &builder.links[link as usize].name;
        let reason = format!("frames that no rule is about cross link '{name}'");
        refused.push((reason, "it must stay"));
    }
    for (class, to) in moved {
        if goes(*to) && !goes(*class) {
            let name = |class: Class| match class {
                Class::Link(link) => Arc::clone(&builder.links[link as usize].name),
                Class::Path(path) => Arc::clone(&builder.paths[path as usize].name),
            };
            let reason = format!("frames of '{}' take '{}'", name(*class), name(*to));
            refused.push((reason, "move them elsewhere first"));
        }
    }
    for (reason, remedy) in refused {
        builder.complaints.refuse(0..0, "remove", reason, remedy);
    }
}
