//! Applies changes to a running fabric, in parts where there are many, with time for
//! frames between them.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use longwire_engine::{Link, Nanos};
use longwire_runtime::fabric::Operation;

use super::changes::EffectTime;
use super::controller::Controller;
use super::numbered::{Additions, Removals};

/// The most rules or links that are added or removed at once, before frames have
/// their turn.
const TOGETHER_MAX: usize = 512;

/// The time that frames have between two parts of a change.
const TURN: Nanos = Nanos::from_millis(1);

/// A change that is made at once is waited for so long.
const PATIENCE: Duration = Duration::from_secs(10);

impl Controller {
    /// Links and paths first, for without rules they carry nothing; then the
    /// rules.
    pub(super) fn apply_additions(&self, additions: Additions, at: Nanos) {
        let seed = self.seed();
        let epoch = self.handle().clock_time(at);
        let mut orders: Vec<Operation> = Vec::new();
        let links = additions.links.into_iter().map(|(id, mut config, cells)| {
            config.epoch = epoch;
            (id, Link::new_changeable(config, seed, id), cells)
        });
        for links in chunks(links.collect()) {
            orders.push(Box::new(move |core, _| {
                for (id, link, cells) in links {
                    core.add_link(id, link, cells);
                }
            }));
        }
        for paths in chunks(additions.paths) {
            orders.push(Box::new(move |core, _| {
                for (id, links) in paths {
                    // All of its links have been added.
                    let _: bool = core.add_path(id, &links);
                }
            }));
        }
        for rules in chunks(additions.rules) {
            orders.push(Box::new(move |core, _| {
                for (number, matcher, target) in rules {
                    // Its matcher was checked, and a classifier is full at 2^30.
                    let _ = core.add_rule(number, matcher, target);
                }
            }));
        }
        self.apply_in_turns(orders, at);
    }

    pub(super) fn remove_rules(&self, rules: &[u32], at: Nanos) {
        let orders = rules.chunks(TOGETHER_MAX).map(|rules| {
            let rules = rules.to_vec();
            let work: Operation = Box::new(move |core, _| {
                for rule in rules {
                    core.remove_rule(rule);
                }
            });
            work
        });
        self.apply_in_turns(orders.collect(), at);
    }

    /// One order after the other, with time for frames between them; waits
    /// until the last has been done.
    fn apply_in_turns(&self, orders: Vec<Operation>, at: Nanos) {
        let mut at = at;
        let last = orders.len().saturating_sub(1);
        for (nth, work) in orders.into_iter().enumerate() {
            if nth == last {
                self.apply(vec![(at, work)], &EffectTime::default(), true);
            } else {
                self.handle().order(Some(at), work)
            }
            at = at.saturating_add(TURN);
        }
    }

    /// Gives the fabric work, which sets `effect` to the time of the first operation; waits
    /// for that if asked to.
    pub(super) fn apply(
        &self,
        operations: Vec<(Nanos, Operation)>,
        effect: &EffectTime,
        wait: bool,
    ) {
        let (tell, answers) = channel();
        let start = self.handle().clock_time(Nanos::ZERO);
        for (at, work) in operations {
            let (tell, effect) = (tell.clone(), Arc::clone(effect));
            self.handle().order(
                Some(at),
                Box::new(move |core, now| {
                    work(core, now);
                    let _ = effect.set(now.saturating_sub(start));
                    // No caller waits for later work.
                    let _ = tell.send(());
                }),
            );
        }
        if wait {
            let _ = answers.recv_timeout(PATIENCE);
        }
    }

    /// Has the fabric take away what it can; says what is left.
    pub(super) fn take_away(&self, removals: Removals) -> Option<Removals> {
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
                    // Without anybody there to drop it, it is dropped here.
                    Some(removed) => retired.send(removed).is_err(),
                    None => true,
                });
                links
            })?);
        }
        (!left.paths.is_empty() || !left.links.is_empty()).then_some(left)
    }
}

/// Lists of at most [`TOGETHER_MAX`] items.
fn chunks<T>(items: Vec<T>) -> impl Iterator<Item = Vec<T>> {
    let mut items = items.into_iter().peekable();
    std::iter::from_fn(move || {
        items.peek()?;
        Some(items.by_ref().take(TOGETHER_MAX).collect())
    })
}
