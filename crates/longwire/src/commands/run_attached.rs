//! Network ports at interfaces in use.

use std::time::Duration;

use longwire_io::attach::{AttachHub, AttachedPort, PortEngage, prepare_port};
use longwire_io::net::grace::ExpeditedGrace;
use longwire_io::port::registry::Port;
use longwire_node::{attached, place};
use longwire_packet::bridge::{PortIndex, Switching};
use longwire_runtime::{OnPortLoss, RunningNetwork};
use longwire_topology::AttachPlan;

use super::run_hosts::Others;
use super::run_network::Lifecycle;
use crate::report::start;
use crate::{Error, Globals};

/// Opens the port at an interface, one of `count` in this run.
///
/// # Errors
/// If the target does not exist, or the interface cannot have a port.
pub(super) fn open(plan: &AttachPlan, count: usize) -> Result<(PortEngage, Port), Error> {
    let found = place::find(&plan.target, plan.host_network)?;
    let interface = plan.interface.as_deref();
    let hub = AttachHub::new(count)?;
    prepare_port(&found.namespace, interface, &plan.selection, &hub).map_err(Error::from)
}

/// A port opened at an interface but not yet engaged: it captures no packets.
pub(super) struct NewPort {
    pub name: String,
    /// Index of the port in the network.
    pub index: PortIndex,
    /// Attachment point of the port.
    pub engage: PortEngage,
}

/// Function that waits at most the given time, and returns whether the run has ended.
pub(super) type Until<'a> = Box<dyn FnMut(&RunningNetwork, Duration) -> Result<bool, Error> + 'a>;

/// Ports of a running network at interfaces in use. A port captures packets only while its
/// partner's host is reachable.
pub(super) struct PortsInUse<'a> {
    pub until: Until<'a>,
    pub globals: &'a Globals,
    pub waiting: Vec<NewPort>,
    /// Ports, each with its partner; packets of a port without a partner may leave through any
    /// host.
    pub ports: Vec<(String, AttachedPort, Option<PortIndex>)>,
    /// Ports whose interface disappeared; packets to them count as lost.
    pub left: Vec<AttachedPort>,
    pub on_loss: OnPortLoss,
    pub others: Option<Others>,
    pub switching: Switching,
    /// Notes for the report.
    pub notes: Vec<String>,
}

impl PortsInUse<'_> {
    /// Lets new packets bypass the network while it delivers the packets in flight.
    fn drain(&mut self, running: &RunningNetwork) {
        if self.ports.is_empty() && self.left.is_empty() {
            return;
        }
        let _hurry = ExpeditedGrace::begin();
        for (_, port, _) in &mut self.ports {
            port.release();
        }
        attached::drain(running, || {
            for port in self.ports.iter().map(|(_, port, _)| port).chain(&self.left) {
                port.note_losses();
            }
        });
    }

    /// Lets packets bypass the network while a port's host is unreachable, so that they are not
    /// lost.
    fn follow_hosts(&mut self) -> Result<(), Error> {
        let Some(others) = &self.others else {
            return Ok(());
        };
        for (_, port, to) in &mut self.ports {
            let is_reachable = match to {
                Some(partner) => others.has_port(*partner),
                None => others.any(),
            };
            // Interface loss is detected elsewhere.
            if let Err(error) = port.set_taking(is_reachable)
                && port.is_attached()
            {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Removes ports whose interface disappeared; returns whether there were any.
    fn lose_ports(&mut self) -> bool {
        let before = self.notes.len();
        let gone = self
            .ports
            .extract_if(.., |(_, port, _)| !port.is_attached());
        for (name, mut port, _) in gone {
            let note = format!("port {name}: '{}' is gone", port.interface());
            self.notes.push(note);
            port.release();
            self.left.push(port);
        }
        start::warn(&self.notes[before..], self.globals);
        self.notes.len() > before
    }
}

impl Lifecycle for PortsInUse<'_> {
    fn begin(&mut self) -> Result<(), Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let _hurry = ExpeditedGrace::begin();
        for new in std::mem::take(&mut self.waiting) {
            let partner = match &self.switching {
                Switching::Pairs(pairs) => partner(pairs, new.index),
                _ => None,
            };
            self.ports.push((new.name, new.engage.engage()?, partner));
        }
        Ok(())
    }

    fn pause(&mut self, running: &RunningNetwork, pause: Duration) -> Result<bool, Error> {
        let over = (self.until)(running, pause)?;
        self.follow_hosts()?;
        let lost = self.lose_ports();
        if over || (lost && self.on_loss == OnPortLoss::End) {
            self.drain(running);
            return Ok(true);
        }
        Ok(false)
    }
}

fn partner(pairs: &[(PortIndex, PortIndex)], port: PortIndex) -> Option<PortIndex> {
    pairs.iter().find_map(|(a, b)| match port {
        _ if port == *a => Some(*b),
        _ if port == *b => Some(*a),
        _ => None,
    })
}
