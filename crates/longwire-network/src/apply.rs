//! Applies changes to a running network. Large changes are split into batches, so that they do not
//! delay frames.

use std::sync::Arc;
use std::sync::mpsc::channel;

use longwire_engine::{Link, Nanos};
use longwire_runtime::deciding::{Core, Operation};

use super::changes::EffectTime;
use super::controller::Controller;
use super::numbered::{Additions, Removals};

/// Maximum number of rules or links per batch.
const TOGETHER_MAX: usize = 512;

/// Time between two batches.
const BATCH_INTERVAL: Nanos = Nanos::from_millis(1);

impl Controller {
    /// Adds links and paths, then the rules that send frames to them.
    pub(super) fn apply_additions(&self, additions: Additions, at: Nanos) {
        let seed = self.seed();
        let epoch = self.handle().clock_time(at);
        let links = additions.links.into_iter().map(|(id, mut config, cells)| {
            config.epoch = epoch;
            (id, Link::new_changeable(config, seed, id), cells)
        });
        let mut orders = in_batches(links, |core, (id, link, cells)| {
            core.add_link(id, link, cells);
        });
        orders.extend(in_batches(additions.paths, |core, (id, links)| {
            // Cannot fail: the path's links have just been added.
            let _: bool = core.add_path(id, &links);
        }));
        orders.extend(in_batches(
            additions.rules,
            |core, (number, matcher, target)| {
                // Cannot fail: the matcher has been checked, and the classifier has room for 2^30
                // rules.
                let _ = core.add_rule(number, matcher, target);
            },
        ));
        self.apply_batches(orders, at);
    }

    pub(super) fn remove_rules(&self, rules: &[u32], at: Nanos) {
        let orders = in_batches(rules.iter().copied(), Core::remove_rule);
        self.apply_batches(orders, at);
    }

    /// Applies batches 1 ms apart and waits for the last one.
    fn apply_batches(&self, mut orders: Vec<Operation>, mut at: Nanos) {
        let Some(last) = orders.pop() else { return };
        for work in orders {
            self.handle().order(Some(at), work);
            at = at.saturating_add(BATCH_INTERVAL);
        }
        self.apply(vec![(at, last)], &EffectTime::default(), true);
    }

    /// Queues operations with their times. The first one sets `effect` to the time at which it
    /// runs; with `wait`, blocks until then.
    pub(super) fn apply(
        &self,
        operations: Vec<(Nanos, Operation)>,
        effect: &EffectTime,
        wait: bool,
    ) {
        let (done, completions) = channel();
        let start = self.handle().clock_time(Nanos::ZERO);
        for (at, work) in operations {
            let (done, effect) = (done.clone(), Arc::clone(effect));
            self.handle().order(
                Some(at),
                Box::new(move |core, now| {
                    work(core, now);
                    let _ = effect.set(now.saturating_sub(start));
                    // Fails for later operations, because the receiver waits only for the first.
                    let _ = done.send(());
                }),
            );
        }
        if wait {
            drop(done);
            self.handle().wait_for(&completions);
        }
    }

    /// Removes drained paths and links; returns those that have not drained yet.
    pub(super) fn remove_drained(&self, removals: Removals) -> Option<Removals> {
        let mut left = Removals::default();
        for paths in removals.paths.chunks(TOGETHER_MAX) {
            let mut paths = paths.to_vec();
            left.paths.extend(self.handle().ask(move |core| {
                paths.retain(|path| !core.remove_path(*path));
                paths
            })?);
        }
        for links in removals.links.chunks(TOGETHER_MAX) {
            let (retired, mut links) = (self.retired().clone(), links.to_vec());
            left.links.extend(self.handle().ask(move |core| {
                links.retain(|link| match core.remove_link(*link) {
                    // If the receiver no longer exists, this thread drops the part.
                    Some(removed) => retired.send(removed).is_err(),
                    None => true,
                });
                links
            })?);
        }
        (!left.paths.is_empty() || !left.links.is_empty()).then_some(left)
    }
}

/// Returns operations that each pass at most [`TOGETHER_MAX`] items to `take`.
fn in_batches<T: Send + 'static>(
    items: impl IntoIterator<Item = T>,
    take: impl Fn(&mut Core, T) + Copy + Send + 'static,
) -> Vec<Operation> {
    let mut items = items.into_iter().peekable();
    let mut operations: Vec<Operation> = Vec::new();
    while items.peek().is_some() {
        let batch: Vec<T> = items.by_ref().take(TOGETHER_MAX).collect();
        operations.push(Box::new(move |core, _| {
            batch.into_iter().for_each(|item| take(core, item));
        }));
    }
    operations
}
