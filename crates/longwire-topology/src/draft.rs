//! Transactional changes of a topology.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use longwire_packet::bridge::Switching;

use super::builder::Builder;
use super::change::Added;
use super::files::Files;
use super::options::OptionStore;
use super::plan::Topology;
use super::problem::Diagnostics;
use crate::steps::Steps;

/// A topology that is being extended. Unless committed, it is restored on drop, also after
/// a panic.
pub(super) struct Draft<'t, 'a> {
    topology: &'t mut Topology,
    /// Holds the parts of the topology until then.
    pub builder: Builder<'a>,
    links: usize,
    paths: usize,
    committed: bool,
}

impl Topology {
    pub(super) fn begin<'t, 'a>(
        &'t mut self,
        diagnostics: Diagnostics<'a>,
        folder: &'a Path,
        files: &Arc<dyn Files>,
    ) -> Draft<'t, 'a> {
        let pairs = match &self.bridge.switching {
            Switching::Pairs(pairs) => Some(pairs.clone()),
            _ => None,
        };
        let (links, paths) = (self.links.len(), self.paths.len());
        let builder = Builder {
            diagnostics,
            store: OptionStore::with(Arc::clone(files)),
            steps: Steps::ignored(),
            folder,
            ports: std::mem::take(&mut self.ports),
            attached: std::mem::take(&mut self.attached),
            pairs,
            defaults: std::mem::take(&mut self.defaults),
            templates: std::mem::take(&mut self.templates),
            used: vec![true; links],
            links: std::mem::take(&mut self.links),
            judged: HashSet::new(),
            paths: std::mem::take(&mut self.paths),
            rules: Vec::new(),
            matched: None,
            names: std::mem::take(&mut self.names),
        };
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
    /// Keeps the additions, and returns them.
    pub fn commit(mut self) -> Added {
        self.committed = true;
        let rules = self.topology.rules.len();
        self.builder.rules.sort_by_key(|(position, _)| *position);
        let added = self.builder.rules.drain(..).map(|(_, rule)| rule);
        self.topology.rules.extend(added);
        self.give_back();
        Added {
            links: self.links..self.topology.links.len(),
            paths: self.paths..self.topology.paths.len(),
            rules: rules..self.topology.rules.len(),
        }
    }

    /// Takes the problems found so far.
    pub fn take_diagnostics(&mut self) -> Diagnostics<'a> {
        std::mem::replace(&mut self.builder.diagnostics, Diagnostics::new("", ""))
    }

    fn give_back(&mut self) {
        let (topology, builder) = (&mut *self.topology, &mut self.builder);
        topology.ports = std::mem::take(&mut builder.ports);
        topology.attached = std::mem::take(&mut builder.attached);
        topology.defaults = std::mem::take(&mut builder.defaults);
        topology.templates = std::mem::take(&mut builder.templates);
        topology.links = std::mem::take(&mut builder.links);
        topology.paths = std::mem::take(&mut builder.paths);
        topology.names = std::mem::take(&mut builder.names);
    }

    fn roll_back(&mut self) {
        let rules = self.topology.rules.len();
        self.give_back();
        self.topology.revert(&Added {
            links: self.links..self.topology.links.len(),
            paths: self.paths..self.topology.paths.len(),
            rules: rules..rules,
        });
        if std::thread::panicking() {
            // A name may have been registered without its link.
            let (links, paths) = (self.links, self.paths);
            let known = |class: super::Class| match class {
                super::Class::Link(link) => (link as usize) < links,
                super::Class::Path(path) => (path as usize) < paths,
            };
            self.topology.names.retain(|_, class| known(*class));
        }
    }
}

impl Drop for Draft<'_, '_> {
    fn drop(&mut self) {
        if !self.committed {
            self.roll_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::value::Table;
    use crate::{Class, links, tree};

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

    fn added() -> Table<'static> {
        let (file, _) = toml::de::DeTable::parse_recoverable(ADDED);
        file.into_inner().into()
    }

    fn files() -> Arc<dyn Files> {
        crate::files::StartFiles::any()
    }

    #[test]
    fn a_panic_in_the_reader_leaves_the_topology_as_it_was() {
        let mut topology = network();
        let before = parts(&topology);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut draft =
                topology.begin(Diagnostics::new("change", ADDED), Path::new(""), &files());
            for item in tree::tables(&added(), "link") {
                links::read(&item, &mut draft.builder);
            }
            assert_eq!(draft.builder.links.len(), 2);
            // The name of a link that is never added.
            draft.builder.names.insert("three".into(), Class::Link(2));
            std::panic::resume_unwind(Box::new("a fault in the reader"));
        }));
        assert!(panicked.is_err());
        assert_eq!(parts(&topology), before);
        assert_eq!(topology.named("one"), Some(Class::Link(0)));
    }

    #[test]
    fn committed_files_stay() {
        let mut topology = network();
        let mut draft = topology.begin(Diagnostics::new("change", ADDED), Path::new(""), &files());
        for item in tree::tables(&added(), "link") {
            links::read(&item, &mut draft.builder);
        }
        let added = draft.commit();
        assert_eq!((added.links, added.paths, added.rules), (1..2, 1..1, 4..6));
        assert_eq!(topology.named("two"), Some(Class::Link(1)));
        topology.revert(&Added {
            links: 1..2,
            paths: 1..1,
            rules: 4..6,
        });
        assert_eq!(parts(&topology), parts(&network()));
    }
}
