//! All containers on a machine, from all sources, and the places searched.

use std::collections::BTreeSet;

use super::container::{Container, Place, Reading, State};
use super::engines::{self, Engine};
use super::machine::Machine;
use super::process::verify;
use super::{processes, storage};

/// A machine's containers, and the places searched.
#[derive(Debug, Default)]
pub struct Survey {
    /// Containers, including stopped ones.
    pub containers: Vec<Container>,
    /// Sockets and directories, in search order.
    pub places: Vec<Place>,
    /// Engines that list a container, by the container's ID.
    engines: Vec<(String, Engine)>,
    /// Whether containers known only from processes have been added.
    has_processes: bool,
}

impl Survey {
    /// Queries all sources except processes. PIDs are verified on demand.
    pub(super) fn new(machine: &Machine) -> Survey {
        let mut survey = Survey::default();
        let (engines, others) = engines::engines(machine);
        survey.places.extend(others);
        for engine in engines {
            let reading = engine.read();
            let ids = reading.containers.iter().flatten();
            let ids = ids.map(|container| (container.id.clone(), engine.clone()));
            survey.engines.extend(ids);
            survey.add(reading);
        }
        storage::read(machine).for_each(|reading| survey.add(reading));
        survey.drop_claimed();
        survey
    }

    /// Adds containers known only from processes, and determines all PIDs.
    pub(super) fn complete(&mut self, machine: &Machine) {
        for index in 0..self.containers.len() {
            self.inspect(index, machine);
        }
        self.add_processes(machine);
    }

    /// Adds containers found through processes. For known containers, the other sources take
    /// precedence.
    pub(super) fn add_processes(&mut self, machine: &Machine) {
        if std::mem::replace(&mut self.has_processes, true) {
            return;
        }
        let reading = processes::read(machine);
        self.places.push(reading.place());
        for found in reading.containers.unwrap_or_default() {
            let known = self.containers.iter_mut().find(|known| {
                let is_verified = known.user.is_none() || known.pid() == found.pid();
                known.id == found.id && is_verified
            });
            match known {
                None => self.containers.push(found),
                Some(known) => match known.state {
                    State::Stopped | State::Unverified { .. } => known.state = found.state,
                    State::Listed { .. } | State::Running { .. } => {}
                },
            }
        }
    }

    /// Verifies a container's process. The PID comes from a state directory, or from the engine
    /// that lists the container.
    pub(super) fn inspect(&mut self, index: usize, machine: &Machine) {
        let container = &self.containers[index];
        let State::Listed { pid } = container.state else {
            return;
        };
        let recorded = pid.map(|pid| verify(machine, container, pid, false));
        let state = match recorded {
            Some(State::Running { .. }) => recorded,
            _ => self.ask(container, machine).or(recorded),
        };
        self.containers[index].state = state.unwrap_or(State::Stopped);
    }

    fn ask(&self, container: &Container, machine: &Machine) -> Option<State> {
        let mut listings = self.engines.iter();
        let is_its =
            |(id, engine): &&(String, Engine)| *id == container.id && engine.user == container.user;
        let (_, engine) = listings.find(is_its)?;
        engine.state(container, machine).ok()
    }

    /// Adds one place's containers.
    fn add(&mut self, reading: Reading) {
        self.places.push(reading.place());
        for container in reading.containers.unwrap_or_default() {
            let known = self.containers.iter_mut();
            match known.into_iter().find(|known| known.is_same(&container)) {
                Some(known) => known.merge(container),
                None => self.containers.push(container),
            }
        }
    }

    /// Removes users' containers that have the ID of one of root's containers: users can write any
    /// ID into their directories.
    fn drop_claimed(&mut self) {
        let of_root = |container: &&Container| container.user.is_none();
        let ids = self.containers.iter().filter(of_root);
        let ids: BTreeSet<String> = ids.map(|container| container.id.clone()).collect();
        self.containers
            .retain(|container| container.user.is_none() || !ids.contains(&container.id));
    }
}
