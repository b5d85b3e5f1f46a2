//! Stages that send, as a thread runs them.

use std::sync::Arc;

use longwire_engine::Nanos;
use longwire_io::PortError;
use longwire_io::port::AnyRx;

use super::{Ingress, Step};
use crate::fabric::InsideCounts;
use crate::witness::PauseHistory;

/// A stage that sends: for one port, or for all ports of a network.
pub(crate) trait OutputStage {
    /// Reads a burst of the `port`-th input of this stage's thread, which no other stage
    /// that sends shares.
    fn read(&mut self, ingress: &mut Ingress<AnyRx>, _port: usize) -> Result<Step, PortError> {
        ingress.step()
    }

    /// Sends at most one burst of due frames; a deciding stage takes in and decides first.
    ///
    /// # Errors
    /// An output port failed; a loss that the network survives is no error.
    fn step(&mut self) -> Result<Step, PortError>;

    /// Returns the time of the next known action: a release, or earlier by the port's lead.
    fn next_release(&mut self) -> Option<Nanos>;

    /// Whether no frame is inside or unsent.
    fn is_empty(&mut self) -> bool;

    /// Adds a thread whose pauses excuse lateness.
    fn excuse_by(&mut self, pauses: &Arc<PauseHistory>);

    /// Publishes the last counts; returns those of a network.
    fn finish(&mut self) -> Option<InsideCounts>;

    /// Returns the remarks of the ports.
    fn remarks(&self) -> Vec<String>;
}
