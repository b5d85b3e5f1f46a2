//! Networks of a node. Each has a separate process, which is restarted after a failure.

mod files;
mod request;
mod supervisor;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

pub use files::NetworkFiles;
use longwire_capture::state_file;
use longwire_client::node::{NetworkEnded, NetworkSpec, NetworkView};
use longwire_control::node::{Networks, NodeRefusal};
pub(crate) use request::NetworkRequest;
use serde_json::Value;
use supervisor::Supervisor;
pub use supervisor::{NetworkCommand, NetworkRun};

use crate::names::check_request;
use crate::pool::Pool;

/// Maximum number of networks.
const NETWORKS_MAX: usize = 256;

/// Event callback; receives a network's name and a sentence.
type Notify = Arc<dyn Fn(&str, String) + Send + Sync>;

/// Networks of a node. On drop, all processes end, but the networks remain in their directory.
pub(crate) struct NodeNetworks {
    shared: Arc<NetworksShared>,
    /// Threads that have all privileges of the program, for child processes to inherit.
    pool: Arc<Pool>,
}

struct NetworksShared {
    directory: PathBuf,
    command: NetworkCommand,
    notify: Notify,
    /// Serializes creation and removal.
    turn: Mutex<()>,
    running: Mutex<BTreeMap<String, RunningNetwork>>,
}

/// A network with its supervisor.
struct RunningNetwork {
    supervisor: Arc<Supervisor>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for RunningNetwork {
    fn drop(&mut self) {
        self.supervisor.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl NodeNetworks {
    /// Starts the networks in a directory.
    pub fn start(
        directory: PathBuf,
        command: NetworkCommand,
        notify: Notify,
        pool: Arc<Pool>,
    ) -> NodeNetworks {
        let shared = NetworksShared {
            directory,
            command,
            notify,
            turn: Mutex::default(),
            running: Mutex::default(),
        };
        shared.restore();
        NodeNetworks {
            shared: Arc::new(shared),
            pool,
        }
    }
}

impl Drop for NodeNetworks {
    fn drop(&mut self) {
        let running = std::mem::take(&mut *self.shared.running());
        // Signal all processes before waiting for one.
        running
            .values()
            .for_each(|network| network.supervisor.stop());
    }
}

impl Networks for NodeNetworks {
    fn list(&self) -> Vec<NetworkView> {
        let running = self.shared.running();
        running.values().map(RunningNetwork::view).collect()
    }

    fn get(&self, name: &str) -> Option<NetworkView> {
        let running = self.shared.running();
        running.get(name).map(RunningNetwork::view)
    }

    fn put(&self, name: &str, spec: &NetworkSpec) -> Result<(bool, NetworkView), NodeRefusal> {
        check_request(name)?;
        let (shared, name, spec) = (Arc::clone(&self.shared), name.to_owned(), spec.clone());
        let put = self.pool.run(move || shared.put(&name, &spec));
        let fault = "internal error; the network was not started";
        put.unwrap_or_else(|| Err(NodeRefusal::Failed(fault.to_owned())))
    }

    fn remove(&self, name: &str) -> Option<NetworkEnded> {
        check_request(name).ok()?;
        let (shared, name) = (Arc::clone(&self.shared), name.to_owned());
        self.pool.run(move || shared.remove(&name)).flatten()
    }

    fn socket(&self, name: &str) -> Option<PathBuf> {
        let running = self.shared.running();
        // Before this state, the socket accepts connections, but requests get no response.
        let is_running = running.get(name)?.supervisor.view().is_running();
        is_running.then(|| self.shared.files(name).socket())
    }

    fn last_report(&self, name: &str) -> Option<Value> {
        check_request(name).ok()?;
        self.shared.files(name).last_report()
    }
}

impl NetworksShared {
    fn running(&self) -> MutexGuard<'_, BTreeMap<String, RunningNetwork>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self, name: &str) -> NetworkFiles {
        NetworkFiles::new(self.directory.join(name))
    }

    /// Starts the networks in the directory.
    fn restore(&self) {
        let entries = fs::read_dir(&self.directory).into_iter().flatten();
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let files = self.files(&name);
            state_file::sweep(files.directory());
            let begin = || -> Result<(), Box<dyn Error>> {
                Ok(self.begin(&name, NetworkRequest::read(&files.read()?)?)?)
            };
            if let Err(error) = begin() {
                let sentence = format!("cannot be restarted; remove it: {error}");
                (self.notify)(&name, sentence);
            }
        }
    }

    fn put(&self, name: &str, spec: &NetworkSpec) -> Result<(bool, NetworkView), NodeRefusal> {
        let files = self.files(name);
        let request = NetworkRequest::read(spec)?;
        let _turn = self.take_turn();
        let (old, count) = {
            let running = self.running();
            let network = running.get(name);
            if let Some(network) = network.filter(|old| old.supervisor.request.spec == *spec) {
                return Ok((false, network.view()));
            }
            (network.is_some(), running.len())
        };
        if !old && count >= NETWORKS_MAX {
            let error = format!("the node already has the maximum of {NETWORKS_MAX} networks");
            return Err(NodeRefusal::Conflict(error));
        }
        let failed = |error| NodeRefusal::storage("the network", &error);
        let staged = files.stage(&request).map_err(failed)?;
        // Until here, the previous network is unchanged.
        let ended = self.running().remove(name);
        let before = ended.as_ref().map(|old| old.supervisor.request.clone());
        drop(ended);
        let committed = staged.commit().map_err(failed);
        if let Err(refusal) = committed.and_then(|()| self.begin(name, request)) {
            self.resume(name, before);
            return Err(refusal);
        }
        let view = self.running().get(name).map(RunningNetwork::view);
        let fault = || NodeRefusal::Failed("the network ended immediately".to_owned());
        Ok((!old, view.ok_or_else(fault)?))
    }

    /// Restarts the previous network after a request has failed.
    fn resume(&self, name: &str, before: Option<NetworkRequest>) {
        let files = self.files(name);
        let resume = || -> Result<(), Box<dyn Error>> {
            let Some(before) = before else {
                return Ok(files.remove()?);
            };
            files.stage(&before)?.commit()?;
            Ok(self.begin(name, before)?)
        };
        if let Err(error) = resume() {
            (self.notify)(name, format!("ended and cannot be restarted: {error}"));
        }
    }

    /// Starts the supervisor of a network whose files have been written.
    fn begin(&self, name: &str, request: NetworkRequest) -> Result<(), NodeRefusal> {
        let supervisor = Arc::new(Supervisor::new(
            name,
            request,
            self.files(name),
            Arc::clone(&self.command),
            Arc::clone(&self.notify),
        ));
        let supervised = Arc::clone(&supervisor);
        let thread = thread::Builder::new().name("longwire-network".to_owned());
        let thread = thread.spawn(move || supervised.run());
        let thread = thread.map_err(|error| NodeRefusal::Failed(error.to_string()))?;
        let network = RunningNetwork {
            supervisor,
            thread: Some(thread),
        };
        self.running().insert(name.to_owned(), network);
        Ok(())
    }

    fn remove(&self, name: &str) -> Option<NetworkEnded> {
        let _turn = self.take_turn();
        let ended = self.running().remove(name);
        let was_there = ended.is_some();
        // Wait for the process to end, which writes its report.
        drop(ended);
        let files = self.files(name);
        let report = files.last_report();
        if let Err(error) = files.remove() {
            (self.notify)(name, format!("cannot remove it: {error}"));
        }
        was_there.then(|| NetworkEnded {
            name: name.to_owned(),
            report,
        })
    }
}

impl RunningNetwork {
    fn view(&self) -> NetworkView {
        self.supervisor.view().clone()
    }
}

#[cfg(test)]
mod tests;
