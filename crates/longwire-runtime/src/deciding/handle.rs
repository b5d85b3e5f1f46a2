//! A handle to query and change a running network from other threads.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use longwire_engine::{LinkId, Nanos};

use super::changing::Occupancy;
use super::core::Core;
use super::orders::{Operation, Order, Task};
use super::report::InsideCounts;
use crate::clock::monotonic_now;
use crate::network::RunFacts;
use crate::port_loss::LostPort;
use crate::report::RunReport;
use crate::shutdown::is_hurried;
use crate::thread::Bell;

/// Sends orders to a running network and reports on it.
#[derive(Clone)]
pub struct NetworkHandle {
    /// Channel and bell of the deciding thread; `None` for a replay.
    pub(crate) orders: Option<(Sender<Order>, Arc<Bell>)>,
    pub(crate) facts: Arc<RunFacts>,
}

/// Interval at which to check whether a plugin blocks the network.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl NetworkHandle {
    /// Returns whether the links take orders. A replay's do not.
    pub fn takes_orders(&self) -> bool {
        self.orders.is_some()
    }

    /// Updates the counters of a replay. A no-op for a network, whose counters are always
    /// current.
    pub fn refresh(&self) {
        self.facts.refresh();
    }

    /// Returns the queue occupancy of a replay's output as of the last refresh.
    pub fn output_occupancy(&self, output: LinkId) -> Option<Occupancy> {
        let output = self.facts.sources.observed.get(output.0 as usize)?;
        Some(output.occupancy())
    }

    /// Schedules an operation `after` the start, or now. Allocate in advance: the deciding
    /// thread should only apply the operation.
    pub fn order(&self, after: Option<Nanos>, work: Operation) {
        let at = match after {
            Some(after) => self.clock_time(after),
            None => monotonic_now(),
        };
        self.send(at, Task::Change(work));
    }

    fn send(&self, at: Nanos, task: Task) {
        // A network that has ended ignores orders, and no caller waits for them.
        if let Some((orders, bell)) = &self.orders {
            let _ = orders.send(Order { at, task });
            bell.ring();
        }
    }

    /// Applies a change on the deciding thread now and returns its result. Returns `None`
    /// if the network has ended or a plugin failed.
    pub fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Core) -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = channel();
        let work = move |core: &mut Core, _: Nanos| {
            let _ = answer.send(question(core));
        };
        self.order(None, Box::new(work));
        self.wait_for(&answered)
    }

    /// Runs a query on the deciding thread. Returns `None` if the network has ended or a
    /// plugin failed.
    pub fn query<R: Send + 'static>(
        &self,
        question: impl FnOnce(&Core) -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = channel();
        let query = move |core: &Core| {
            let _ = answer.send(question(core));
        };
        self.send(monotonic_now(), Task::Query(Box::new(query)));
        self.wait_for(&answered)
    }

    /// Waits for an order's answer. Returns `None` if the network has ended or a plugin failed.
    pub fn wait_for<R>(&self, answered: &Receiver<R>) -> Option<R> {
        loop {
            match answered.recv_timeout(LOOK_EVERY) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            // Only a plugin can block the thread, and the watchdog reports that as a fault.
            if self.facts.control.faults.any() || is_hurried() {
                return None;
            }
        }
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Nanos {
        monotonic_now().saturating_sub(self.facts.epoch.monotonic)
    }

    /// Returns the time `after` the start on the arrivals' clock.
    pub fn clock_time(&self, after: Nanos) -> Nanos {
        self.facts.epoch.monotonic.saturating_add(after)
    }

    /// Returns the seed of the random streams.
    pub fn seed(&self) -> u64 {
        self.facts.seed
    }

    /// Returns the ports lost so far, by name.
    pub fn lost_ports(&self) -> Vec<(String, LostPort)> {
        let (ports, epoch) = (self.facts.sources.ports.iter(), self.facts.epoch.monotonic);
        let lost = ports.filter_map(|(name, shared)| Some((name.clone(), shared.loss.get(epoch)?)));
        lost.collect()
    }

    /// Returns the current report, or the last one if the network has ended.
    pub fn report(&self) -> RunReport {
        if !self.takes_orders() {
            return self.facts.report();
        }
        let facts = Arc::clone(&self.facts);
        // Read the counters on the deciding thread, for a consistent snapshot.
        match self.query(move |core| (facts.port_counts(), core.inside())) {
            Some((ports, inside)) => self.facts.report_of(&ports, Some(inside)),
            None => self.facts.report(),
        }
    }

    /// Returns the deciding thread's counters. Returns `None` if it does not answer.
    pub(crate) fn inside(&self) -> Option<InsideCounts> {
        self.query(Core::inside)
    }
}
