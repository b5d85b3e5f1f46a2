//! Starting, watching and stopping a run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longwire_engine::{Bytes, Link, LinkConfig, LinkId};
use longwire_io::TxPort;
use longwire_io::delay_line::{DelayLineConfig, delay_line};
use longwire_io::port::{AnyRx, AnyTx, Port};

use crate::clock::{Clock, monotonic_now};
use crate::config::{LinkSetup, RunConfig};
use crate::counters::LinkShared;
use crate::host;
use crate::placement::{self, Layout};
use crate::record::{Epoch, Recorder, Recording};
use crate::report::{LinkReport, RunReport};
use crate::stage::{
    AddressWatch, Decider, Egress, EgressParts, Ingress, IngressParts, PortAddresses, place_link,
    shares_memory,
};
use crate::start_error::StartError;
use crate::summary;
use crate::thread::Worker;
use crate::threads::Threads;

/// One direction before the start of its threads.
struct Direction {
    ingress: Ingress<AnyRx>,
    egress: Egress<AnyTx>,
    watched: ReportSource,
}

/// Data of a direction for reports.
pub(crate) struct ReportSource {
    pub name: String,
    pub config: Vec<(&'static str, String)>,
    pub shared: Arc<LinkShared>,
}

/// A running link. Dropped, it is stopped, and its report is lost.
pub struct Running {
    config: RunConfig,
    links: Vec<ReportSource>,
    threads: Threads,
    started: Instant,
    epoch: Epoch,
    notes: Vec<String>,
    addresses: Arc<AddressWatch>,
}

/// Data common to both directions before they run.
struct Common<'a> {
    config: &'a RunConfig,
    epoch: Epoch,
    recording: Option<&'a Recording>,
}

/// Starts a link between two ports: `ab` from `a` to `b`, `ba` back.
///
/// # Errors
/// [`StartError::Memory`], [`StartError::Event`] or [`StartError::Thread`] if the
/// system refuses memory for frames, an event descriptor or a thread.
pub fn start(
    a: Port,
    b: Port,
    ab: LinkSetup,
    ba: Option<LinkSetup>,
    config: RunConfig,
) -> Result<Running, StartError> {
    start_recorded(a, b, ab, ba, config, None)
}

/// Like [`start`], and records the whole run: then super-packets are cut into
/// their frames.
///
/// # Errors
/// As [`start`].
pub fn start_recorded(
    a: Port,
    b: Port,
    ab: LinkSetup,
    ba: Option<LinkSetup>,
    config: RunConfig,
    recorder: Option<Box<dyn Recorder>>,
) -> Result<Running, StartError> {
    let mut notes: Vec<String> = [&a, &b]
        .into_iter()
        .flat_map(|port| port.notes.clone())
        .collect();
    // Schedules of both directions count from one instant.
    let epoch = Epoch::now();
    let recording = recorder.is_some().then(Recording::new);
    let common = Common {
        config: &config,
        epoch,
        recording: recording.as_ref(),
    };
    let addresses = AddressWatch::new(vec![a.name.clone(), b.name.clone()]);
    let mut directions = vec![direction(a.rx, b.tx, ab, LinkId(0), &common)?];
    if let Some(ba) = ba {
        let mut back = direction(b.rx, a.tx, ba, LinkId(1), &common)?;
        // Without a link back, answers cannot arrive.
        directions[0].watch_addresses(addresses.port(0), addresses.port(1));
        back.watch_addresses(addresses.port(1), addresses.port(0));
        directions.push(back);
    }
    let (watched, stages): (Vec<_>, Vec<_>) = directions
        .into_iter()
        .map(|direction| (direction.watched, (direction.ingress, direction.egress)))
        .unzip();
    let layout = Layout::choose(config.placement, config.wait, host::cores());
    notes.push(layout.describe());
    let threads = Threads::new(config.faults.clone());
    let workers = placement::workers(stages, layout, config.wait, threads.control())?;
    let mut running = Running {
        config,
        links: watched,
        threads,
        started: Instant::now(),
        epoch,
        notes,
        addresses,
    };
    if let (Some(recording), Some(recorder)) = (recording, recorder) {
        running.threads.record(recording, recorder, epoch)?;
    }
    for (index, worker) in workers.into_iter().enumerate() {
        running.spawn(worker, index, layout)?;
    }
    Ok(running)
}

impl Direction {
    /// Watches address resolution at the input and the output port.
    fn watch_addresses(&mut self, input: PortAddresses, output: PortAddresses) {
        self.ingress.watch_addresses(input);
        self.egress.watch_addresses(output);
    }
}

fn direction(
    rx: AnyRx,
    tx: AnyTx,
    mut setup: LinkSetup,
    link_id: LinkId,
    common: &Common<'_>,
) -> Result<Direction, StartError> {
    let config = common.config;
    let record_handle = || {
        common
            .recording
            .map(|recording| recording.record_handle(link_id))
    };
    setup.config.epoch = common.epoch.monotonic;
    let budget = config.memory.unwrap_or_else(|| memory_for(&setup.config));
    let (writer, reader) = delay_line(&DelayLineConfig {
        budget,
        huge_pages: true,
    })?;
    let shared = Arc::new(LinkShared::new());
    let described = setup.config.describe();
    let link = Link::new(setup.config, config.seed, link_id);
    let (in_order, mtu) = (link.in_order(), link.mtu());
    let decider = Decider::new(link, link_id, Arc::clone(&shared), record_handle());
    let (at_ingress, at_egress) = place_link(decider);
    let lends = shares_memory(&rx, &tx) && at_ingress.is_some() && common.recording.is_none();
    let ingress = IngressParts {
        port: rx,
        link: at_ingress,
        link_id,
        mtu,
        line: writer,
        clock: Clock::Monotonic,
        keep_offload: tx.takes_offload(),
        lend_from: lends.then_some(LEND_FROM),
    };
    let egress = EgressParts {
        port: tx,
        line: reader,
        clock: Clock::Monotonic,
        in_order,
        link: at_egress,
        record_handle: record_handle(),
        tolerance: config.tolerance,
        grace_until: common.epoch.monotonic.saturating_add(config.grace),
    };
    Ok(Direction {
        ingress: Ingress::new(ingress, Arc::clone(&shared)),
        egress: Egress::new(egress, Arc::clone(&shared)),
        watched: ReportSource {
            name: setup.name,
            config: described,
            shared,
        },
    })
}

/// From this length on, lending a frame costs less than copying it.
pub const LEND_FROM: usize = 256;

/// The range of the default memory of a direction's frames.
const MEMORY_MIN: Bytes = Bytes(256 << 20);
const MEMORY_MAX: Bytes = Bytes(4 << 30);

/// Returns the default budget: four times the content of the link's queue and
/// delay line (small frames need descriptors too), or 256 MiB, whichever is
/// more, and at most 4 GiB. Only used memory is taken from the system.
pub(crate) fn memory_for(config: &LinkConfig) -> Bytes {
    let wanted = memory_held(config).saturating_mul(4);
    Bytes(wanted.clamp(MEMORY_MIN.0, MEMORY_MAX.0))
}

/// Returns the maximum number of bytes in a link's queue and delay line.
pub(crate) fn memory_held(config: &LinkConfig) -> u64 {
    let queue = config.queue_limit().bytes.map_or(0, |limit| limit.0);
    let line = match config.rate.bit_rate() {
        Some(rate) => rate.bytes_in(config.delay.mean().saturating_mul(2)).0,
        // Ten gigabits a second is more than a live port carries here.
        None => config.delay.mean().as_nanos().saturating_mul(5) / 4,
    };
    queue.saturating_add(line)
}

impl Running {
    fn spawn(&mut self, worker: Worker, index: usize, layout: Layout) -> Result<(), StartError> {
        let bell = Arc::clone(&worker.bell);
        let (core, realtime) = (layout.core_of(index), self.config.realtime);
        let prepare = move || host::prepare_thread(core, realtime);
        let name = format!("longwire-{index}");
        self.threads
            .spawn(&name, bell, &mut self.notes, prepare, || worker.run())
    }

    /// Returns the notes made at the start, as sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether the run has ended by itself: every input has ended, a port was
    /// lost, or a plugin failed.
    pub fn ended(&self) -> bool {
        self.threads.ended()
    }

    /// Waits for the run to end by itself, for `timeout` at most; returns
    /// whether it has.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.threads.wait(timeout)
    }

    /// Returns the current report.
    pub fn snapshot(&self) -> RunReport {
        RunReport {
            seed: self.config.seed,
            epoch_ns: self.epoch.wall.as_nanos(),
            duration_s: self.started.elapsed().as_secs_f64(),
            links: self.links.iter().map(ReportSource::report).collect(),
            notes: self.notes.clone(),
            ..RunReport::default()
        }
    }

    /// Stops the run and returns its complete report. Frames that still wait
    /// count as in flight.
    pub fn stop(mut self) -> RunReport {
        let stopped = self.threads.stop();
        // Its last batches count too.
        let mut report = self.snapshot();
        stopped.add_to(&mut report);
        report.add_closing_notes(self.addresses.notes(monotonic_now()));
        report
    }
}

impl ReportSource {
    pub fn report(&self) -> LinkReport {
        summary::link(&self.name, &self.config, &self.shared)
    }
}
