//! A running network, shared by its scenario and the clients of the control API.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use longwire_engine::Nanos;
use longwire_hosts::{HostsReader, HostsReport};
use longwire_runtime::deciding::{Core, DeferredDrop, NetworkHandle};
use longwire_runtime::sync::locked;
use longwire_runtime::{FileAccess, FileLoader, RunReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::change_files::{ChangeFiles, ChangeLimits};
use super::changes::{ChangeRecord, Changes, EffectTime, Origin, SentChange};
use super::numbered::{Additions, Numbered};
use super::plan::{PreparedCommand, refused};
use super::scenario::ScenarioTime;
use super::state::NetworkState;
use longwire_topology::{Added, Change, ChangeTime, Command, Files, Problem};

/// Result of a change.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Changed")]
pub struct ChangeResult {
    /// Time of the change since the start of the run, in nanoseconds.
    pub at_ns: u64,
    /// Number of links whose options or state were set in at least one direction.
    pub links: usize,
    /// Number of added links and paths.
    pub added: usize,
    /// Number of removed links and paths.
    pub removed: usize,
    /// Valid values that are probably unintended.
    pub warnings: Vec<Problem>,
}

/// A running network. All methods can be called from any thread.
pub struct Controller {
    state: RwLock<NetworkState>,
    handle: NetworkHandle,
    /// Loads the plugins of changes, and aborts file reads when the run stops.
    loader: Arc<FileLoader>,
    /// Files and plugins named by the topology.
    own_files: Arc<BTreeSet<String>>,
    retired: Sender<DeferredDrop>,
    discarded: Mutex<Receiver<DeferredDrop>>,
    /// Serializes changes.
    turn: Mutex<()>,
    pub(super) scenario: Mutex<ScenarioTime>,
    /// Connection to other hosts, if the network spans several.
    hosts: OnceLock<HostsReader>,
}

/// A parsed and checked change.
struct CheckedChange {
    change: Change,
    at: Nanos,
    prepared: PreparedCommand,
    additions: Additions,
}

impl CheckedChange {
    fn result(&self) -> ChangeResult {
        let change = &self.change;
        ChangeResult {
            at_ns: self.at.as_nanos(),
            links: self.prepared.links,
            added: change.added.links.len() + change.added.paths.len(),
            removed: change.removed.len(),
            warnings: change.warnings.clone(),
        }
    }
}

/// Parts added to the topology for an incomplete change. Removed on drop, also during a panic.
struct Draft<'a> {
    controller: &'a Controller,
    /// `None` once the change is complete.
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
    /// Wraps a running network. `loader` loads the plugins of changes. Parts sent to `retired` are
    /// dropped by [`Controller::tidy`].
    pub fn new(
        network: Numbered,
        handle: NetworkHandle,
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
            scenario: Mutex::default(),
            hosts: OnceLock::new(),
        }
    }

    /// Returns whether the run's links can be changed; those of a replay cannot.
    pub fn takes_changes(&self) -> bool {
        self.handle.takes_orders()
    }

    /// Returns the time since the run's start.
    pub fn elapsed(&self) -> Nanos {
        self.handle.elapsed()
    }

    /// Converts a time since the start of the run to the arrival clock.
    pub fn clock_time(&self, after: Nanos) -> Nanos {
        self.handle.clock_time(after)
    }

    /// Returns the run's seed.
    pub fn seed(&self) -> u64 {
        self.handle.seed()
    }

    /// Returns the current report without links.
    pub fn report(&self) -> RunReport {
        RunReport {
            hosts: self.hosts(),
            ..self.handle.report()
        }
    }

    /// Sets the connection to other hosts. Later calls have no effect.
    pub fn follow_hosts(&self, hosts: HostsReader) {
        self.hosts.get_or_init(|| hosts);
    }

    /// Returns the report on the connection to other hosts.
    pub fn hosts(&self) -> Option<HostsReport> {
        self.hosts.get().map(HostsReader::report)
    }

    pub(super) fn handle(&self) -> &NetworkHandle {
        &self.handle
    }

    pub(super) fn retired(&self) -> &Sender<DeferredDrop> {
        &self.retired
    }

    /// Calls `look` with the network's current state.
    pub fn look<R>(&self, look: impl FnOnce(&Numbered) -> R) -> R {
        let now = self.elapsed();
        self.handle.refresh();
        let mut state = self.recorded();
        if state.is_behind(now) {
            drop(state);
            drop(self.settled(now));
            state = self.recorded();
        }
        look(&state.network)
    }

    /// Returns recent and scheduled changes in order of time.
    pub fn changes(&self) -> Changes {
        self.recorded().changes.clone().in_order()
    }

    /// Applies a change atomically. An immediate change has taken effect on return. A change may
    /// name files that `access` permits, and the topology's files.
    ///
    /// # Errors
    /// All problems of the change.
    pub fn change(&self, body: &Value, access: &FileAccess) -> Result<ChangeResult, Vec<Problem>> {
        let turn = locked(&self.turn);
        let checked = self.prepare(body, access)?;
        let mut changed = checked.result();
        let CheckedChange {
            change,
            at,
            prepared,
            additions,
        } = checked;
        let mut state = self.settled(self.elapsed());
        let (removed_rules, removals) = state.network.remove(&change.removed);
        let carriers = state.network.carriers();
        // Record the change before queuing it: from then on, it may affect frames.
        state.expect(at, prepared.effects);
        let effect = EffectTime::default();
        state.changes.remember(ChangeRecord {
            at_ns: at.as_nanos(),
            until_ns: None,
            by: Origin::Control,
            change: SentChange::from(body),
            links: prepared.links,
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
        self.apply(prepared.operations, &effect, change.time == ChangeTime::Now);
        changed.at_ns = effect.get().map_or(changed.at_ns, |at| at.as_nanos());
        drop(turn);
        Ok(changed)
    }

    /// Checks a change without applying it.
    ///
    /// # Errors
    /// The errors of [`Controller::change`].
    pub fn check(&self, body: &Value, access: &FileAccess) -> Result<ChangeResult, Vec<Problem>> {
        let _turn = locked(&self.turn);
        let checked = self.prepare(body, access)?;
        self.take_back(&checked.change.added);
        Ok(checked.result())
    }

    /// Records a scenario command that was part of the network from the start.
    pub fn note_given(&self, command: &Command, prepared: PreparedCommand) {
        let mut state = self.recorded_mut();
        state
            .changes
            .remember(ChangeRecord::of_scenario(command, &prepared));
        state.expect(command.at.unwrap_or(Nanos::ZERO), prepared.effects);
    }

    /// Queues a scenario command ahead of its time.
    ///
    /// # Errors
    /// If the command no longer applies to the network; for example, because one of its links has
    /// been removed.
    pub fn schedule(&self, command: &Command) -> Result<(), Box<Problem>> {
        let turn = locked(&self.turn);
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
                let done = ChangeRecord::of_scenario(command, &prepared);
                let effect = Arc::clone(&done.effect);
                state.changes.remember(done);
                state.expect(command.at.unwrap_or(Nanos::ZERO), prepared.effects);
                drop(state);
                self.apply(prepared.operations, &effect, false);
                drop(turn);
                Ok(())
            }
            Err(problem) => {
                state.changes.remember(ChangeRecord {
                    error: Some(problem.to_string()),
                    ..ChangeRecord::of_scenario(command, &PreparedCommand::default())
                });
                Err(problem)
            }
        }
    }

    /// Drops replaced parts, and removes links and paths that have drained. Must be called
    /// periodically.
    pub fn tidy(&self) {
        locked(&self.discarded).try_iter().for_each(drop);
        // Take the write lock only if needed, because a waiting writer blocks new readers.
        let is_drained = self.recorded().leaving.is_empty();
        if is_drained {
            return;
        }
        let leaving = std::mem::take(&mut self.recorded_mut().leaving);
        let mut left = Vec::new();
        for removals in leaving {
            left.extend(self.remove_drained(removals));
        }
        self.recorded_mut().leaving.extend(left);
    }

    /// Parses and checks a change, and numbers its additions. On error, releases the numbers. The
    /// caller holds `turn`.
    fn prepare(&self, body: &Value, access: &FileAccess) -> Result<CheckedChange, Vec<Problem>> {
        let files = self.files(access, ChangeLimits::REQUEST);
        loop {
            let made = self.try_check(body, &files);
            // If a file was missing, read it and retry.
            if made.is_ok() || !files.fetch() {
                return made;
            }
        }
    }

    fn files(&self, access: &FileAccess, limits: ChangeLimits) -> Arc<ChangeFiles> {
        let own = &self.own_files;
        Arc::new(ChangeFiles::new(&self.loader, access.clone(), own, limits))
    }

    fn try_check(
        &self,
        body: &Value,
        files: &Arc<ChangeFiles>,
    ) -> Result<CheckedChange, Vec<Problem>> {
        let now = self.elapsed();
        let mut state = self.settled(now);
        let NetworkState { network, .. } = &mut *state;
        let opens: Arc<dyn Files> = Arc::clone(files) as _;
        let change = network.topology.read_change(body, &network.moved, &opens)?;
        let at = due(change.time, now);
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
        // Hold only a read lock, because building models for 100,000 links takes time. `turn`
        // excludes other changes.
        let prepared = self.look(|network| {
            let additions = network.additions(&change.added, first, &**files);
            let additions = additions.map_err(|(link, error)| refused(&link, &error))?;
            let prepared = network.plan(&command, &**files, &self.retired)?;
            Ok((additions, prepared))
        });
        let (additions, prepared) = prepared.map_err(|problem: Box<Problem>| vec![*problem])?;
        draft.added = None;
        Ok(CheckedChange {
            change,
            at,
            prepared,
            additions,
        })
    }

    /// Reverts the additions of an incomplete change.
    fn take_back(&self, added: &Added) {
        let mut state = self.settled(self.elapsed());
        state.network.undo(added);
        state.network.topology.revert(added);
    }

    fn recorded(&self) -> RwLockReadGuard<'_, NetworkState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn recorded_mut(&self) -> RwLockWriteGuard<'_, NetworkState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the effects that are due, and returns the locked state.
    fn settled(&self, now: Nanos) -> RwLockWriteGuard<'_, NetworkState> {
        let mut state = self.recorded_mut();
        state.settle(now);
        state
    }
}

fn due(time: ChangeTime, now: Nanos) -> Nanos {
    match time {
        ChangeTime::Now => now,
        ChangeTime::At(at) => at,
        ChangeTime::In(after) => now.saturating_add(after),
    }
}
