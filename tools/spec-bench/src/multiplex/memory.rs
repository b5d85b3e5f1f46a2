//! Links between two memory ports in real time: the throughput of the emulator itself.
//!
//! The senders ([`Flows`]) are the input port: they return frames from memory, with the addresses
//! of the pair written into them. The output port copies frames as a driver would, and returns
//! acknowledgements to the senders. Everything in between is the live network with its stages,
//! threads and clock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longwire_engine::models::{self, rate::Rate};
use longwire_engine::{BitRate, Bytes, LinkConfig, Nanos};
use longwire_io::port::mem::Sink;
use longwire_io::port::one_way::{DiscardTx, SilentRx};
use longwire_io::port::own::OwnRx;
use longwire_io::port::registry::{AnyRx, AnyTx, Port};
use longwire_io::{Offload, PortError, PushResult, ReceiveResult, RxFrame, TxFrame, TxPort};
use longwire_runtime::clock::monotonic_now;
use longwire_runtime::deciding::NetworkParts;
use longwire_runtime::stage::BURST;
use longwire_runtime::{NetworkPlan, Placement, RunConfig, RunReport, WaitMode};

use super::flows::{Ack, Flows};
use super::share::{Share, Window};
use super::{FRAMING, QUEUE};
use crate::program::{cpu_of_thread, failed, start, stop};
use longwire::Error;
use longwire::bench::pairs::{self, PairFrame};

/// Delay of the links; acknowledgements are not delayed.
const DELAY: Nanos = Nanos::from_millis(10);

/// Address space per frame in flight, including its record. Pages become resident only on first
/// use.
const PER_FRAME: u64 = 4_096;

/// Number of frames on a link's delay line for which memory is reserved.
const ON_THE_WAY: u64 = 44;

/// Interval over which the senders start.
const SPREAD: Nanos = Nanos::from_secs(1);

/// State shared by sender and receiver.
struct Loop {
    acks: Mutex<Vec<Ack>>,
    shares: Mutex<Vec<Share>>,
    /// Whether arrivals are counted.
    counting: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The input port.
struct SenderPort {
    flows: Flows,
    frame: PairFrame,
    len: u32,
    heard: Vec<Ack>,
    shared: Arc<Loop>,
}

impl OwnRx for SenderPort {
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut dyn FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        std::mem::swap(&mut self.heard, &mut *locked(&self.shared.acks));
        self.flows.hear(self.heard.drain(..));
        let (frame, wire_len) = (&mut self.frame, self.len);
        let frames = self.flows.send(now, max, |flow, number| {
            take(RxFrame {
                bytes: frame.set(flow, number),
                arrival: now,
                offload: Offload::NONE,
                wire_len,
                lent: None,
            });
        });
        Ok(ReceiveResult { frames, end: false })
    }

    fn frame_max(&self) -> usize {
        self.len as usize
    }
}

/// The output port.
struct ReceiverPort {
    sink: Sink,
    batch: Vec<Ack>,
    shared: Arc<Loop>,
}

impl TxPort for ReceiverPort {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if let Some((flow, number)) = pairs::read(frame.bytes) {
            self.batch.push(Ack { flow, number });
        }
        self.sink.push(frame)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        let left = self.sink.flush()?;
        if self.shared.counting.load(Ordering::Acquire) {
            let now = monotonic_now();
            let mut shares = locked(&self.shared.shares);
            for ack in &self.batch {
                if let Some(share) = shares.get_mut(ack.flow as usize) {
                    share.note(now);
                }
            }
        }
        locked(&self.shared.acks).append(&mut self.batch);
        Ok(left)
    }

    fn free_slots(&self) -> usize {
        self.sink.free_slots()
    }

    fn unsent(&self) -> usize {
        self.sink.unsent()
    }
}

/// Load of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct MultiplexLoad {
    pub links: u32,
    pub rate: BitRate,
    pub len: u32,
    pub time: Duration,
    pub wait: WaitMode,
    pub placement: Placement,
}

/// Results of a run.
pub(super) struct Outcome {
    pub shares: Vec<Share>,
    pub window: Window,
    pub report: RunReport,
}

/// Returns a link with this rate and a short queue.
fn link(rate: BitRate) -> Result<LinkConfig, Error> {
    let queue = format!("{QUEUE}p");
    let queue = models::QUEUE.parse(&queue);
    let queue = queue.map_err(failed)?;
    Ok(LinkConfig {
        rate: Rate::Fixed(rate),
        framing: FRAMING,
        queue: Some(queue),
        delay: DELAY.into(),
        ..LinkConfig::default()
    })
}

/// Returns the links of a load, one per pair.
pub(super) fn parts(load: &MultiplexLoad) -> Result<NetworkParts, Error> {
    let configs = (0..load.links).map(|_| link(load.rate));
    let mut configs = configs.collect::<Result<Vec<_>, _>>()?.into_iter();
    pairs::parts(load.links, |_| configs.next().unwrap_or_default())
}

/// Returns the transmission time of `frames` frames at this rate.
pub(super) fn time_of(frames: u64, len: u32, rate: BitRate) -> Nanos {
    let bits = u128::from(frames) * u128::from(FRAMING.wire_bits(len));
    let nanos = bits * 1_000_000_000 / u128::from(rate.bits_per_sec().max(1));
    Nanos::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Returns the memory for full queues and [`ON_THE_WAY`] further frames on each of `links` links.
pub(super) fn memory(links: u32) -> Bytes {
    Bytes((256 << 20) + u64::from(links) * (QUEUE + ON_THE_WAY) * PER_FRAME)
}

/// Runs a sender on each link and measures the links' throughput.
pub(super) fn run(load: &MultiplexLoad) -> Result<Outcome, Error> {
    let shared = Arc::new(Loop {
        acks: Mutex::new(Vec::new()),
        shares: Mutex::new(vec![Share::default(); load.links as usize]),
        counting: AtomicBool::new(false),
    });
    let parts = parts(load)?;
    let config = RunConfig {
        wait: load.wait,
        placement: load.placement,
        memory: Some(memory(load.links)),
        ..RunConfig::default()
    };
    let ports = ports(load, &shared);
    let plan = NetworkPlan::changeable(ports, parts);
    let running = start(plan, config)?;
    std::thread::sleep(warm_up(load));
    let from = monotonic_now();
    shared.counting.store(true, Ordering::Release);
    let started = Instant::now();
    while started.elapsed() < load.time && !running.ended() {
        std::thread::sleep(Duration::from_millis(20).min(load.time));
    }
    shared.counting.store(false, Ordering::Release);
    let to = monotonic_now();
    let report = stop(running)?;
    let shares = locked(&shared.shares).clone();
    Ok(Outcome {
        shares,
        window: Window { from, to },
        report,
    })
}

fn ports(load: &MultiplexLoad, shared: &Arc<Loop>) -> Vec<(String, Port)> {
    let timeout = time_of(4 * QUEUE, load.len, load.rate).saturating_add(Nanos::from_secs(1));
    let sending = SenderPort {
        flows: Flows::new(load.links, SPREAD, timeout),
        frame: PairFrame::new(load.len),
        len: load.len,
        heard: Vec::new(),
        shared: Arc::clone(shared),
    };
    let receiving = ReceiverPort {
        sink: Sink::copying(),
        batch: Vec::new(),
        shared: Arc::clone(shared),
    };
    let port = |name: &str, rx, tx| (name.to_owned(), Port::with_halves(name, rx, tx));
    vec![
        port(
            "senders",
            AnyRx::Own(Box::new(sending)),
            AnyTx::Discard(DiscardTx::default()),
        ),
        port(
            "receivers",
            AnyRx::Silent(SilentRx),
            AnyTx::Own(Box::new(receiving)),
        ),
    ]
}

/// Returns the time until all senders have started and filled their queue once.
fn warm_up(load: &MultiplexLoad) -> Duration {
    let filling = time_of(2 * QUEUE, load.len, load.rate);
    let time = SPREAD.saturating_add(DELAY).saturating_add(filling);
    Duration::from_nanos(time.as_nanos()).min(load.time.max(Duration::from_secs(2)))
}

/// Returns the CPU time per frame of the senders and receivers alone, in nanoseconds, with all
/// frames in flight.
pub(super) fn own_cost(links: u32, len: u32) -> f64 {
    let mut flows = Flows::new(links, Nanos::ZERO, Nanos::MAX);
    let mut frame = PairFrame::new(len);
    let mut sink = Sink::copying();
    let mut acks = VecDeque::new();
    let mut burst = |flows: &mut Flows, acks: &mut VecDeque<Ack>| {
        let sent = flows.send(monotonic_now(), BURST, |flow, number| {
            sink.push(TxFrame::whole(frame.set(flow, number), Nanos::ZERO));
            acks.push_back(Ack { flow, number });
        });
        // A memory sink accepts every frame.
        let _ = sink.flush();
        sent
    };
    // Start all senders, and let them send without acknowledgements until their windows are full.
    while burst(&mut flows, &mut acks) > 0 {}
    let (mut frames, used) = (0, cpu_of_thread());
    while cpu_of_thread().saturating_sub(used) < Duration::from_millis(50) {
        let heard = acks.len().min(BURST);
        flows.hear(acks.drain(..heard));
        frames += burst(&mut flows, &mut acks);
    }
    let used = cpu_of_thread().saturating_sub(used);
    used.as_nanos() as f64 / frames.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::share::judge;
    use super::*;
    use crate::program::lost_at;

    #[test]
    fn every_link_is_loaded() {
        let rate = BitRate::from_bits_per_sec(10_000_000).unwrap();
        let load = MultiplexLoad {
            links: 3,
            rate,
            len: 1514,
            time: Duration::from_millis(500),
            wait: WaitMode::Adaptive,
            placement: Placement::Together,
        };
        let outcome = run(&load).unwrap();
        assert_eq!(lost_at(&outcome.report.ports), 0);
        let frame_bits = FRAMING.wire_bits(load.len);
        let found = judge(&outcome.shares, outcome.window, 10_000_000, frame_bits, 0.5);
        // A busy machine may delay frames, but not stop a link.
        assert_eq!(found.outside, 0, "{found:?}");
    }
}
