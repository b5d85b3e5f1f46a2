//! Construction of a replay: delay lines, links, stages and threads.

use std::sync::Arc;

use longwire_engine::{Bytes, LinkId, Nanos};
use longwire_io::TxPort;
use longwire_io::port::AnyTx;

use super::observed::{ObservedOutput, OfferLogger};
use super::pacer::Pacer;
use super::threads::{Outputs, Pump, Reader};
use super::{ReplayConfig, ReplayOutput};
use crate::clock::Clock;
use crate::config::WaitMode;
use crate::feed::Feed;
use crate::host::{self, StayAwake};
use crate::network::{Assembly, Direction, DirectionConfig, Foundation, memory_for};
use crate::stage::{Egress, FeedStage, FeedingOutput, OutputStage};
use crate::start_error::StartError;
use crate::thread::Bell;
use crate::threads::ThreadPlan;
use crate::witness::PauseHistory;

/// Time between the start of reading and a requested start.
const READ_BEFORE_START: Nanos = Nanos::from_secs(2);

/// Read-ahead in bytes for an unpaced port, small enough for the cache.
const READ_AHEAD_TOP_SPEED: u64 = 1 << 20;

/// A feed and its outputs.
pub(crate) struct ReplayPlan {
    pub feed: Box<dyn Feed>,
    pub outputs: Vec<ReplayOutput>,
    pub config: ReplayConfig,
}

impl ReplayPlan {
    /// Builds a replay's stages and threads.
    ///
    /// # Errors
    /// Memory cannot be allocated, or the number of outputs does not match the feed.
    pub fn assemble(self, foundation: &Foundation<'_>) -> Result<Assembly, StartError> {
        let (needed, given) = (self.feed.outputs(), self.outputs.len());
        if needed != given {
            return Err(StartError::Outputs { needed, given });
        }
        let paced = self.feed.is_paced();
        let mut building = ReplayBuilder {
            config: &self.config,
            foundation,
            paced,
            egress: Vec::new(),
            assembly: Assembly::default(),
        };
        let feeding = building.feeding(self.feed, self.outputs)?;
        let (egress, mut assembly) = (building.egress, building.assembly);
        assembly.sources.inputs = vec![Arc::clone(&feeding.shared)];
        let sleeps = foundation.config.wait != WaitMode::Spin && paced;
        assembly.threads = threads(feeding, egress, foundation, sleeps)?;
        if foundation.config.realtime && sleeps {
            assembly.awake = stay_awake(&mut assembly.notes);
        }
        Ok(assembly)
    }
}

/// Requests a short wake-up latency from idle cores.
fn stay_awake(notes: &mut Vec<String>) -> Option<StayAwake> {
    let asked = StayAwake::ask();
    notes.push(match &asked {
        Ok(_) => "deep idle states are disabled during the replay".to_owned(),
        Err(error) => format!(
            "deep idle states stay enabled, so wake-ups are slower (/dev/cpu_dma_latency: {error})"
        ),
    });
    asked.ok()
}

/// Returns the plans for the reading and the sending thread.
fn threads(
    feeding: FeedStage,
    mut egress: Vec<Egress<AnyTx>>,
    foundation: &Foundation<'_>,
    fifo: bool,
) -> Result<Vec<ThreadPlan>, StartError> {
    let (config, control) = (foundation.config, foundation.control);
    let realtime = config.realtime;
    let cores = host::allowed_cores();
    let pauses = Arc::new(PauseHistory::default());
    control.count_pauses(std::slice::from_ref(&pauses));
    for stage in &mut egress {
        stage.excuse_by(&pauses);
    }
    // The sender gets a separate core if enough remain for the reader and the rest of the machine.
    let core = cores.last().copied().filter(|_| cores.len() >= 3);
    let placed = match core {
        Some(_) => "on a dedicated core",
        None => "on any core",
    };
    let placement = format!(
        "placement: one reading thread, one sending thread {placed} ({} cores)",
        cores.len()
    );
    let bell = Arc::new(Bell::new()?);
    let reader = Reader {
        fed: Arc::clone(&bell),
        control: Arc::clone(control),
        begin: foundation.epoch.monotonic.saturating_sub(READ_BEFORE_START),
        feeding,
    };
    let pump = Pump {
        outputs: Outputs {
            egress,
            numbers: Arc::clone(&reader.feeding.numbers),
        },
        pacer: Pacer::new(config.wait, pauses)?,
        bell: Arc::clone(&bell),
        control: Arc::clone(control),
        fifo: realtime && fifo,
    };
    let sending = ThreadPlan {
        name: "longwire-0".to_owned(),
        bell,
        prepare: Box::new(move || host::prepare_sender(core, realtime, fifo)),
        body: Box::new(|| pump.run()),
    };
    let reading = ThreadPlan {
        name: "longwire-read".to_owned(),
        bell: Arc::new(Bell::new()?),
        prepare: Box::new(move || {
            // Ignore refused requests: the sending thread reports the same ones.
            host::prepare_thread(None, realtime);
            vec![placement]
        }),
        body: Box::new(|| reader.run()),
    };
    Ok(vec![sending, reading])
}

/// A replay under construction.
struct ReplayBuilder<'a> {
    config: &'a ReplayConfig,
    foundation: &'a Foundation<'a>,
    paced: bool,
    egress: Vec<Egress<AnyTx>>,
    assembly: Assembly,
}

impl ReplayBuilder<'_> {
    /// Builds the feeding stage and its outputs.
    fn feeding(
        &mut self,
        mut feed: Box<dyn Feed>,
        outputs: Vec<ReplayOutput>,
    ) -> Result<FeedStage, StartError> {
        feed.begin(self.foundation.epoch);
        let outputs = outputs.into_iter().map(|output| self.output(output));
        let outputs: Result<Vec<_>, _> = outputs.collect();
        let read_ahead = if self.paced {
            self.config.read_ahead.0
        } else {
            self.config.read_ahead.0.min(READ_AHEAD_TOP_SPEED)
        };
        Ok(FeedStage::new(
            feed,
            outputs?,
            self.foundation.epoch.monotonic,
            read_ahead,
        ))
    }

    fn output(&mut self, output: ReplayOutput) -> Result<FeedingOutput, StartError> {
        let ReplayOutput {
            port,
            link: mut setup,
            sent,
            cells,
        } = output;
        let link_id = LinkId(self.assembly.sources.links.len() as u32);
        let run = self.foundation.config;
        let recorded = self.foundation.recorded;
        let config = &mut setup.config;
        config.epoch = self.foundation.epoch.monotonic;
        let read_ahead = self.config.read_ahead.0;
        let derived = || Bytes(memory_for(config).0.saturating_add(read_ahead * 2));
        let budget = run.memory.unwrap_or_else(derived);
        let transparent = config.rate.is_unlimited() && config.delay.mean() == Nanos::ZERO;
        let shared = Arc::default();
        let observed = cells.map(|cells| Arc::new(ObservedOutput::new(cells, Arc::clone(&shared))));
        self.assembly.sources.observed.extend(observed.clone());
        let config = DirectionConfig {
            seed: run.seed,
            link_id,
            clock: Clock::Monotonic,
            budget,
            tolerance: self.tolerance(),
            grace_until: self.foundation.grace_until(),
            shared,
            icmp: None,
            log: observed.map(|observed| OfferLogger::new(observed, !transparent)),
        };
        let recorded = (recorded.recorder_of(link_id), recorded.departures(link_id));
        let Direction {
            admission,
            mut egress,
            source,
            ..
        } = Direction::new(port.tx, setup, config, recorded)?;
        egress.account.log = sent.map(Box::new);
        if self.paced {
            self.watch(&mut egress, &source.name);
        } else {
            egress.account.timeless = true;
        }
        self.egress.push(egress);
        self.assembly.notes.extend(port.notes);
        self.assembly.sources.links.push(source);
        Ok(FeedingOutput::new(admission, transparent))
    }

    /// Returns the tolerance for lateness, which is unlimited for unpaced frames.
    fn tolerance(&self) -> Nanos {
        if self.paced {
            self.foundation.config.tolerance
        } else {
            Nanos::MAX
        }
    }

    /// Measures an output's departures from handovers and send stamps.
    fn watch(&mut self, egress: &mut Egress<AnyTx>, name: &str) {
        match egress.port().launch_lead() {
            None => egress.account.departures = Some(Box::default()),
            // The handover does not determine the departure.
            Some(lead) => self.assembly.notes.push(format!(
                "{name}: frames are handed over {lead} early and held by the queue or device; \
                 lateness is measured at the handover, send stamps show departures"
            )),
        }
        let every = self.config.stamp_every;
        if every > 0 && egress.watch_sends(every).is_none() {
            self.assembly.notes.push(format!(
                "{name}: no send stamps; lateness is measured at the handover"
            ));
        }
    }
}
