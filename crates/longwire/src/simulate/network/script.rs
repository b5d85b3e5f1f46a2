//! A scenario whose commands are given as virtual time comes to them.

use std::sync::mpsc::{Sender, channel};

use longwire_engine::Nanos;
use longwire_runtime::fabric::{Discarded, Simulation};
use longwire_runtime::{Faults, FileLoader};

use crate::Error;
use longwire_fabric::{Changes, Done, Numbered, Scenario};

/// A scenario, read as time goes on.
pub struct Script<'a> {
    network: &'a Numbered,
    scenario: Scenario<'a>,
    loader: FileLoader,
    /// Nobody is at its other end: what is replaced is dropped at once, for
    /// nothing waits.
    bin: Sender<Discarded>,
    made: Changes,
}

impl<'a> Script<'a> {
    /// The scenario of a network; plugins report to `faults`.
    pub fn new(network: &'a Numbered, faults: &Faults) -> Script<'a> {
        let (bin, _) = channel();
        Script {
            network,
            scenario: Scenario::new(&network.topology().timeline),
            loader: FileLoader::reporting_to(faults),
            bin,
            made: Changes::default(),
        }
    }

    /// When the next command is due, after the start.
    pub fn next_at(&mut self) -> Option<Nanos> {
        self.scenario.next_at()
    }

    /// Gives the next command.
    ///
    /// # Errors
    /// If what it needs has gone since the topology was read.
    pub fn give(&mut self, simulation: &mut Simulation) -> Result<(), Error> {
        let Some(command) = self.scenario.next_due(Nanos::MAX) else {
            return Ok(());
        };
        let prepared = self.network.works(&command, &self.loader, &self.bin);
        let prepared = prepared.map_err(|problem| {
            let at = command.at.unwrap_or(Nanos::ZERO);
            Error::Failed(format!("scenario at {at}: {problem}"))
        })?;
        self.made.remember(Done::of_scenario(&command, &prepared));
        for (at, work) in prepared.works {
            simulation.order(at, work);
        }
        Ok(())
    }

    /// The commands that were given.
    pub fn made(&self) -> &Changes {
        &self.made
    }
}
