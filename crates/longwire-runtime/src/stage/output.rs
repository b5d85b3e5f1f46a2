//! Stages that send, as a thread runs them.

use std::sync::Arc;

use longwire_engine::Nanos;
use longwire_io::port::{AnyRx, AnyTx};
use longwire_io::{PortError, TxPort};

use super::{Egress, Ingress, Step};
use crate::fabric::{Fabric, InsideCounts};
use crate::witness::PauseHistory;

/// A stage that sends: for one port, or for all ports of a network.
pub(crate) trait OutputStage: Send {
    /// Reads a burst of the `port`-th input of this stage's thread, which no other stage
    /// that sends shares.
    fn read(&mut self, ingress: &mut Ingress<AnyRx>, _port: usize) -> Result<Step, PortError> {
        ingress.step()
    }

    /// Sends at most one burst of due frames.
    fn step(&mut self) -> Result<Step, PortError>;

    /// Returns the time of the next known action.
    fn next_release(&mut self) -> Option<Nanos>;

    /// Whether no frame waits.
    fn is_empty(&mut self) -> bool;

    /// Adds a thread whose pauses excuse lateness.
    fn excuse_by(&mut self, pauses: &Arc<PauseHistory>);

    /// Publishes the last counts; returns those of a network.
    fn finish(&mut self) -> Option<InsideCounts>;

    /// Returns the remarks of the ports.
    fn remarks(&self) -> Vec<String>;
}

impl OutputStage for Egress<AnyTx> {
    fn step(&mut self) -> Result<Step, PortError> {
        Egress::step(self)
    }

    fn next_release(&mut self) -> Option<Nanos> {
        Egress::next_release(self)
    }

    fn is_empty(&mut self) -> bool {
        Egress::is_empty(self)
    }

    fn excuse_by(&mut self, pauses: &Arc<PauseHistory>) {
        Egress::excuse_by(self, pauses);
    }

    fn finish(&mut self) -> Option<InsideCounts> {
        Egress::finish(self);
        None
    }

    fn remarks(&self) -> Vec<String> {
        self.port().remarks()
    }
}

impl OutputStage for Fabric<AnyTx> {
    fn read(&mut self, ingress: &mut Ingress<AnyRx>, port: usize) -> Result<Step, PortError> {
        Fabric::read(self, ingress, port)
    }

    fn step(&mut self) -> Result<Step, PortError> {
        Fabric::step(self)
    }

    fn next_release(&mut self) -> Option<Nanos> {
        Fabric::next_release(self)
    }

    fn is_empty(&mut self) -> bool {
        Fabric::is_empty(self)
    }

    fn excuse_by(&mut self, pauses: &Arc<PauseHistory>) {
        Fabric::excuse_by(self, pauses);
    }

    fn finish(&mut self) -> Option<InsideCounts> {
        Some(Fabric::finish(self))
    }

    fn remarks(&self) -> Vec<String> {
        let ports = self.ports().flat_map(TxPort::remarks);
        ports.chain(self.carrier_remarks()).collect()
    }
}
