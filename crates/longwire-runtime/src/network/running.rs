//! Starting, watching and stopping a network.

use std::sync::Arc;
use std::time::Duration;

use longwire_engine::Nanos;

use super::assembly::{Foundation, RunFacts};
use super::plan::{Carriers, NetworkPlan};
use crate::clock::monotonic_now;
use crate::config::RunConfig;
use crate::deciding::NetworkHandle;
use crate::host::StayAwake;
use crate::record::{Epoch, Recorder, RecordingParts};
use crate::report::RunReport;
use crate::stage::AddressWatch;
use crate::start_error::StartError;
use crate::threads::Threads;

/// A running network. Drop stops it and discards its report.
pub struct RunningNetwork {
    handle: NetworkHandle,
    threads: Threads,
    addresses: Arc<AddressWatch>,
    _awake: Option<StayAwake>,
}

/// Starts a network. With a `recorder`, the run is recorded and super-packets are cut into
/// wire frames.
///
/// # Errors
/// If the parts of the plan do not fit together, or memory or threads cannot be allocated.
pub fn start(
    plan: NetworkPlan,
    config: RunConfig,
    recorder: Option<Box<dyn Recorder>>,
) -> Result<RunningNetwork, StartError> {
    // The common origin of all schedules.
    let epoch = match &plan.0 {
        Carriers::Replay(replay) => replay.config.epoch(),
        _ => config.epoch.unwrap_or_else(Epoch::now),
    };
    let recorded = RecordingParts::by(recorder);
    let mut threads = Threads::new(config.faults.clone());
    let foundation = Foundation {
        config: &config,
        epoch,
        recorded: &recorded,
        control: threads.control(),
    };
    let mut assembly = match plan.0 {
        Carriers::Pair(pair) => pair.assemble(&foundation)?,
        Carriers::Network(ports, parts) => parts.assemble(ports, &foundation)?,
        Carriers::Replay(replay) => replay.assemble(&foundation)?,
    };
    threads.recorder = recorded.start(epoch)?;
    // A replay starts with its first due frame.
    let began = if assembly.sources.inputs.is_empty() {
        monotonic_now()
    } else {
        epoch.monotonic
    };
    for thread in assembly.threads {
        threads.spawn(thread, &mut assembly.notes)?;
    }
    let facts = RunFacts {
        seed: config.seed,
        epoch,
        tolerance: config.tolerance,
        began,
        notes: assembly.notes,
        sources: assembly.sources,
        control: Arc::clone(threads.control()),
    };
    Ok(RunningNetwork {
        handle: NetworkHandle {
            orders: assembly.orders,
            facts: Arc::new(facts),
        },
        threads,
        addresses: assembly.addresses,
        _awake: assembly.awake,
    })
}

impl RunningNetwork {
    /// Returns the notes made at the start, as sentences.
    pub fn notes(&self) -> &[String] {
        &self.handle.facts.notes
    }

    /// Returns the origin of schedules on both clocks.
    pub fn epoch(&self) -> Epoch {
        self.handle.facts.epoch
    }

    /// Returns the handle for orders, if the network can change.
    pub fn handle(&self) -> Option<&NetworkHandle> {
        Some(&self.handle).filter(|handle| handle.takes_orders())
    }

    /// Returns a handle that reads counters, but takes no orders and answers no queries.
    pub fn observer(&self) -> NetworkHandle {
        NetworkHandle {
            orders: None,
            facts: Arc::clone(&self.handle.facts),
        }
    }

    /// Returns whether the run has ended: all inputs have ended and drained, a port was
    /// lost, or a plugin failed.
    pub fn ended(&self) -> bool {
        self.threads.ended()
    }

    /// Returns the time until a replay's next frame; `None` unless the replay is in a gap of at
    /// least 10 s.
    pub fn gap_left(&self) -> Option<Nanos> {
        let now = monotonic_now();
        let inputs = self.handle.facts.sources.inputs.iter();
        inputs.filter_map(|input| input.gap_left(now)).min()
    }

    /// Waits until the run has ended, at most for `timeout`. Returns whether it has.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.threads.wait(timeout)
    }

    /// Returns the current report.
    pub fn snapshot(&self) -> RunReport {
        self.handle.report()
    }

    /// Stops the run and returns its final report. Frames not yet released stay in flight.
    pub fn stop(mut self) -> RunReport {
        // Query the deciding thread while it still answers, because a plugin may keep it from
        // ending.
        let inside = (!self.ended()).then(|| self.handle.inside()).flatten();
        let stopped = self.threads.stop();
        let facts = &self.handle.facts;
        let inside = facts.control.last_inside.get().cloned().or(inside);
        // Read after the threads ended, so that the report includes their last bursts.
        let mut report = facts.report_of(&facts.port_counts(), inside);
        stopped.add_to(&mut report);
        report.add_closing_notes(self.addresses.notes(monotonic_now()));
        report
    }
}

#[cfg(test)]
mod tests {
    use longwire_engine::{Bytes, LinkConfig};
    use longwire_io::port::mem::pipe;
    use longwire_io::port::{AnyRx, AnyTx, Port};

    use super::*;
    use crate::config::LinkSetup;

    #[test]
    fn pauses_are_in_the_reports_during_the_run_and_after_it() {
        let cable = || pipe(Bytes(1 << 20)).expect("memory");
        let ((_into, rx), (tx, _out)) = (cable(), cable());
        let ((_back, other_rx), (other_tx, _back_out)) = (cable(), cable());
        let port = |rx, tx| {
            let halves = (AnyRx::Pipe(Box::new(rx)), AnyTx::Pipe(Box::new(tx)));
            Port::with_halves("pipe", halves.0, halves.1)
        };
        let up = LinkSetup::new("link.up", LinkConfig::default());
        let plan = NetworkPlan::link(port(rx, other_tx), port(other_rx, tx), up, None);
        let config = RunConfig {
            realtime: false,
            ..RunConfig::default()
        };
        let running = start(plan, config, None).expect("it starts");
        for history in crate::sync::locked(&running.threads.control().pauses).iter() {
            history.add((Nanos::from_secs(1), Nanos::from_secs(51)));
        }
        let during = running.snapshot().pauses;
        assert!(during.count >= 1, "{during:?}");
        assert_eq!(during.max_us, 50e6);
        let after = running.stop().pauses;
        assert!(after.count >= during.count && after.total_us >= during.total_us);
        let is_once = after.total_us < during.total_us + 50e6;
        assert!(is_once, "counted once: {after:?}");
    }
}
