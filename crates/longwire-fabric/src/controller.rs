//! A running network that may be read and changed by several at once: its
//! scenario, and the clients of its control API.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use longwire_engine::Nanos;
use longwire_hosts::{HostsReader, HostsReport};
use longwire_runtime::RunReport;
use longwire_runtime::fabric::{Core, DeferredDrop, FabricHandle};
use longwire_runtime::{FileAccess, FileLoader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::change_files::{ChangeFiles, ChangeLimits};
use super::changes::{Changes, Done, EffectTime, Origin, SentChange};
use super::numbered::{Additions, Numbered};
use super::plan::{Prepared, refused};
use super::scenario_clock::ScenarioClock;
use super::state::NetworkState;
use longwire_topology::{Added, Change, Command, Files, Moment, Problem};

/// The result of a change.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// The time of the change since the start of the run, in nanoseconds.
    pub at_ns: u64,
    /// The number of links whose options or state were set, in one direction or both.
    pub links: usize,
    /// The number of links and paths that were added.
    pub added: usize,
    /// The number of links and paths that were removed.
    pub removed: usize,
    /// Valid values that are probably not meant.
    pub warnings: Vec<Problem>,
}

/// A running network. Everything may be called from any thread.
pub struct Controller {
    state: RwLock<NetworkState>,
    handle: FabricHandle,
    /// Stops waiting for a file when the run is to stop.
    loader: Arc<FileLoader>,
    /// The files and plugins that the topology itself names.
    own_files: Arc<BTreeSet<String>>,
    retired: Sender<DeferredDrop>,
    discarded: Mutex<Receiver<DeferredDrop>>,
    /// One change after the other.
    turn: Mutex<()>,
    pub(super) scenario: ScenarioClock,
    /// The exchange with other hosts, if the network is divided among several.
    hosts: OnceLock<HostsReader>,
}

/// A change that is read and checked.
struct Ready {
    change: Change,
    at: Nanos,
    prepared: Prepared,
    additions: Additions,
}

/// The numbers that a change got that is not ready: taken back when this is
/// dropped, also by a panic.
struct Draft<'a> {
    controller: &'a Controller,
    /// `None` once the change is ready.
    added: Option<Added>,
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if let Some(added) = self.added.take() {
            self.controller.take_back(&added);
        }
    }
}

impl Controller {
    /// A network that runs. `loader` loads the plugins of its changes. What
    /// `retired` is given, [`Controller::tidy`] drops.
    pub fn new(
        network: Numbered,
        handle: FabricHandle,
        loader: FileLoader,
        (retired, discarded): (Sender<DeferredDrop>, Receiver<DeferredDrop>),
    ) -> Controller {
        let own_files = Arc::clone(&network.topology().files);
        Controller {
            state: RwLock::new(NetworkState::new(network)),
            handle,
            loader: Arc::new(loader),
            own_files,
            retired,
            discarded: Mutex::new(discarded),
            turn: Mutex::new(()),
            scenario: ScenarioClock::default(),
            hosts: OnceLock::new(),
        }
    }

    /// Whether the links can be changed; those of a replay cannot.
    pub fn takes_changes(&self) -> bool {
        self.handle.takes_orders()
    }

    /// Returns the time for which the network has run.
    pub fn elapsed(&self) -> Nanos {
        self.handle.elapsed()
    }

    /// Returns the time on the clock of arrivals at `after` since the start.
    pub fn clock_time(&self, after: Nanos) -> Nanos {
        self.handle.clock_time(after)
    }

    /// The seed of its chance.
    pub fn seed(&self) -> u64 {
        self.handle.seed()
    }

    /// Its ports, switch and all, as of now.
    pub fn report(&self) -> RunReport {
        RunReport {
            hosts: self.hosts(),
            ..self.handle.report()
        }
    }

    /// Adds the exchange with other hosts, once.
    pub fn follow_hosts(&self, hosts: HostsReader) {
        self.hosts.get_or_init(|| hosts);
    }

    /// Returns the report of the exchange with other hosts, if there are any.
    pub fn hosts(&self) -> Option<HostsReport> {
        self.hosts.get().map(HostsReader::report)
    }

    /// Its running fabric.
    pub(super) fn handle(&self) -> &FabricHandle {
        &self.handle
    }

    pub(super) fn retired(&self) -> &Sender<DeferredDrop> {
        &self.retired
    }

    /// Looks at the network as it is now.
    pub fn look<R>(&self, look: impl FnOnce(&Numbered) -> R) -> R {
        let now = self.elapsed();
        self.handle.refresh();
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if !state.is_behind(now) {
            return look(&state.network);
        }
        drop(state);
        drop(self.settled(now));
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        look(&state.network)
    }

    /// The changes that were made and will be, those of the last while, in the
    /// order of their times.
    pub fn changes(&self) -> Changes {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.changes.clone().in_order()
    }

    /// Makes a change: all of it, or nothing. One that is made at once has
    /// been made when this returns. It reads the files that `access` allows,
    /// and those that the topology names.
    ///
    /// # Errors
    /// All that is wrong with it, by field.
    pub fn change(&self, body: &Value, access: &FileAccess) -> Result<Changed, Vec<Problem>> {
        let turn = self.take_turn();
        let Ready {
            change,
            at,
            prepared,
            additions,
        } = self.make_ready(body, access)?;
        let mut state = self.settled(self.elapsed());
        let (removed_rules, removals) = state.network.remove(&change.removed);
        let carriers = state.network.carriers();
        let links = prepared.links;
        let mut changed = Changed {
            at_ns: at.as_nanos(),
            links,
            added: change.added.links.len() + change.added.paths.len(),
            removed: change.removed.len(),
            warnings: change.warnings,
        };
        // The state of links has it from here on, since frames may.
        state.expect(at, prepared.effects);
        let effect = EffectTime::default();
        state.remember(Done {
            at_ns: at.as_nanos(),
            until_ns: None,
            by: Origin::Control,
            change: SentChange::from(body),
            links,
            error: None,
            ramp: None,
            effect: Arc::clone(&effect),
        });
        if !removals.links.is_empty() || !removals.paths.is_empty() {
            state.leaving.push(removals);
        }
        drop(state);
        self.apply_additions(additions, at);
        if changed.added + changed.removed > 0 && !carriers.is_empty() {
            let follow = Box::new(|core: &mut Core, _| core.follow_carriers(carriers));
            self.handle.order(Some(at), follow);
        }
        self.remove_rules(&removed_rules, at);
        self.apply(prepared.operations, &effect, change.moment == Moment::Now);
        changed.at_ns = effect.get().map_or(changed.at_ns, |at| at.as_nanos());
        drop(turn);
        Ok(changed)
    }

    /// Says what [`Controller::change`] would say, and changes nothing.
    ///
    /// # Errors
    /// All that is wrong with it, by field.
    pub fn check(&self, body: &Value, access: &FileAccess) -> Result<Changed, Vec<Problem>> {
        let _turn = self.take_turn();
        let Ready {
            change,
            at,
            prepared,
            ..
        } = self.make_ready(body, access)?;
        self.take_back(&change.added);
        Ok(Changed {
            at_ns: at.as_nanos(),
            links: prepared.links,
            added: change.added.links.len() + change.added.paths.len(),
            removed: change.removed.len(),
            warnings: change.warnings,
        })
    }

    /// Notes a command of the scenario that the fabric was started with.
    pub fn note_given(&self, command: &Command, prepared: Prepared) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.remember(Done::of_scenario(command, &prepared));
        state.expect(command.at.unwrap_or(Nanos::ZERO), prepared.effects);
    }

    /// Gives the fabric a command of the scenario ahead of its time.
    ///
    /// # Errors
    /// Why it cannot be done: what it is about may have been removed.
    pub fn schedule(&self, command: &Command) -> Result<(), Box<Problem>> {
        let turn = self.take_turn();
        let files = self.files(&FileAccess::Any, ChangeLimits::SCENARIO);
        let prepared = loop {
            let prepared = self.look(|network| network.plan(command, &*files, &self.retired));
            if !files.fetch() {
                break prepared;
            }
        };
        let mut state = self.settled(self.elapsed());
        match prepared {
            Ok(prepared) => {
                let done = Done::of_scenario(command, &prepared);
                let effect = Arc::clone(&done.effect);
                state.remember(done);
                state.expect(command.at.unwrap_or(Nanos::ZERO), prepared.effects);
                drop(state);
                self.apply(prepared.operations, &effect, false);
                drop(turn);
                Ok(())
            }
            Err(problem) => {
                state.remember(Done {
                    error: Some(problem.to_string()),
                    ..Done::of_scenario(command, &Prepared::default())
                });
                Err(problem)
            }
        }
    }

    /// Drops what was replaced, and takes away what was removed and has no
    /// frames any more. To be called now and then.
    pub fn tidy(&self) {
        let discarded = self.discarded.lock();
        let discarded = discarded.unwrap_or_else(PoisonError::into_inner);
        discarded.try_iter().for_each(drop);
        drop(discarded);
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let is_done = state.leaving.is_empty();
        drop(state);
        // A waiting writer keeps others from reading, so write only when needed.
        if is_done {
            return;
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let leaving = std::mem::take(&mut state.leaving);
        drop(state);
        let mut left = Vec::new();
        for removals in leaving {
            left.extend(self.take_away(removals));
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.leaving.extend(left);
    }

    /// Reads and checks all that is to be done, and numbers what comes. When
    /// something is wrong, nothing has been numbered. To be called by who has
    /// the turn.
    fn make_ready(&self, body: &Value, access: &FileAccess) -> Result<Ready, Vec<Problem>> {
        let files = self.files(access, ChangeLimits::REQUEST);
        loop {
            let made = self.try_ready(body, &files);
            // What lacks a file is refused, and read again with it.
            if made.is_ok() || !files.fetch() {
                return made;
            }
        }
    }

    fn files(&self, access: &FileAccess, limits: ChangeLimits) -> Arc<ChangeFiles> {
        let files = ChangeFiles::new(&self.loader, access.clone(), &self.own_files, limits);
        Arc::new(files)
    }

    fn try_ready(&self, body: &Value, files: &Arc<ChangeFiles>) -> Result<Ready, Vec<Problem>> {
        let now = self.elapsed();
        let mut state = self.settled(now);
        let NetworkState { network, .. } = &mut *state;
        let opens: Arc<dyn Files> = Arc::clone(files) as _;
        let change = network.topology.read_change(body, &network.moved, &opens)?;
        let at = due(change.moment, now);
        let first = network.add(&change.added);
        drop(state);
        let mut draft = Draft {
            controller: self,
            added: Some(change.added.clone()),
        };
        let command = Command {
            at: Some(at),
            actions: change.actions.clone(),
            ramp: None,
        };
        // The models of a hundred thousand links take a while. Others may look
        // meanwhile, and no other change is made.
        let prepared = self.look(|network| {
            let additions = network.additions(&change.added, first, &**files);
            let additions = additions.map_err(|(link, error)| refused(&link, &error))?;
            let prepared = network.plan(&command, &**files, &self.retired)?;
            Ok((additions, prepared))
        });
        let (additions, prepared) = prepared.map_err(|problem: Box<Problem>| vec![*problem])?;
        draft.added = None;
        Ok(Ready {
            change,
            at,
            prepared,
            additions,
        })
    }

    /// Takes back what was numbered for a change.
    fn take_back(&self, added: &Added) {
        let mut state = self.settled(self.elapsed());
        state.network.undo(added);
        state.network.topology.forget(added);
    }

    fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of the network, brought up to this time.
    fn settled(&self, now: Nanos) -> RwLockWriteGuard<'_, NetworkState> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.settle(now);
        state
    }
}

fn due(moment: Moment, now: Nanos) -> Nanos {
    match moment {
        Moment::Now => now,
        Moment::At(at) => at,
        Moment::In(after) => now.saturating_add(after),
    }
}
