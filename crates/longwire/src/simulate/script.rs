//! A scenario that is executed in virtual time.

use std::sync::mpsc::{Sender, channel};

use longwire_engine::Nanos;
use longwire_runtime::fabric::{DeferredDrop, Simulation};
use longwire_runtime::{Faults, FileLoader};

use crate::Error;
use longwire_fabric::{ChangeRecord, Changes, Numbered, Scenario};

/// A scenario in virtual time.
pub struct Script<'a> {
    network: &'a Numbered,
    scenario: Scenario<'a>,
    loader: FileLoader,
    /// The receiver is dropped: replaced parts are freed at once, because no thread
    /// waits.
    retired: Sender<DeferredDrop>,
    made: Changes,
    /// The start of the scenario.
    epoch: Nanos,
}

impl<'a> Script<'a> {
    /// Returns a network's scenario that starts at `epoch`; plugins report to `faults`.
    pub fn new(network: &'a Numbered, epoch: Nanos, faults: &Faults) -> Script<'a> {
        let (retired, _) = channel();
        Script {
            network,
            scenario: Scenario::new(&network.topology().timeline),
            loader: FileLoader::reporting_to(faults),
            retired,
            made: Changes::default(),
            epoch,
        }
    }

    /// Returns the time at which the next command is due.
    pub fn next_at(&mut self) -> Option<Nanos> {
        let after = self.scenario.next_at()?;
        Some(self.epoch.saturating_add(after))
    }

    /// Executes the next command.
    ///
    /// # Errors
    /// If it names an item that has been removed since the topology was read.
    pub fn give(&mut self, simulation: &mut Simulation) -> Result<(), Error> {
        let Some(command) = self.scenario.next_due(Nanos::MAX) else {
            return Ok(());
        };
        let prepared = self.network.plan(&command, &self.loader, &self.retired);
        let prepared = prepared.map_err(|problem| {
            let at = command.at.unwrap_or(Nanos::ZERO);
            Error::failed(format!("scenario at {at}: {problem}"))
        })?;
        self.made
            .remember(ChangeRecord::of_scenario(&command, &prepared));
        for (at, work) in prepared.operations {
            simulation.order(at, work);
        }
        Ok(())
    }

    /// Returns the commands that were executed.
    pub fn made(&self) -> &Changes {
        &self.made
    }
}
