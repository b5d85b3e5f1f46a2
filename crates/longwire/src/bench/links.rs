//! `bench links`: cost per packet with many links, and cost per link.
//!
//! 64-byte frames of `n` address pairs arrive in random order. Each frame crosses its pair's link
//! (switch, classifier, rate, queue, delay and release) in virtual time, on one core. About 200,000
//! frames are in flight at any time. The last row models LinkEM's testbed: eight links between four
//! stations, each on a separate port, behind a learning bridge.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use clap::Args;
use longwire_engine::models::rate::Rate;
use longwire_engine::{BitRate, Bytes, LinkConfig, Nanos};
use longwire_io::port::mem::Sink;
use longwire_io::{PortError, ReceiveResult, RxFrame, RxPort};
use longwire_packet::bridge::{BridgeConfig, PortIndex, StaticEntry, Switching};
use longwire_runtime::deciding::NetworkParts;
use longwire_runtime::deciding::pipeline::{look_at_idle, run_to_end};
use longwire_units::random::Stream;
use serde::Serialize;

use super::harness::median_by;
use super::pairs::{self, PairFrame};
use crate::Error;

/// Arguments of `bench links`.
#[derive(Clone, Debug, Args)]
pub struct LinksArgs {
    /// Link counts
    #[arg(long, value_name = "N")]
    #[arg(value_delimiter = ',', default_value = "1,10,100,1000,10000,100000")]
    pub links: Vec<u32>,
    /// Packets per row
    #[arg(long, value_name = "N", default_value_t = 4_000_000)]
    pub packets: u64,
    /// Build this many links and print their memory use; the bench starts itself with this option,
    /// because a used heap would hide the growth
    #[arg(long, value_name = "N", hide = true)]
    pub idle: Option<u32>,
}

/// A row: one link count.
#[derive(Debug, Serialize)]
pub(super) struct LinksRow {
    links: u32,
    /// Number of ingress ports.
    sending_ports: u16,
    packets: u64,
    /// Time from input ring to output ring.
    ns_per_packet: f64,
    /// Cost per packet relative to the first row.
    ratio: f64,
    /// Resident memory of an idle link with its rule, path and counters, in bytes; `None` if too
    /// small to measure.
    bytes_per_link: Option<u64>,
    /// Time to build configurations, rules, links and paths; excludes file I/O.
    build_ms: f64,
    missing: u64,
}

/// Virtual time between arrivals.
pub(super) const GAP: Nanos = Nanos::from_nanos(100);
const DELAY: Nanos = Nanos::from_millis(20);

/// Frame length in bytes, without FCS.
pub(super) const LEN: u32 = 64;

/// Stations in LinkEM's testbed, each on a separate port.
const STATIONS: u16 = 4;

/// Links between the stations: each station links to both neighbours.
const STATION_LINKS: u32 = 8;

/// Measurements per row; the row reports the median.
const TIMES: usize = 3;

/// Minimum link count for a memory measurement.
const MEASURABLE: u32 = 1_000;

/// Test conditions, printed above the table.
pub(super) const ABOUT: &str =
    "64-byte packets of n links in random order, in virtual time; medians of 3.";

pub(super) fn measure(args: &LinksArgs) -> Result<Vec<LinksRow>, Error> {
    let mut rows: Vec<LinksRow> = Vec::new();
    for links in &args.links {
        let mut row = median(|| row(*links, args.packets))?;
        if *links >= MEASURABLE {
            row.bytes_per_link = Some(idle_of_a_fresh_process(*links)? / u64::from(*links));
        }
        rows.push(row);
    }
    rows.push(median(|| between_stations(args.packets))?);
    let first = rows[0].ns_per_packet;
    for row in &mut rows {
        row.ratio = row.ns_per_packet / first;
    }
    Ok(rows)
}

/// Returns the median of several measurements.
fn median(mut measure: impl FnMut() -> Result<LinksRow, Error>) -> Result<LinksRow, Error> {
    let rows: Result<Vec<LinksRow>, Error> = (0..TIMES).map(|_| measure()).collect();
    Ok(median_by(rows?, |row| row.ns_per_packet))
}

/// Measures the topology of LinkEM's testbed.
fn between_stations(packets: u64) -> Result<LinksRow, Error> {
    let started = Instant::now();
    let mut parts = parts(STATION_LINKS)?;
    let station = |port| StaticEntry {
        vlan: 0,
        mac: mac_of(port),
        port: PortIndex(port),
    };
    parts.switch = BridgeConfig {
        switching: Switching::Bridge,
        statics: (0..STATIONS).map(station).collect(),
        ..BridgeConfig::new(STATIONS)
    };
    let prepared = started.elapsed();
    let each = packets / u64::from(STATIONS);
    let flows = (0..STATIONS).map(|port| Flows::of_station(port, each));
    run(flows.collect(), parts, Bytes(1 << 30), prepared)
}

/// Returns the row of a network; each of `flows` enters at a separate port.
fn run(
    flows: Vec<Flows>,
    parts: NetworkParts,
    memory: Bytes,
    prepared: Duration,
) -> Result<LinksRow, Error> {
    let links = parts.links.len() as u32;
    let frames: u64 = flows.iter().map(|flows| flows.left).sum();
    let sending_ports = flows.iter().filter(|flows| flows.left > 0).count() as u16;
    let ports = flows.into_iter().map(|flows| (flows, Sink::copying()));
    let end = run_to_end(ports.collect(), parts, (1, memory), None).map_err(Error::failed)?;
    let arrived: u64 = end.ports.iter().map(Sink::frames).sum();
    Ok(LinksRow {
        links,
        sending_ports,
        packets: frames,
        ns_per_packet: end.took.as_nanos() as f64 / frames as f64,
        ratio: 1.0,
        bytes_per_link: None,
        build_ms: (prepared + end.built).as_secs_f64() * 1e3,
        missing: frames.saturating_sub(arrived),
    })
}

/// Returns the MAC address of the station at a port.
fn mac_of(port: u16) -> [u8; 6] {
    [2, 0, 0, 0, 1, port as u8]
}

/// Returns the resident memory of `links` idle links, in bytes.
pub(super) fn idle(links: u32) -> Result<u64, Error> {
    let before = resident();
    look_at_idle(parts(links)?, 1, |_| resident().saturating_sub(before)).map_err(Error::failed)
}

/// Like [`idle`], measured in a new process with an untouched heap.
fn idle_of_a_fresh_process(links: u32) -> Result<u64, Error> {
    let program = std::env::current_exe()?;
    let mut command = std::process::Command::new(program);
    command.args(["bench", "links", "--quiet", "--idle", &links.to_string()]);
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next();
    let bytes = line.and_then(|line| line.trim().parse().ok());
    bytes.ok_or_else(|| {
        let why = String::from_utf8_lossy(&output.stderr);
        Error::failed(format!("cannot measure the memory of {links} links: {why}"))
    })
}

fn row(links: u32, packets: u64) -> Result<LinksRow, Error> {
    let started = Instant::now();
    let parts = parts(links)?;
    let prepared = started.elapsed();
    let frames = packets.max(u64::from(links) * 4);
    let flows = vec![Flows::new(links, frames), Flows::new(links, 0)];
    run(flows, parts, Bytes(4 << 30), prepared)
}

/// Builds links, each at twice its share of the arrival rate.
pub(super) fn parts(links: u32) -> Result<NetworkParts, Error> {
    let rate = u64::from(LEN) * 8 * 2 * 1_000_000_000 / GAP.as_nanos() / u64::from(links);
    let rate = BitRate::from_bits_per_sec(rate.max(1))
        .ok_or_else(|| Error::failed("a rate out of range"))?;
    pairs::parts(links, |_| LinkConfig {
        rate: Rate::Fixed(rate),
        delay: DELAY.into(),
        ..LinkConfig::default()
    })
}

/// Frames of randomly chosen flows at a constant rate.
struct Flows {
    /// First flow and number of flows.
    first: u32,
    links: u32,
    left: u64,
    at: Nanos,
    gap: Nanos,
    chance: Stream,
    frame: PairFrame,
    /// Sending station; `None` if frames have fixed Ethernet addresses.
    station: Option<u16>,
}

impl Flows {
    fn new(links: u32, count: u64) -> Flows {
        Flows {
            first: 0,
            links,
            left: count,
            at: Nanos::ZERO,
            gap: GAP,
            chance: Stream::of_seed(1),
            frame: PairFrame::new(LEN),
            station: None,
        }
    }

    /// Returns the frames sent by one station to both of its neighbours in the ring.
    fn of_station(station: u16, count: u64) -> Flows {
        let places = u64::from(STATIONS);
        Flows {
            first: 2 * u32::from(station),
            at: Nanos::from_nanos(GAP.as_nanos() * u64::from(station)),
            gap: Nanos::from_nanos(GAP.as_nanos() * places),
            chance: Stream::of_seed(1 + u64::from(station)),
            station: Some(station),
            ..Flows::new(2, count)
        }
    }
}

impl RxPort for Flows {
    fn receive(
        &mut self,
        _now: Nanos,
        max: usize,
        take: &mut impl FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        let frames = self.left.min(max as u64) as usize;
        for _ in 0..frames {
            let chosen = self.chance.up_to(u64::from(self.links) - 1) as u32;
            if let Some(station) = self.station {
                let neighbour = (station + if chosen == 0 { 1 } else { STATIONS - 1 }) % STATIONS;
                self.frame.set_macs(mac_of(station), mac_of(neighbour));
            }
            let bytes = self.frame.set(self.first + chosen, 0);
            take(RxFrame::whole(bytes, self.at));
            self.at = self.at.saturating_add(self.gap);
        }
        self.left -= frames as u64;
        Ok(ReceiveResult {
            frames,
            end: self.left == 0,
        })
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn frame_max(&self) -> usize {
        LEN as usize
    }
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split_whitespace().nth(1);
    let pages: u64 = pages.and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4_096
}
