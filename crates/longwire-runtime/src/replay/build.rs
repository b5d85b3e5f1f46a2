//! Building a replay: delay lines, links, stages and threads.

use std::sync::Arc;

use longwire_engine::{Bytes, Link, LinkId, Nanos};
use longwire_io::TxPort;
use longwire_io::delay_line::{DelayLineConfig, delay_line};
use longwire_io::port::AnyTx;

use super::observed::{ObservedOutput, OfferLogger};
use super::pacer::Pacer;
use super::pump::Pump;
use super::reader::Reader;
use super::summary::ReplayInput;
use super::{ReplayConfig, ReplayOutput};
use crate::clock::Clock;
use crate::config::WaitMode;
use crate::counters::LinkShared;
use crate::feed::Feed;
use crate::host::{self, StayAwake};
use crate::network::{Assembly, Foundation, ReportSource, memory_for};
use crate::stage::{Decider, Egress, EgressParts, FeedStage, FeedingOutput, place_link};
use crate::start_error::StartError;
use crate::thread::Bell;
use crate::threads::ThreadPlan;
use crate::witness::PauseHistory;

/// Reading begins this long before a requested start.
const READ_BEFORE_START: Nanos = Nanos::from_secs(2);

/// Bytes read ahead for a port that takes frames at its own speed: few enough
/// to stay in a cache.
const READ_AHEAD_TOP_SPEED: u64 = 1 << 20;

/// Feeds and the outputs of their frames.
pub(crate) struct ReplayPlan {
    pub feeds: Vec<Box<dyn Feed>>,
    pub outputs: Vec<ReplayOutput>,
    pub config: ReplayConfig,
}

impl ReplayPlan {
    /// Builds the stages of a replay and distributes them over threads.
    ///
    /// # Errors
    /// Memory cannot be obtained, or the number of outputs does not match the
    /// feeds.
    pub fn assemble(self, foundation: &Foundation<'_>) -> Result<Assembly, StartError> {
        let (feeds, outputs) = (self.feeds, self.outputs);
        let needed = feeds.iter().map(|feed| feed.outputs()).sum();
        if needed != outputs.len() {
            return Err(StartError::Outputs {
                needed,
                given: outputs.len(),
            });
        }
        let paced = feeds.iter().all(|feed| feed.is_paced());
        let mut building = ReplayBuilder {
            config: &self.config,
            foundation,
            paced,
            egress: Vec::new(),
            assembly: Assembly::default(),
        };
        let mut outputs = outputs.into_iter();
        let mut feedings = Vec::new();
        for feed in feeds {
            let count = feed.outputs();
            feedings.push(building.feeding(feed, outputs.by_ref().take(count))?);
        }
        let (egress, mut assembly) = (building.egress, building.assembly);
        let inputs = feedings.iter().map(|feeding| ReplayInput(feeding.shared()));
        assembly.sources.inputs = inputs.collect();
        let sleeps = foundation.config.wait != WaitMode::Spin && paced;
        assembly.threads = threads(feedings, egress, foundation, sleeps)?;
        if foundation.config.realtime && sleeps {
            assembly.awake = stay_awake(&mut assembly.notes);
        }
        Ok(assembly)
    }
}

/// Requests cores that wake quickly.
fn stay_awake(notes: &mut Vec<String>) -> Option<StayAwake> {
    let asked = StayAwake::ask();
    notes.push(match &asked {
        Ok(_) => "idle cores are kept from deep sleep during the replay".to_owned(),
        Err(error) => format!(
            "cores may sleep deeply ({error}: /dev/cpu_dma_latency): waking takes longer and costs more spinning"
        ),
    });
    asked.ok()
}

/// Distributes the stages over one reading and one or more sending threads.
fn threads(
    feedings: Vec<FeedStage>,
    egress: Vec<Egress<AnyTx>>,
    foundation: &Foundation<'_>,
    fifo: bool,
) -> Result<Vec<ThreadPlan>, StartError> {
    let Foundation {
        config, control, ..
    } = *foundation;
    let realtime = config.realtime;
    let cores = host::allowed_cores();
    // A separate thread for each output where there are cores for them, for
    // the reader and for the rest of the machine.
    let apart = cores.len() >= egress.len() + 2;
    let mut groups: Vec<Vec<_>> = Vec::new();
    for stage in egress {
        match groups.last_mut() {
            Some(group) if !apart => group.push(stage),
            _ => groups.push(vec![stage]),
        }
    }
    let pumps = groups.len();
    let mut threads = Vec::new();
    for (index, mut egress) in groups.into_iter().enumerate() {
        let pauses = Arc::new(PauseHistory::default());
        control.count_pauses(std::slice::from_ref(&pauses));
        for stage in &mut egress {
            stage.excuse_by(&pauses);
        }
        let core = apart.then(|| cores[cores.len() - 1 - index]);
        let bell = Arc::new(Bell::new()?);
        let pump = Pump {
            egress,
            pacer: Pacer::new(config.wait, pauses)?,
            bell: Arc::clone(&bell),
            control: Arc::clone(control),
            readers: 1,
            fifo: realtime && fifo,
        };
        threads.push(ThreadPlan {
            name: format!("longwire-{index}"),
            bell,
            prepare: Box::new(move || host::prepare_sender(core, realtime, fifo)),
            body: Box::new(|| pump.run()),
        });
    }
    let placed = if apart { "a core each" } else { "together" };
    let placement = format!(
        "placement: 1 reading and {pumps} sending threads, senders {placed} ({} cores)",
        cores.len()
    );
    let reader = Reader {
        feedings,
        fed: threads.iter().map(|pump| Arc::clone(&pump.bell)).collect(),
        control: Arc::clone(control),
        begin: foundation.epoch.monotonic.saturating_sub(READ_BEFORE_START),
    };
    threads.push(ThreadPlan {
        name: "longwire-read".to_owned(),
        bell: Arc::new(Bell::new()?),
        prepare: Box::new(move || {
            // The senders report the same.
            host::prepare_thread(None, realtime);
            vec![placement]
        }),
        body: Box::new(|| reader.run()),
    });
    Ok(threads)
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
    /// Builds the feeding stage of one feed with its outputs.
    fn feeding(
        &mut self,
        mut feed: Box<dyn Feed>,
        outputs: impl Iterator<Item = ReplayOutput>,
    ) -> Result<FeedStage, StartError> {
        feed.begin(self.foundation.epoch);
        let outputs: Result<Vec<_>, _> = outputs.map(|output| self.output(output)).collect();
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
            link: setup,
            sent,
            cells,
        } = output;
        let link_id = LinkId(self.assembly.sources.links.len() as u32);
        let run = self.foundation.config;
        let record_handle = || self.foundation.recorded.handle(link_id);
        let mut link = setup.config;
        link.epoch = self.foundation.epoch.monotonic;
        let read_ahead = self.config.read_ahead.0;
        let derived = || Bytes(memory_for(&link).0.saturating_add(read_ahead * 2));
        let (line, reader) = delay_line(&DelayLineConfig {
            budget: run.memory.unwrap_or_else(derived),
            huge_pages: true,
        })?;
        let described = link.describe();
        let transparent = link.rate.is_unlimited() && link.delay.mean() == Nanos::ZERO;
        let shared = Arc::new(LinkShared::new());
        let link = Link::new(link, run.seed, link_id);
        let (in_order, mtu) = (link.in_order(), link.mtu());
        let mut decider = Decider::new(link, link_id, Arc::clone(&shared), record_handle());
        if let Some(cells) = cells {
            let observed = Arc::new(ObservedOutput::new(cells, Arc::clone(&shared)));
            self.assembly.sources.observed.push(Arc::clone(&observed));
            decider.log_to(OfferLogger::new(observed, !transparent));
        }
        let (at_arrival, at_egress) = place_link(decider);
        let parts = EgressParts {
            port: port.tx,
            line: reader,
            clock: Clock::Monotonic,
            in_order,
            link: at_egress,
            record_handle: record_handle(),
            tolerance: if self.paced {
                run.tolerance
            } else {
                Nanos::MAX
            },
            grace_until: self.foundation.grace_until(),
        };
        let mut egress = Egress::new(parts, Arc::clone(&shared));
        if let Some(sent) = sent {
            egress.log_to(sent);
        }
        if self.paced {
            self.watch(&mut egress, &setup.name);
        } else {
            egress.ignore_lateness();
        }
        self.egress.push(egress);
        self.assembly.notes.extend(port.notes);
        self.assembly.sources.links.push(ReportSource {
            name: setup.name,
            config: described,
            shared: Arc::clone(&shared),
        });
        Ok(FeedingOutput {
            link: at_arrival,
            link_id,
            mtu,
            line,
            shared,
            transparent,
        })
    }

    /// Enables the accounts of the output's departures: by their handover, and
    /// by the port's send stamps.
    fn watch(&mut self, egress: &mut Egress<AnyTx>, name: &str) {
        match egress.port().launch_lead() {
            None => egress.watch_departures(),
            // The handover does not determine when frames leave.
            Some(lead) => self.assembly.notes.push(format!(
                "{name}: frames are handed over {lead} early and held until their time: \
                 lateness counts those handed over too late; only send stamps show when they \
                 leave"
            )),
        }
        let every = self.config.stamp_every;
        if every > 0 && egress.watch_sends(every).is_none() {
            self.assembly.notes.push(format!(
                "{name}: the port gives no send stamps; lateness is that of the handover"
            ));
        }
    }
}
