//! Read-only control API of the commands that send frames at scheduled times.

use std::sync::Arc;
use std::sync::mpsc::channel;

use longwire_control::{Bound, Server};
use longwire_io::rights::Capability;
use longwire_network::{Controller, Numbered};
use longwire_runtime::replay::ReplayOutput;
use longwire_runtime::{FileLoader, RunningNetwork};
use longwire_topology::Topology;

use super::{run_network, topologies};
use crate::cli::PumpArgs;
use crate::{Error, Globals, rights};

/// A replay's control API before the start.
pub(super) struct ReplayControl {
    bound: Bound,
    /// Links of the outputs; `None` without addresses.
    links: Option<Numbered>,
}

impl ReplayControl {
    /// Binds the addresses. If there are any, numbers the outputs for clients. With `ways`, the
    /// outputs are the two directions of a conversation.
    ///
    /// # Errors
    /// If an address cannot be bound.
    pub fn bind(
        pump: &PumpArgs,
        outputs: &mut [ReplayOutput],
        ways: bool,
    ) -> Result<ReplayControl, Error> {
        let bound = longwire_control::bind(&pump.control.config())?;
        if !pump.control.is_given() {
            return Ok(ReplayControl { bound, links: None });
        }
        let named = outputs.iter().map(|output| output.link.name.clone());
        let topology = Topology::outputs(named.zip(pump.specs(ways)?));
        let links = Numbered::new(topology.map_err(topologies::refused)?);
        for (output, link) in outputs.iter_mut().zip(links.links()) {
            output.cells = Some(Arc::clone(&link.cells));
        }
        Ok(ReplayControl {
            bound,
            links: Some(links),
        })
    }

    /// Drops unneeded privileges, and serves the run until the server is dropped. Returns `None` if
    /// there are no addresses.
    ///
    /// # Errors
    /// If the terminal cannot be written, or a thread cannot be started.
    pub fn serve(
        self,
        running: &RunningNetwork,
        pump: &PumpArgs,
        globals: &Globals,
    ) -> Result<Option<Server>, Error> {
        let Some(links) = self.links else {
            rights::give_up(&pump.report, &[]);
            return Ok(None);
        };
        rights::give_up(&pump.report, &[Capability::DacOverride]);
        run_network::print_addresses(&self.bound, globals);
        let loader = FileLoader::reporting_to(&pump.link.faults);
        let controller = Controller::new(links, running.observer(), loader, channel());
        Ok(self.bound.serve(Arc::new(controller))?)
    }
}
