//! Transactional changes of a topology.

use std::sync::Arc;

use super::builder::Builder;
use super::change::Added;
use super::files::Files;
use super::options::OptionStore;
use super::plan::{Class, Topology};
use super::problem::Diagnostics;

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
    /// Keeps the additions, and returns them.
    pub fn commit(mut self) -> Added {
        self.committed = true;
        let rules = self.builder.topology.rules.len();
        self.builder.add_sorted_rules();
        let topology = &self.builder.topology;
        Added {
            links: self.links..topology.links.len(),
            paths: self.paths..topology.paths.len(),
            rules: rules..topology.rules.len(),
        }
    }

    /// Takes the problems found so far.
    pub fn take_diagnostics(&mut self) -> Diagnostics<'a> {
        std::mem::replace(&mut self.builder.diagnostics, Diagnostics::new("", ""))
    }

    fn roll_back(&mut self) {
        let topology = &mut self.builder.topology;
        let rules = topology.rules.len();
        topology.revert(&Added {
            links: self.links..topology.links.len(),
            paths: self.paths..topology.paths.len(),
            rules: rules..rules,
        });
        if std::thread::panicking() {
            // A name may have been registered without its link.
            let (links, paths) = (self.links, self.paths);
            let known = |class: &Class| match *class {
                Class::Link(link) => (link as usize) < links,
                Class::Path(path) => (path as usize) < paths,
            };
            topology.names.retain(|_, class| known(class));
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
    use crate::value::Table;
    use crate::{links, tree};

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
    fn a_panic_while_reading_restores_the_topology() {
        let mut topology = network();
        let before = parts(&topology);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut draft = topology.begin(Diagnostics::new("change", ADDED), &files());
            for item in tree::tables(&added(), "link") {
                links::read(&item, &mut draft.builder);
            }
            assert_eq!(draft.builder.topology.links.len(), 2);
            // The name of a link that is never added.
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
        let mut draft = topology.begin(Diagnostics::new("change", ADDED), &files());
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
