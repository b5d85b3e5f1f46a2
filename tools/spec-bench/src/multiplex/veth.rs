//! Links between two real veth pairs.
//!
//! A generator at one pair sends frames of all links round-robin, evenly spaced and 5 % above the
//! links' rate; the links' queues drop the excess. A receiver at the other pair records arrivals by
//! their kernel timestamps. Both are threads of this process; the network uses the default wait mode
//! and placement.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longwire_engine::Nanos;
use longwire_io::port::options::Purpose;
use longwire_io::port::registry::Port;
use longwire_io::{PortError, PushResult, RxPort, TxFrame, TxPort};
use longwire_runtime::RunConfig;
use longwire_runtime::clock::monotonic_now;

use super::memory::{MultiplexLoad, Outcome, memory, parts, time_of};
use super::{Share, Window};
use crate::program::{self, failed, joined};
use crate::stations::Stations;
use longwire::Error;
use longwire::bench::pairs::{self, PairFrame};

/// Excess of the sending rate over the links' rates, in percent.
const EXCESS: u64 = 5;

/// Frames per batch.
const BURST: usize = 64;

/// Interval at which sender and receiver check their state.
const LOOK: Duration = Duration::from_micros(500);

/// Time for which all links carry frames before the measurement.
const WARM_UP: Duration = Duration::from_secs(2);

/// Runs the links, and measures their throughput.
pub(super) fn run(load: &MultiplexLoad, kind: &str) -> Result<Outcome, Error> {
    let stations = Stations::new(2)?;
    let parts = parts(load)?;
    let config = RunConfig {
        memory: Some(memory(load.links)),
        ..RunConfig::default()
    };
    let sender = stations.open_device(0, Purpose::Send)?;
    let receiver = stations.open_device(1, Purpose::Forward)?;
    let running = stations.start(kind, parts, config)?;
    let stop = AtomicBool::new(false);
    let counting = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| send(sender, load, &stop));
        let receiving = scope.spawn(|| receive(receiver, load.links, &counting, &stop));
        std::thread::sleep(WARM_UP);
        let from = monotonic_now();
        counting.store(true, Ordering::Release);
        std::thread::sleep(load.time);
        counting.store(false, Ordering::Release);
        let to = monotonic_now();
        stop.store(true, Ordering::Release);
        joined(sending).map_err(failed)?;
        let shares = joined(receiving).map_err(failed)?;
        Ok(Outcome {
            shares,
            window: Window { from, to },
            report: program::stop(running)?,
        })
    })
}

/// Sends frames of all links round-robin until `stop` is set.
fn send(mut port: Port, load: &MultiplexLoad, stop: &AtomicBool) -> Result<(), PortError> {
    // Time between two frames of one link; frames of the other links are evenly spaced within it.
    let period = u128::from(time_of(1, load.len, load.rate).as_nanos());
    let gap_ns = |frames: u64| {
        let nanos =
            u128::from(frames) * period * 100 / (u128::from(100 + EXCESS) * u128::from(load.links));
        Nanos::from_nanos(nanos as u64)
    };
    let mut frame = PairFrame::new(load.len);
    let start = monotonic_now();
    let mut frames = 0u64;
    while !stop.load(Ordering::Acquire) {
        let now = monotonic_now();
        let mut burst = 0;
        while burst < BURST && start.saturating_add(gap_ns(frames)) <= now {
            let pair = (frames % u64::from(load.links)) as u32;
            let bytes = frame.set(pair, frames as u32);
            if port.tx.push(TxFrame::whole(bytes, now)) != PushResult::Taken {
                break;
            }
            frames += 1;
            burst += 1;
        }
        port.tx.flush()?;
        if burst < BURST {
            std::thread::sleep(LOOK);
        }
    }
    Ok(())
}

/// Records the frames of each link in the window until `stop` is set.
fn receive(
    mut port: Port,
    links: u32,
    counting: &AtomicBool,
    stop: &AtomicBool,
) -> Result<Vec<Share>, PortError> {
    let mut shares = vec![Share::default(); links as usize];
    while !stop.load(Ordering::Acquire) {
        let counts = counting.load(Ordering::Acquire);
        let received = port.rx.receive(monotonic_now(), BURST, &mut |frame| {
            let share =
                pairs::read(frame.bytes).and_then(|(pair, _)| shares.get_mut(pair as usize));
            if let Some(share) = share.filter(|_| counts) {
                share.note(frame.arrival);
            }
        })?;
        if received.frames < BURST {
            std::thread::sleep(LOOK);
        }
    }
    Ok(shares)
}
