//! Local copy of objects of the cluster, updated by a watch.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::runtime::watcher::Event;

use crate::plan::ResourceKey;

/// Objects by name, from the last complete list and the changes since.
///
/// An incomplete list is not visible: a watch that fails meanwhile leaves the objects unchanged.
#[derive(Debug)]
pub struct Cache<T> {
    contents: Mutex<Contents<T>>,
}

#[derive(Debug)]
struct Contents<T> {
    objects: BTreeMap<ResourceKey, T>,
    /// Incomplete list.
    incoming: BTreeMap<ResourceKey, T>,
    is_synced: bool,
}

impl<T> Default for Cache<T> {
    fn default() -> Cache<T> {
        Cache {
            contents: Mutex::new(Contents {
                objects: BTreeMap::new(),
                incoming: BTreeMap::new(),
                is_synced: false,
            }),
        }
    }
}

impl<T: Clone + PartialEq> Cache<T> {
    /// Returns all objects ordered by name, or `None` before the first complete list.
    pub fn objects(&self) -> Option<Vec<T>> {
        let contents = self.contents();
        let objects = || contents.objects.values().cloned().collect();
        contents.is_synced.then(objects)
    }

    /// Applies an event of a watch. Returns whether visible objects changed.
    pub fn apply(&self, event: Event<(ResourceKey, T)>) -> bool {
        let mut contents = self.contents();
        match event {
            Event::Apply((key, object)) => {
                let before = contents.objects.insert(key.clone(), object);
                before.as_ref() != contents.objects.get(&key)
            }
            Event::Delete((key, _)) => contents.objects.remove(&key).is_some(),
            Event::Init => {
                contents.incoming.clear();
                false
            }
            Event::InitApply((key, object)) => {
                contents.incoming.insert(key, object);
                false
            }
            Event::InitDone => {
                let objects = std::mem::take(&mut contents.incoming);
                let is_new = !contents.is_synced || contents.objects != objects;
                contents.objects = objects;
                contents.is_synced = true;
                is_new
            }
        }
    }

    fn contents(&self) -> MutexGuard<'_, Contents<T>> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, value: u32) -> (ResourceKey, u32) {
        let key = ResourceKey {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        (key, value)
    }

    #[test]
    fn an_incomplete_first_list_is_invisible() {
        let cache = Cache::default();
        assert!(!cache.apply(Event::Init));
        assert!(!cache.apply(Event::InitApply(named("a", 1))));
        assert_eq!(cache.objects(), None);
        assert!(cache.apply(Event::InitDone));
        assert_eq!(cache.objects(), Some(vec![1]));
    }

    #[test]
    fn a_broken_list_changes_nothing() {
        let cache = Cache::default();
        for event in [
            Event::Init,
            Event::InitApply(named("a", 1)),
            Event::InitApply(named("b", 2)),
            Event::InitDone,
        ] {
            cache.apply(event);
        }
        cache.apply(Event::Init);
        cache.apply(Event::InitApply(named("b", 2)));
        assert_eq!(cache.objects(), Some(vec![1, 2]));
        // A restarted watch discards the incomplete list.
        cache.apply(Event::Init);
        cache.apply(Event::InitApply(named("c", 3)));
        assert!(cache.apply(Event::InitDone));
        assert_eq!(cache.objects(), Some(vec![3]));
    }

    #[test]
    fn equal_objects_are_no_change() {
        let cache = Cache::default();
        cache.apply(Event::Init);
        cache.apply(Event::InitDone);
        assert!(cache.apply(Event::Apply(named("a", 1))));
        assert!(!cache.apply(Event::Apply(named("a", 1))));
        assert!(cache.apply(Event::Apply(named("a", 2))));
        assert!(cache.apply(Event::Delete(named("a", 2))));
        assert!(!cache.apply(Event::Delete(named("a", 2))));
    }
}
