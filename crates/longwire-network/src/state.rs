//! The recorded state of a running network, with scheduled changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use longwire_engine::{LinkId, LinkSpec, Nanos, Part};

use super::changes::Changes;
use super::numbered::{Numbered, Removals};
use super::plan::Effect;

pub(super) struct NetworkState {
    pub network: Numbered,
    /// Scheduled changes by time, then in order of arrival.
    pending: BTreeMap<(Nanos, u64), Vec<Effect>>,
    given: u64,
    pub changes: Changes,
    /// Removed links and paths that have not drained yet.
    pub leaving: Vec<Removals>,
}

impl NetworkState {
    pub fn new(network: Numbered) -> NetworkState {
        NetworkState {
            network,
            pending: BTreeMap::new(),
            given: 0,
            changes: Changes::default(),
            leaving: Vec::new(),
        }
    }

    /// Returns whether a scheduled change is due.
    pub fn is_behind(&self, now: Nanos) -> bool {
        let first = self.pending.first_key_value();
        first.is_some_and(|((at, _), _)| *at <= now)
    }

    pub fn expect(&mut self, at: Nanos, effects: Vec<Effect>) {
        self.given += 1;
        self.pending.insert((at, self.given), effects);
    }

    pub fn settle(&mut self, now: Nanos) {
        while let Some(first) = self.pending.first_entry() {
            if first.key().0 > now {
                return;
            }
            for effect in first.remove() {
                self.network.apply(effect);
            }
        }
    }
}

impl Numbered {
    /// Records a change.
    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Options(links, over, resets) => {
                // Links that share options before the change share them afterwards.
                let mut made: HashMap<*const LinkSpec, Arc<LinkSpec>> = HashMap::new();
                let mut under = Vec::new();
                for LinkId(link) in links {
                    let link = &mut self.links[link as usize];
                    let options = Arc::clone(&link.options);
                    let key = Arc::as_ptr(&options);
                    let new = made.entry(key);
                    let new = new.or_insert_with(|| {
                        let mut new = options.overlay(&over);
                        for part in resets.iter().filter_map(|name| Part::named(name)) {
                            part.clear(&mut new);
                        }
                        Arc::new(new)
                    });
                    link.options = Arc::clone(new);
                    // Keep the options alive, because their address serves as a key.
                    under.push(options);
                }
            }
            Effect::State(links, state) => {
                for LinkId(link) in links {
                    self.links[link as usize].state = state;
                }
            }
            Effect::Moved(class, to) if class == to => {
                self.moved.remove(&class);
            }
            Effect::Moved(class, to) => {
                self.moved.insert(class, to);
            }
        }
    }
}
