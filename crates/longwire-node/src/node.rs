//! All attachments of a machine.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use longwire_client::node::{AttachmentSpec, AttachmentView, Detached};
use longwire_control::node::{Attachments, Networks, NodeRefusal};
use longwire_io::attach::Selection;
use longwire_network::{Controller, NetworkReport};
use longwire_runtime::RunConfig;

use crate::attached::AttachedLink;
use crate::entry::Entry;
use crate::networks::{NetworkCommand, NodeNetworks};
use crate::pool::Pool;
use crate::request::{self, AttachmentRequest};
use crate::store::{Facts, Store, StoredAttachment};
use crate::{LinkFailure, NodeError, files, names};

/// Polling interval for the attachments.
const POLL_PERIOD: Duration = Duration::from_millis(200);
/// Name of the networks' directory.
const NETWORKS: &str = "networks";
/// Maximum number of attachments.
const ATTACHMENTS_MAX: usize = 4096;

/// An event of an attachment or a network.
#[derive(Debug)]
pub enum Notice {
    /// The links of an attachment carry frames.
    Attached {
        /// Name of the attachment.
        name: String,
        /// Description of the target.
        place: String,
        /// Interfaces of the links.
        interfaces: Vec<String>,
    },
    /// An attachment is waiting for its target.
    Waits {
        /// Name of the attachment.
        name: String,
        /// Reason for the wait.
        reason: String,
    },
    /// An attachment's run has ended.
    Ended {
        /// Name of the attachment.
        name: String,
        /// Report of the run.
        report: Box<NetworkReport>,
    },
    /// Event of a network.
    Network {
        /// Name of the network.
        name: String,
        /// Sentence without its subject.
        sentence: String,
    },
    /// A file could not be written, removed or read, so the next node may lack this attachment or
    /// restore a removed one.
    Store {
        /// Attachment or file, and the reason.
        problem: String,
    },
}

/// Configuration of a node.
#[derive(Clone)]
pub struct NodeConfig {
    /// Directory in which attachments are stored.
    pub directory: PathBuf,
    /// Configuration of runs.
    pub run: RunConfig,
    /// Event callback, called from any thread.
    pub notify: Arc<dyn Fn(&Notice) + Send + Sync>,
    /// Command that runs a network; if `None`, the node runs no networks.
    pub network: Option<NetworkCommand>,
}

impl NodeConfig {
    /// Returns the default configuration with this directory and no callback.
    pub fn in_directory(directory: impl Into<PathBuf>) -> NodeConfig {
        NodeConfig {
            directory: directory.into(),
            run: RunConfig::default(),
            notify: Arc::new(|_| ()),
            network: None,
        }
    }
}

/// All attachments of a machine. On drop, removes all links, but attachments remain in their
/// directory.
pub struct Node {
    shared: Arc<NodeShared>,
    networks: Option<Arc<NodeNetworks>>,
    pool: Arc<Pool>,
    stop: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

struct NodeShared {
    config: NodeConfig,
    store: Store,
    entries: Mutex<BTreeMap<String, Arc<Entry>>>,
    /// Number of stored attachments while they are being restored; 0 afterwards.
    restoring: AtomicUsize,
}

impl Node {
    /// Starts a node and restores the attachments in its directory. Attachments with missing
    /// targets wait for them.
    ///
    /// # Errors
    /// If the directory is unusable, or the threads cannot be started.
    pub fn start(config: NodeConfig) -> Result<Node, NodeError> {
        let store = Store::open(&config.directory)?;
        let read = store.read().map_err(|source| NodeError::Directory {
            path: config.directory.clone(),
            source,
        });
        let (stored, strange) = read?;
        let shared = Arc::new(NodeShared {
            config,
            store,
            entries: Mutex::default(),
            restoring: AtomicUsize::new(stored.len()),
        });
        for problem in strange {
            shared.report(problem);
        }
        let pool = Arc::new(Pool::new()?);
        pool.run_all(stored.into_iter().map(|stored| {
            let shared = Arc::clone(&shared);
            move || shared.restore(stored)
        }));
        shared.restoring.store(0, Ordering::Relaxed);
        let networks = shared.networks(&pool);
        let (stop, stopped) = channel::<()>();
        let (kept, working) = (Arc::clone(&shared), Arc::clone(&pool));
        let keeper = thread::Builder::new().name("longwire-keeper".to_owned());
        let keeper = keeper.spawn(move || {
            while stopped.recv_timeout(POLL_PERIOD) == Err(RecvTimeoutError::Timeout) {
                kept.check_all(&working);
            }
        });
        Ok(Node {
            shared,
            networks,
            pool,
            stop: Some(stop),
            keeper: Some(keeper.map_err(NodeError::Thread)?),
        })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop = None;
        self.networks = None;
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
        let entries: Vec<_> = self.shared.entries().values().cloned().collect();
        self.pool.run_all(entries.into_iter().map(|entry| {
            let shared = Arc::clone(&self.shared);
            move || {
                let _turn = entry.take_turn();
                shared.release(&entry);
            }
        }));
    }
}

impl Attachments for Node {
    fn list(&self) -> Vec<AttachmentView> {
        let entries: Vec<_> = self.shared.entries().values().cloned().collect();
        entries.iter().map(|entry| entry.view()).collect()
    }

    fn get(&self, name: &str) -> Option<AttachmentView> {
        let entry = self.shared.entries().get(name).cloned();
        entry.map(|entry| entry.view())
    }

    fn put(
        &self,
        name: &str,
        spec: &AttachmentSpec,
    ) -> Result<(bool, AttachmentView), NodeRefusal> {
        names::check_request(name)?;
        let (shared, name, spec) = (Arc::clone(&self.shared), name.to_owned(), spec.clone());
        let put = self
            .pool
            .run(move || shared.put(&name, &AttachmentRequest::read(&spec)?));
        put.unwrap_or_else(|| Err(fault()))
    }

    fn remove(&self, name: &str) -> Option<Detached> {
        let (shared, name) = (Arc::clone(&self.shared), name.to_owned());
        self.pool.run(move || shared.remove(&name)).flatten()
    }

    fn controller(&self, name: &str) -> Option<Arc<Controller>> {
        let entry = self.shared.entries().get(name).cloned()?;
        let state = entry.state();
        state.link.as_ref().map(|link| Arc::clone(&link.controller))
    }

    fn networks(&self) -> Option<Arc<dyn Networks>> {
        Some(Arc::clone(self.networks.as_ref()?) as Arc<dyn Networks>)
    }
}

fn fault() -> NodeRefusal {
    NodeRefusal::Failed("internal error; the link was not attached".to_owned())
}

/// Refuses an attachment that selects the same traffic as another one.
fn check_others(
    entries: &BTreeMap<String, Arc<Entry>>,
    name: &str,
    request: &AttachmentRequest,
) -> Result<(), NodeRefusal> {
    let mut others = entries.values().filter(|entry| entry.name != name);
    let same = others.find(|entry| {
        let state = entry.state();
        !state.removed && state.request.is_for_same_traffic(request)
    });
    match same {
        Some(same) => Err(NodeRefusal::Conflict(format!(
            "'{0}' already has this traffic; change it (`longwire attach set {0}`), remove it, or \
             select part of the traffic (to, filter)",
            same.name
        ))),
        None => Ok(()),
    }
}

impl NodeShared {
    /// Starts the networks in the node's directory.
    fn networks(self: &Arc<NodeShared>, pool: &Arc<Pool>) -> Option<Arc<NodeNetworks>> {
        let command = self.config.network.clone()?;
        let directory = self.config.directory.join(NETWORKS);
        let shared = Arc::clone(self);
        let notify = Arc::new(move |name: &str, sentence| {
            let name = name.to_owned();
            shared.notify(&Notice::Network { name, sentence });
        });
        let networks = NodeNetworks::start(directory, command, notify, Arc::clone(pool));
        Some(Arc::new(networks))
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, notice: &Notice) {
        (self.config.notify)(notice);
    }

    /// Reports a problem with a file.
    fn report(&self, problem: String) {
        self.notify(&Notice::Store { problem });
    }

    /// Creates or changes an attachment.
    fn put(
        &self,
        name: &str,
        request: &AttachmentRequest,
    ) -> Result<(bool, AttachmentView), NodeRefusal> {
        loop {
            let mut entries = self.entries();
            check_others(&entries, name, request)?;
            let (entry, is_new) = match entries.get(name) {
                Some(entry) => (Arc::clone(entry), false),
                None if entries.len() >= ATTACHMENTS_MAX => {
                    let error = format!(
                        "the node already has the maximum of {ATTACHMENTS_MAX} \
                         attachments"
                    );
                    return Err(NodeRefusal::Conflict(error));
                }
                None => {
                    let entry = Entry::new(name.to_owned(), request.clone(), Facts::default());
                    let entry = Arc::new(entry);
                    entries.insert(name.to_owned(), Arc::clone(&entry));
                    (entry, true)
                }
            };
            // Lock the entry before other threads can find it, so that no thread uses a
            // half-created entry.
            let made = is_new.then(|| entry.take_turn());
            drop(entries);
            let _turn = made.unwrap_or_else(|| entry.take_turn());
            if entry.state().removed {
                continue;
            }
            if is_new {
                self.make(&entry, request)?;
            } else {
                self.change(&entry, request)?;
            }
            return Ok((is_new, entry.view()));
        }
    }

    /// Creates and stores an attachment. If that fails, removes it, unless it may wait.
    fn make(&self, entry: &Arc<Entry>, request: &AttachmentRequest) -> Result<(), NodeRefusal> {
        let attached = self.attach(entry);
        if let Err(failure) = &attached
            && request.spec.wait
        {
            self.wait_for(entry, failure);
        }
        let made = if attached.is_ok() || request.spec.wait {
            self.store(entry, request).map_err(LinkFailure::Store)
        } else {
            attached
        };
        let Err(failure) = made else {
            return Ok(());
        };
        self.discard(entry);
        Err(failure.into())
    }

    /// Changes options and selection of an attachment atomically.
    fn change(&self, entry: &Entry, request: &AttachmentRequest) -> Result<(), NodeRefusal> {
        let (old, running) = {
            let state = entry.state();
            let running = state.link.as_ref().map(|link| {
                let controller = Arc::clone(&link.controller);
                (
                    controller,
                    link.interfaces.clone(),
                    link.attached.selectors(),
                )
            });
            (state.request.clone(), running)
        };
        request.check_place_of(&old, &entry.name)?;
        let Some((controller, interfaces, selectors)) = running else {
            self.store(entry, request).map_err(LinkFailure::Store)?;
            entry.state().request = request.clone();
            return Ok(());
        };
        // Perform all steps that may fail before the first change.
        let access = files::access(request.spec.files);
        let change = request::change(&old.link, &request.link, &interfaces);
        if let Some(change) = &change {
            let checked = controller.check(change, &access);
            checked.map_err(NodeRefusal::Invalid)?;
        }
        let load = |selection: &Selection| {
            let programs = selectors.iter().map(|it| it.load(selection));
            let programs = programs.collect::<Result<Vec<_>, _>>();
            programs.map_err(LinkFailure::from)
        };
        let (new, before) = (&request.place.selection, &old.place.selection);
        let programs = (new != before).then(|| Ok::<_, LinkFailure>((load(new)?, load(before)?)));
        let (new, before) = programs.transpose()?.unzip();
        // Store before the change, so that a restarted node finds it.
        self.store(entry, request).map_err(LinkFailure::Store)?;
        let apply = || -> Result<(), NodeRefusal> {
            if let Some(new) = new {
                entry.state().select(new)?;
            }
            if let Some(change) = &change {
                let changed = controller.change(change, &access);
                changed.map_err(NodeRefusal::Invalid)?;
            }
            Ok(())
        };
        if let Err(refusal) = apply() {
            // Fails if the interface is gone, but then the link is gone too.
            let _ = before.map(|before| entry.state().select(before));
            self.keep(entry);
            return Err(refusal);
        }
        entry.state().request = request.clone();
        Ok(())
    }

    /// Removes an attachment that could not be created.
    fn discard(&self, entry: &Entry) {
        self.release(entry);
        // The file exists if the interface was to be fail-closed.
        let _ = self.store.remove(&entry.name);
        self.entries().remove(&entry.name);
    }

    /// Ends the link of an attachment that is being removed, or opens its interfaces.
    fn release(&self, entry: &Entry) {
        let (link, facts) = {
            let mut state = entry.state();
            state.removed = true;
            (state.link.take(), state.facts.clone())
        };
        match link {
            Some(link) => drop(self.end(&entry.name, link)),
            None => self.open(&entry.name, &facts),
        }
    }

    /// Opens interfaces that an earlier node left closed.
    fn open(&self, name: &str, facts: &Facts) {
        if let Err(error) = facts.open_others(&[]) {
            self.report(format!(
                "'{name}' is removed, but an interface stays closed: {error}"
            ));
        }
    }

    fn remove(&self, name: &str) -> Option<Detached> {
        let Some(entry) = self.entries().get(name).cloned() else {
            // The attachment may be stored, but not restored yet.
            if names::check_request(name).is_ok() {
                if let Some(stored) = self.store.read_one(name) {
                    self.open(name, &stored.facts);
                }
                let _ = self.store.remove(name);
            }
            return None;
        };
        let _turn = entry.take_turn();
        let (link, facts) = {
            let mut state = entry.state();
            if state.removed {
                return None;
            }
            state.removed = true;
            (state.link.take(), state.facts.clone())
        };
        if link.is_none() {
            self.open(name, &facts);
        }
        if let Err(error) = self.store.remove(name) {
            self.report(format!("cannot remove '{name}': {error}"));
        }
        self.entries().remove(name);
        let mut detached = link.map_or_else(Detached::default, |link| self.end(name, link));
        name.clone_into(&mut detached.name);
        Some(detached)
    }

    fn restore(&self, stored: StoredAttachment) {
        let request = match AttachmentRequest::read(&stored.spec) {
            Ok(request) => request,
            Err(error) => {
                return self.report(format!(
                    "cannot attach '{}' again; remove or recreate it: {error}",
                    stored.name
                ));
            }
        };
        let entry = Arc::new(Entry::new(stored.name.clone(), request, stored.facts));
        let _turn = entry.take_turn();
        self.entries().insert(stored.name, Arc::clone(&entry));
        self.attach_again(&entry);
    }

    /// Attaches the links of an attachment, or waits for its target. The caller has locked the
    /// entry.
    fn attach_again(&self, entry: &Entry) {
        match self.attach(entry) {
            // The target may have changed, and the next node needs the new facts.
            Ok(()) => self.keep(entry),
            Err(failure) => self.wait_for(entry, &failure),
        }
    }

    /// Returns the number of links that share ring memory: two per attachment, present or stored.
    fn sharing(&self) -> usize {
        let entries = self.entries().len();
        2 * entries.max(self.restoring.load(Ordering::Relaxed))
    }

    /// Attaches the links of an attachment. The caller has locked the entry.
    fn attach(&self, entry: &Entry) -> Result<(), LinkFailure> {
        let (request, facts) = {
            let state = entry.state();
            (state.request.clone(), state.facts.clone())
        };
        let store = |facts: &Facts| {
            entry.state().facts = facts.clone();
            self.store(entry, &request)
        };
        let config = RunConfig {
            seed: names::seed(&entry.name, self.config.run.seed),
            ..self.config.run.clone()
        };
        let sharing = self.sharing();
        let link = AttachedLink::attach(&request, facts, sharing, &config, store)?;
        let notice = Notice::Attached {
            name: entry.name.clone(),
            place: link.description.clone(),
            interfaces: link.interfaces.clone(),
        };
        let mut state = entry.state();
        // A reason means that the attachment has been waiting.
        state.returns += u64::from(state.reason.is_some());
        state.begin(link);
        drop(state);
        self.notify(&notice);
        Ok(())
    }

    /// Marks an attachment as waiting; sends one notice per reason.
    fn wait_for(&self, entry: &Entry, failure: &LinkFailure) {
        let reason = failure.to_string();
        let mut state = entry.state();
        let is_news = state.reason.as_ref() != Some(&reason);
        state.wait_for(reason.clone(), failure.is_taken());
        drop(state);
        if is_news {
            let name = entry.name.clone();
            self.notify(&Notice::Waits { name, reason });
        }
    }

    /// Checks all attachments that no other thread has locked. Ends links whose target is gone, and
    /// retries missing targets.
    fn check_all(self: &Arc<NodeShared>, pool: &Pool) {
        let entries: Vec<_> = self.entries().values().cloned().collect();
        for entry in entries {
            let Some(_turn) = entry.try_turn() else {
                continue;
            };
            let gone = {
                let mut state = entry.state();
                let gone = state.link.as_mut().and_then(AttachedLink::drop_lost);
                if gone.is_none() && !state.is_due() {
                    continue;
                }
                state.queued = true;
                state.reason = gone.clone().or(state.reason.take());
                gone.and_then(|reason| Some((state.link.take()?, reason)))
            };
            let link = gone.map(|(link, reason)| {
                let name = entry.name.clone();
                self.notify(&Notice::Waits { name, reason });
                link
            });
            let (shared, entry) = (Arc::clone(self), Arc::clone(&entry));
            pool.give(move || shared.renew(&entry, link));
        }
    }

    /// Ends links whose target is gone, and tries to attach them again.
    fn renew(&self, entry: &Entry, gone: Option<AttachedLink>) {
        let _turn = entry.take_turn();
        entry.state().queued = false;
        if let Some(link) = gone {
            self.end(&entry.name, link);
        }
        let needs_link = {
            let state = entry.state();
            !state.removed && state.link.is_none()
        };
        if needs_link {
            self.attach_again(entry);
        }
    }

    /// Ends links and reports their totals.
    fn end(&self, name: &str, link: AttachedLink) -> Detached {
        let report = link.end();
        let links = &report.run.links;
        let sum = |count: fn(&longwire_runtime::LinkReport) -> u64| links.iter().map(count).sum();
        let detached = Detached {
            name: name.to_owned(),
            packets_in: sum(|link| link.traffic.packets_in),
            packets_out: sum(|link| link.traffic.packets_out),
            dropped: sum(|link| link.drops.total()),
            in_flight: report.run.in_flight,
        };
        self.notify(&Notice::Ended {
            name: name.to_owned(),
            report: Box::new(report),
        });
        detached
    }

    /// Stores an attachment with a new specification.
    fn store(&self, entry: &Entry, request: &AttachmentRequest) -> io::Result<()> {
        self.store.write(&StoredAttachment {
            name: entry.name.clone(),
            spec: request.spec.clone(),
            facts: entry.state().facts.clone(),
        })
    }

    /// Stores an attachment; reports a failure as a notice.
    fn keep(&self, entry: &Entry) {
        let request = entry.state().request.clone();
        if let Err(error) = self.store(entry, &request) {
            self.report(format!("cannot store '{}': {error}", entry.name));
        }
    }
}

#[cfg(test)]
mod tests;
