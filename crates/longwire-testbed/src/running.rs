//! A running link between two sockets, and its report.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use longwire_runtime::counters::NamedCounts;
use longwire_runtime::{LinkReport, RunReport, RunningNetwork, Spread};

use crate::config::Side;
use crate::guard;
use crate::networks::Networks;
use crate::node::{Node, Starter};
use crate::testbed_error::TestbedError;

/// Two networks and the link between them. On drop, the link stops, programs in the networks end,
/// and everything is removed.
pub struct RunningTestbed {
    /// `None` once the link is stopped. Locked, because only one thread at a time may access a run.
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

    /// Returns the near end.
    pub fn near(&self) -> &Node {
        &self.near
    }

    /// Returns the far end.
    pub fn far(&self) -> &Node {
        &self.far
    }

    /// Reports on the link so far.
    pub fn report(&self) -> TestbedReport {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = running.as_ref().map(RunningNetwork::snapshot);
        self.complete(snapshot.unwrap_or_default())
    }

    /// Stops the link, reports on the whole run, and removes everything. Packets still in transit
    /// count as in flight.
    ///
    /// # Errors
    ///
    /// If the link ended earlier, for example because a plugin failed.
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

/// Report of a link, by direction.
#[derive(Clone, Debug)]
pub struct TestbedReport {
    /// Direction from near to far.
    pub up: DirectionReport,
    /// Direction from far to near.
    pub down: DirectionReport,
    /// Notes about the machine, such as a refused priority.
    pub notes: Vec<String>,
}

/// Report of one direction of a link.
#[derive(Clone, Debug)]
pub struct DirectionReport(LinkReport);

impl DirectionReport {
    /// Returns the number of packets that entered the link.
    pub fn packets_in(&self) -> u64 {
        self.0.traffic.packets_in
    }

    /// Returns the number of packets that left the link, including duplicates.
    pub fn packets_out(&self) -> u64 {
        self.0.traffic.packets_out
    }

    /// Returns the number of packets in transit at the time of the report.
    pub fn in_flight(&self) -> u64 {
        self.0.in_flight
    }

    /// Returns the number of packets dropped as configured, by reason, including zero counts.
    pub fn drops(&self) -> &NamedCounts {
        &self.0.drops
    }

    /// Returns the total number of packets dropped as configured.
    pub fn dropped(&self) -> u64 {
        self.0.drops.total()
    }

    /// Returns the number of packets that the emulator lost or delayed unintentionally. If not 0,
    /// this machine was too slow for the link.
    pub fn artifacts(&self) -> u64 {
        self.0.artifacts.total()
    }

    /// Returns the artifacts by kind, including zero counts.
    pub fn artifacts_by_kind(&self) -> &NamedCounts {
        &self.0.artifacts
    }

    /// Returns the packets' lateness, handover minus release, in microseconds.
    pub fn lateness_us(&self) -> &Spread {
        &self.0.lateness_us
    }
}
