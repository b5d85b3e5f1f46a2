//! Small-frame throughput over eight links.
//!
//! One thread sends 64-byte frames round-robin from all four stations, over two links each, at an
//! even rate; the stations' devices count arrivals. Bisection finds the highest rate with a loss of
//! at most one frame in a thousand. A flood then measures the throughput under overload.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_io::port::options::Purpose;
use longwire_io::port::registry::Port;
use longwire_io::{PortError, PushResult, TxFrame, TxPort};
use longwire_testbed::support;
use longwire_testbed::support::frames::udp4;
use serde::Serialize;

use super::STATIONS;
use crate::program::failed;
use crate::stations::Stations;
use longwire::Error;

/// Number of links, two from each station.
pub(super) const LINKS: usize = 2 * STATIONS;

/// Frame length without FCS.
const LEN: usize = 64;

/// Bytes before a datagram's payload.
const UDP_HEADERS: usize = 14 + 20 + 8;

/// Frames sent per batch on one link.
const BURST: usize = 64;

/// Maximum fraction of lost frames.
const MISSING_MAX: f64 = 0.001;

/// Bisection steps.
const HALVINGS: u32 = 7;

/// Time in which all queues drain.
const SETTLE: Duration = Duration::from_millis(100);

/// Results, in frames per second.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Throughput {
    links: usize,
    size: usize,
    /// Highest rate within the permitted loss.
    whole_pps: f64,
    /// Rates of the flood: sent and delivered.
    flood_sent_pps: f64,
    flood_passed_pps: f64,
}

/// Appends the links to a topology. No station has their addresses, so arriving frames are counted
/// and discarded.
pub(super) fn links(text: &mut String) {
    for link in 0..LINKS {
        let [from, to] = addresses(link).map(|[a, b, c, d]| format!("{a}.{b}.{c}.{d}"));
        let _ = write!(
            text,
            "\n[[link]]\nname = \"small{link}\"\nmatch = \"src={from},dst={to}\"\n\
             rate = \"1gbit\"\ndelay = \"1ms\"\n"
        );
    }
}

fn addresses(link: usize) -> [[u8; 4]; 2] {
    [1, 2].map(|host| [10, 79, link as u8, host])
}

/// Returns the stations at a link's ends.
fn ends(link: usize) -> (usize, usize) {
    let from = link % STATIONS;
    (from, (from + 1 + link / STATIONS) % STATIONS)
}

fn frame(link: usize) -> Vec<u8> {
    let (from, to) = ends(link);
    let [source, destination] = addresses(link);
    let mut frame = udp4(source, destination, (0, 0), &[0; LEN - UDP_HEADERS]);
    frame[..6].copy_from_slice(&support::Stations::mac(to));
    frame[6..12].copy_from_slice(&support::Stations::mac(from));
    frame
}

/// Sender of frames from all stations.
struct StationSender<'a> {
    stations: &'a Stations,
    ports: Vec<Port>,
    frames: Vec<Vec<u8>>,
}

/// Result at one rate.
#[derive(Clone, Copy, Debug)]
struct PaceResult {
    sent_pps: f64,
    passed_pps: f64,
}

impl PaceResult {
    fn is_whole(self) -> bool {
        self.passed_pps >= self.sent_pps * (1.0 - MISSING_MAX)
    }
}

pub(super) fn measure(stations: &Stations, time: Duration) -> Result<Throughput, Error> {
    let ports = (0..STATIONS).map(|station| stations.open_device(station, Purpose::Send));
    let mut sender = StationSender {
        stations,
        ports: ports.collect::<Result<_, _>>()?,
        frames: (0..LINKS).map(frame).collect(),
    };
    let time = time.max(Duration::from_millis(50));
    let flood = sender.pass(f64::INFINITY, time)?;
    let (mut most, mut too_many) = (0.0, flood.sent_pps);
    for _ in 0..HALVINGS {
        let pace = f64::midpoint(most, too_many);
        let passed = sender.pass(pace, time)?;
        if passed.is_whole() {
            most = passed.passed_pps.max(most);
        } else {
            too_many = pace;
        }
    }
    Ok(Throughput {
        links: LINKS,
        size: LEN,
        whole_pps: most,
        flood_sent_pps: flood.sent_pps,
        flood_passed_pps: flood.passed_pps,
    })
}

impl StationSender<'_> {
    /// Sends `pps` frames per second for `time`.
    fn pass(&mut self, pps: f64, time: Duration) -> Result<PaceResult, Error> {
        let before = self.stations.received()?;
        let start = Instant::now();
        let mut sent = 0u64;
        let mut turns = 0u64;
        while start.elapsed() < time {
            let link = (turns % LINKS as u64) as usize;
            sent += self.burst(link).map_err(failed)? as u64;
            turns += 1;
            let due = turns as f64 * BURST as f64 / pps;
            while start.elapsed().as_secs_f64() < due {
                std::hint::spin_loop();
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        std::thread::sleep(SETTLE);
        let passed = self.stations.received()? - before;
        Ok(PaceResult {
            sent_pps: sent as f64 / seconds,
            passed_pps: passed as f64 / seconds,
        })
    }

    fn burst(&mut self, link: usize) -> Result<usize, PortError> {
        let port = &mut self.ports[ends(link).0];
        for _ in 0..BURST {
            let frame = TxFrame::whole(&self.frames[link], Nanos::ZERO);
            if port.tx.push(frame) != PushResult::Taken {
                break;
            }
        }
        port.tx.flush()
    }
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::frames::header_holds;

    use super::*;

    #[test]
    fn frames_have_the_addresses_of_their_links_and_a_right_checksum() {
        for link in 0..LINKS {
            let frame = frame(link);
            let (from, to) = ends(link);
            assert_ne!(from, to);
            assert_eq!(frame[..6], support::Stations::mac(to));
            assert_eq!(frame[26..30], [10, 79, link as u8, 1]);
            assert_eq!(frame.len(), LEN);
            assert!(header_holds(&frame, 14));
        }
    }
}
