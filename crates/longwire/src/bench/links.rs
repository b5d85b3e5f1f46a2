//! `bench links`: what a packet costs with many links, and what a link costs.
//!
//! Frames of 64 bytes come in random order, each of one of n pairs of
//! addresses, and cross the link that is the pair's own: switch, classifier,
//! rate, queue, delay and release, in virtual time, as fast as one core goes.
//! Every link has frames in flight all the time.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use clap::Args;
use longwire_engine::models::delay::constant::ConstantDelay;
use longwire_engine::models::rate::Rate;
use longwire_engine::{BitRate, Bytes, LinkConfig, Nanos};
use longwire_io::port::mem::{Sink, Source};
use longwire_io::{Arrived, Offload, PortError, Received, RxPort};
use longwire_runtime::fabric::FabricParts;
use longwire_runtime::fabric::pipeline::{look_at_idle, run_to_end};
use longwire_units::random::Stream;
use serde::Serialize;

use super::pairs::{self, PairFrame};
use crate::Error;
use crate::table::Table;

/// What `bench links` takes.
#[derive(Clone, Debug, Args)]
pub struct LinksArgs {
    /// How many links
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,10,100,1000,10000,100000"
    )]
    pub links: Vec<u32>,
    /// Packets of each row
    #[arg(long, value_name = "N", default_value_t = 4_000_000)]
    pub packets: u64,
    /// Builds so many links, and says what memory they take; the bench calls
    /// itself so, for only a fresh process shows it
    #[arg(long, value_name = "N", hide = true)]
    pub idle: Option<u32>,
}

impl LinksArgs {
    pub(super) fn quickened(&self, quick: bool) -> LinksArgs {
        match quick {
            false => self.clone(),
            true => LinksArgs {
                links: vec![1, 1_000],
                packets: 20_000,
                ..self.clone()
            },
        }
    }
}

/// One number of links.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    links: u32,
    packets: u64,
    /// From the input's ring to the output's.
    ns_per_packet: f64,
    /// Of the first row's.
    ratio: f64,
    /// Resident memory that an idle link takes with its rule, its path and its
    /// counters, in bytes; `None` where it is too little to be seen.
    bytes_per_link: Option<u64>,
    /// Reading nothing: making configurations, rules, links and paths.
    build_ms: f64,
    missing: u64,
}

/// Frames arrive at this distance in virtual time, and stay so long.
const GAP: Nanos = Nanos::from_nanos(100);
const DELAY: Nanos = Nanos::from_millis(20);

/// A frame's length, without frame check sequence.
const LEN: u32 = 64;

/// How often each row is measured; the median counts.
const TIMES: usize = 3;

/// Links of which the memory is looked at.
const MEASURABLE: u32 = 1_000;

pub(super) fn measure(args: &LinksArgs) -> Result<Vec<Row>, Error> {
    if let Some(links) = args.idle {
        println!("{}", idle(links)?);
        return Ok(Vec::new());
    }
    let mut rows: Vec<Row> = Vec::new();
    for links in &args.links {
        let mut measured = Vec::new();
        for _ in 0..TIMES {
            measured.push(row(*links, args.packets)?);
        }
        measured.sort_by(|a, b| a.ns_per_packet.total_cmp(&b.ns_per_packet));
        let mut row = measured.swap_remove(TIMES / 2);
        let first = rows
            .first()
            .map_or(row.ns_per_packet, |row| row.ns_per_packet);
        row.ratio = row.ns_per_packet / first;
        row.bytes_per_link = match *links >= MEASURABLE {
            true => Some(idle_of_a_fresh_process(*links)? / u64::from(*links)),
            false => None,
        };
        rows.push(row);
    }
    Ok(rows)
}

/// Resident memory that so many links take, in bytes, before any frame has
/// come.
fn idle(links: u32) -> Result<u64, Error> {
    let before = resident();
    let grown = look_at_idle(parts(links)?, 1, |_| resident().saturating_sub(before));
    grown.map_err(|error| Error::Failed(error.to_string()))
}

/// The same, of a process that has held nothing before.
fn idle_of_a_fresh_process(links: u32) -> Result<u64, Error> {
    let program = std::env::current_exe()?;
    let mut command = std::process::Command::new(program);
    command.args(["bench", "links", "--quiet", "--idle", &links.to_string()]);
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let bytes = text
        .lines()
        .next()
        .and_then(|line| line.trim().parse().ok());
    bytes.ok_or_else(|| {
        let why = String::from_utf8_lossy(&output.stderr);
        Error::Failed(format!("the memory of {links} links: {why}"))
    })
}

fn row(links: u32, packets: u64) -> Result<Row, Error> {
    let started = Instant::now();
    let parts = parts(links)?;
    let prepared = started.elapsed();
    let frames = packets.max(u64::from(links) * 4);
    let flows = Flows::new(links, frames);
    let ports = vec![
        (End::Flows(Box::new(flows)), Sink::copying()),
        (
            End::Nothing(Source::new(LEN as usize, 4_096, 0)),
            Sink::copying(),
        ),
    ];
    let end = run_to_end(ports, parts, 1, Bytes(4 << 30))
        .map_err(|error| Error::Failed(error.to_string()))?;
    let arrived = end.ports[1].frames();
    Ok(Row {
        links,
        packets: frames,
        ns_per_packet: end.took.as_nanos() as f64 / frames as f64,
        ratio: 1.0,
        bytes_per_link: None,
        build_ms: (prepared + end.built).as_secs_f64() * 1e3,
        missing: frames - arrived,
    })
}

/// Links that carry twice what their share of the packets needs.
fn parts(links: u32) -> Result<FabricParts, Error> {
    let bits = u64::from(LEN) * 8 * 2;
    let rate = bits * 1_000_000_000 / GAP.as_nanos() / u64::from(links);
    let rate = BitRate::from_bits_per_sec(rate.max(1))
        .ok_or_else(|| Error::Failed("a rate out of range".to_owned()))?;
    pairs::parts(links, |_| LinkConfig {
        rate: Rate::Fixed(rate),
        delay: Box::new(ConstantDelay(DELAY)),
        ..LinkConfig::default()
    })
}

/// Frames of random flows, at an even pace.
struct Flows {
    links: u32,
    left: u64,
    at: Nanos,
    chance: Stream,
    frame: PairFrame,
}

impl Flows {
    fn new(links: u32, count: u64) -> Flows {
        Flows {
            links,
            left: count,
            at: Nanos::ZERO,
            chance: Stream::of_seed(1),
            frame: PairFrame::new(LEN),
        }
    }

    fn receive(&mut self, max: usize, take: &mut impl FnMut(Arrived<'_>)) -> Received {
        let frames = self.left.min(max as u64) as usize;
        for _ in 0..frames {
            let flow = self.chance.up_to(u64::from(self.links) - 1) as u32;
            take(Arrived {
                bytes: self.frame.set(flow, 0),
                arrival: self.at,
                offload: Offload::NONE,
                wire_len: LEN,
                lent: None,
            });
            self.at = self.at.saturating_add(GAP);
        }
        self.left -= frames as u64;
        Received {
            frames,
            end: self.left == 0,
        }
    }
}

/// The two ends of the fabric.
enum End {
    Flows(Box<Flows>),
    /// Nothing comes from the other end.
    Nothing(Source),
}

impl RxPort for End {
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut impl FnMut(Arrived<'_>),
    ) -> Result<Received, PortError> {
        match self {
            End::Flows(flows) => Ok(flows.receive(max, take)),
            End::Nothing(source) => source.receive(now, max, take),
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn frame_max(&self) -> usize {
        LEN as usize
    }
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split_whitespace().nth(1);
    let pages: u64 = pages.and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4_096
}

pub(super) fn print(rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    println!("64-byte packets of n links in random order, in virtual time; medians of {TIMES}.");
    let columns = [
        "links",
        "ns/packet",
        "ratio",
        "bytes/link",
        "build ms",
        "missing",
    ];
    let mut table = Table::new(&columns);
    for row in rows {
        table.row(vec![
            row.links.to_string(),
            format!("{:.1}", row.ns_per_packet),
            format!("{:.2}", row.ratio),
            row.bytes_per_link
                .map_or("-".to_owned(), |bytes| bytes.to_string()),
            format!("{:.1}", row.build_ms),
            row.missing.to_string(),
        ]);
    }
    table.print();
}
