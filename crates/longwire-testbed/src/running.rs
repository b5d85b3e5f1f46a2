//! A running link between two sockets, and its report.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use longwire_runtime::ledger::NamedCounts;
use longwire_runtime::{LinkReport, RunReport, RunningNetwork, Spread};

use crate::config::Side;
use crate::guard;
use crate::networks::Networks;
use crate::node::{Node, Starter};
use crate::testbed_error::TestbedError;

/// Two networks and the link between them. Dropped, the link is stopped,
/// programs in the networks are ended, and everything is removed.
pub struct RunningTestbed {
    /// `None` once the link is stopped. Locked, since a run is watched by one
    /// thread at a time.
    running: Mutex<Option<RunningNetwork>>,
    near: Node,
    far: Node,
    networks: Networks,
}

impl RunningTestbed {
    pub(crate) fn new(
        networks: Networks,
        running: RunningNetwork,
    ) -> Result<RunningTestbed, TestbedError> {
        let starter = Arc::new(Starter::new()?);
        Ok(RunningTestbed {
            near: Node::new(Side::Near, &networks, &starter)?,
            far: Node::new(Side::Far, &networks, &starter)?,
            running: Mutex::new(Some(running)),
            networks,
        })
    }

    /// The near end.
    pub fn near(&self) -> &Node {
        &self.near
    }

    /// The far end.
    pub fn far(&self) -> &Node {
        &self.far
    }

    /// Reports on the link so far.
    pub fn report(&self) -> TestbedReport {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = running.as_ref().map(RunningNetwork::snapshot);
        self.complete(snapshot.unwrap_or_default())
    }

    /// Stops the link, reports on all of it, and removes everything. Packets
    /// that are still on their way are counted as in flight.
    ///
    /// # Errors
    ///
    /// If the link ended before, as it does when a plugin fails.
    pub fn finish(mut self) -> Result<TestbedReport, TestbedError> {
        let report = self.take().map(RunningNetwork::stop);
        let report = report.unwrap_or_default();
        match &report.error {
            Some(error) => Err(TestbedError::Ended(error.clone())),
            None => Ok(self.complete(report)),
        }
    }

    fn take(&mut self) -> Option<RunningNetwork> {
        let running = self.running.get_mut();
        running.unwrap_or_else(PoisonError::into_inner).take()
    }

    fn complete(&self, run: RunReport) -> TestbedReport {
        let mut links = run.links.into_iter();
        let mut next = || DirectionReport(links.next().unwrap_or_default());
        let own = self.networks.notes().map(str::to_owned);
        TestbedReport {
            up: next(),
            down: next(),
            notes: own.chain(run.notes).collect(),
        }
    }
}

impl fmt::Debug for RunningTestbed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ends = f.debug_struct("RunningTestbed");
        ends.field("near", &self.near);
        ends.field("far", &self.far).finish_non_exhaustive()
    }
}

impl Drop for RunningTestbed {
    fn drop(&mut self) {
        drop(self.take());
        guard::sweep(&[Side::Near, Side::Far].map(|side| self.networks.network(side).inode()));
    }
}

/// Report of a link.
#[derive(Clone, Debug)]
pub struct TestbedReport {
    /// The direction from near to far.
    pub up: DirectionReport,
    /// The direction from far to near.
    pub down: DirectionReport,
    /// Sentences about the machine, such as a priority that was refused.
    pub notes: Vec<String>,
}

/// Report of one direction of a link.
#[derive(Clone, Debug)]
pub struct DirectionReport(LinkReport);

impl DirectionReport {
    /// Packets that entered the link.
    pub fn packets_in(&self) -> u64 {
        self.0.traffic.packets_in
    }

    /// Packets that left the link; copies that it made are among them.
    pub fn packets_out(&self) -> u64 {
        self.0.traffic.packets_out
    }

    /// Packets on their way when the report was made.
    pub fn in_flight(&self) -> u64 {
        self.0.in_flight
    }

    /// Packets that the link dropped, as it was asked to, by reason. Every
    /// reason is listed.
    pub fn drops(&self) -> &NamedCounts {
        &self.0.drops
    }

    /// All packets that the link dropped, as it was asked to.
    pub fn dropped(&self) -> u64 {
        self.0.drops.total()
    }

    /// Packets that the emulator lost or delayed on its own account: where it
    /// is not 0, this machine was too slow for the link.
    pub fn artifacts(&self) -> u64 {
        self.0.artifacts.total()
    }

    /// The artifacts by kind. Every kind is listed.
    pub fn artifacts_by_kind(&self) -> &NamedCounts {
        &self.0.artifacts
    }

    /// How much later than computed packets left, in microseconds.
    pub fn lateness_us(&self) -> &Spread {
        &self.0.lateness_us
    }
}
