//! A map by class. Classes are numbered without gaps, so arrays take the place of a hash table.

use longwire_topology::Class;

/// A value for each class; the default for a class without an entry.
#[derive(Debug, Default)]
pub(super) struct ByClass<T> {
    links: Vec<T>,
    paths: Vec<T>,
}

impl<T: Clone + Default> ByClass<T> {
    /// Returns an empty map with space for this many classes.
    pub(super) fn with_capacity(links: usize, paths: usize) -> ByClass<T> {
        ByClass {
            links: Vec::with_capacity(links),
            paths: Vec::with_capacity(paths),
        }
    }

    pub(super) fn get(&self, class: Class) -> Option<&T> {
        match class {
            Class::Link(link) => self.links.get(link as usize),
            Class::Path(path) => self.paths.get(path as usize),
        }
    }

    pub(super) fn entry(&mut self, class: Class) -> &mut T {
        let (values, index) = match class {
            Class::Link(link) => (&mut self.links, link as usize),
            Class::Path(path) => (&mut self.paths, path as usize),
        };
        if values.len() <= index {
            values.resize(index + 1, T::default());
        }
        &mut values[index]
    }

    /// Returns a class's value and replaces it with the default.
    pub(super) fn take(&mut self, class: Class) -> T {
        std::mem::take(self.entry(class))
    }
}
