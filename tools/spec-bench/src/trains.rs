//! `trains`: cost of link options, as seen by the programs on both sides. Measured with TCP, whose
//! sender hands over trains of wire frames, and with floods of 64-byte datagrams.
//!
//! Each row is a `longwire exec` as started by users, with traffic of ordinary sockets in its
//! networks. Rounds interleave all rows and a bare veth pair, and rows compare medians over the
//! rounds.

use std::fs;
use std::time::{Duration, Instant};

use clap::Args;
use longwire::Error;
use longwire::bench::harness::{in_turn, median};
use longwire::bench::testbed::Testbed;
use longwire_engine::Nanos;
use longwire_testbed::support::Folder;
use longwire_traffic::sockets::{Datagrams, Path, UdpFlow, tcp_flow, udp_flow};
use serde::Serialize;
use serde_json::Value;

use crate::program;
use crate::program::{ExecRun, Measurement};

/// Arguments of `trains`.
#[derive(Clone, Debug, Args)]
pub struct TrainsArgs {
    /// Duration of each flow: one of TCP and two of datagrams for each row and round
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub time: Nanos,
    /// Interleaved rounds over all rows
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Only rows whose names contain one of these words; the pair and the plain link are always
    /// included
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    pub only: Vec<String>,
}

/// Reference for the TCP throughput of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reference {
    Nothing,
    Plain,
    /// The lower of the plain link's throughput and 10 Gbit/s.
    PlainOrRate,
    Tap,
}

use Reference::{Nothing, Plain, PlainOrRate, Tap};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Setup {
    name: &'static str,
    /// Options of `exec`; `None` for a bare veth pair.
    options: Option<&'static str>,
    reference: Reference,
    /// Minimum TCP throughput, relative to the reference.
    tcp_bar: f64,
}

/// Minimum throughput of 64-byte datagrams, relative to the bare pair.
const UDP_BAR: f64 = 0.8;

/// Rate of rows that have one, in Gbit/s.
const RATE_GBIT: f64 = 10.0;

/// Path of a file with a single-link network, in the working directory of the program.
const NETWORK_FILE: &str = "network.toml";

const BARE: &str = "bare pair";
const PLAIN: &str = "plain link";
const TAP: &str = "plain, tap";

const fn setup(
    name: &'static str,
    options: Option<&'static str>,
    reference: Reference,
    tcp_bar: f64,
) -> Setup {
    Setup {
        name,
        options,
        reference,
        tcp_bar,
    }
}

const ROWS: [Setup; 14] = [
    setup(BARE, None, Nothing, 0.0),
    setup(PLAIN, Some("--port packet"), Nothing, 0.0),
    setup(TAP, Some("--port tap"), Plain, 0.0),
    setup("auto", Some("--port auto"), Tap, 0.0),
    setup("rate", Some("--rate 10gbit"), PlainOrRate, 0.8),
    setup(
        "codel",
        Some("--rate 10gbit --queue codel"),
        PlainOrRate,
        0.6,
    ),
    setup(
        "fq-codel",
        Some("--rate 10gbit --queue fq-codel"),
        PlainOrRate,
        0.6,
    ),
    setup("pie", Some("--rate 10gbit --queue pie"), PlainOrRate, 0.6),
    setup(
        "dualpi2",
        Some("--rate 10gbit --queue dualpi2"),
        PlainOrRate,
        0.6,
    ),
    setup("capture", Some("--capture frames"), Plain, 0.5),
    setup("loss", Some("--loss 0.0001%"), Plain, 0.6),
    setup("duplicate", Some("--duplicate 0.0001%"), Plain, 0.6),
    setup("corrupt", Some("--corrupt 0.0001%"), Plain, 0.6),
    setup("network", Some(NETWORK_FILE), Plain, 0.6),
];

/// Medians of one row.
#[derive(Debug, Serialize)]
pub struct TrainsRow {
    name: &'static str,
    options: Option<&'static str>,
    tcp_gbit: f64,
    /// TCP throughput relative to the reference, and its bar.
    tcp_share: Option<f64>,
    tcp_bar: f64,
    /// CPU time of the emulator during the TCP flow, in cores: in the kernel, and in user space.
    tcp_kernel_cores: f64,
    tcp_own_cores: f64,
    /// 99th percentile of the lateness of the TCP flow's frames, in microseconds.
    tcp_late_p99_us: f64,
    udp_kpps: f64,
    /// Throughput of 64-byte datagrams relative to the bare pair: with one flow, and with a
    /// thousand flows.
    udp_share: f64,
    udp_flows_share: f64,
    udp_bar: f64,
    rounds: usize,
}

impl Measurement for TrainsArgs {
    type Found = Vec<TrainsRow>;

    const ABOUT: &'static str =
        "TCP, and 64-byte datagrams at full speed; CPU of the emulator in cores.";

    fn quick(&self) -> TrainsArgs {
        TrainsArgs {
            time: Nanos::from_millis(100),
            rounds: 1,
            only: vec!["codel".to_owned(), "network".to_owned()],
        }
    }

    fn measure(&self, _port: &str) -> Result<Vec<TrainsRow>, Error> {
        let time = Duration::from_nanos(self.time.as_nanos());
        let chosen = |setup: &&Setup| {
            let named = self.only.iter().any(|word| setup.name.contains(word));
            self.only.is_empty() || named || [BARE, PLAIN].contains(&setup.name)
        };
        let setups: Vec<&Setup> = ROWS.iter().filter(chosen).collect();
        let found = in_turn(self.rounds, &setups, |round, setup| {
            eprintln!("round {round} of {}: {}", self.rounds.max(1), setup.name);
            measure(setup, time)
        })?;
        let medians: Vec<Measured> = found.iter().map(|rounds| median_of(rounds)).collect();
        let of = |name: &str| {
            let index = setups.iter().position(|setup| setup.name == name)?;
            medians.get(index).copied()
        };
        let rows = setups.iter().zip(&medians);
        Ok(rows
            .map(|(setup, own)| row(setup, own, of, self.rounds))
            .collect())
    }
}

fn row(
    setup: &Setup,
    own: &Measured,
    of: impl Fn(&str) -> Option<Measured>,
    rounds: usize,
) -> TrainsRow {
    let bare = of(BARE).unwrap_or_default();
    let reference = match setup.reference {
        Nothing => None,
        Plain => of(PLAIN).map(|plain| plain.tcp_gbit),
        PlainOrRate => of(PLAIN).map(|plain| plain.tcp_gbit.min(RATE_GBIT)),
        Tap => of(TAP).map(|tap| tap.tcp_gbit),
    };
    TrainsRow {
        name: setup.name,
        options: setup.options,
        tcp_gbit: own.tcp_gbit,
        tcp_share: reference.map(|reference| own.tcp_gbit / reference),
        tcp_bar: setup.tcp_bar,
        tcp_kernel_cores: own.tcp_kernel_cores,
        tcp_own_cores: own.tcp_own_cores,
        tcp_late_p99_us: own.tcp_late_p99_us,
        udp_kpps: own.udp_pps / 1e3,
        udp_share: own.udp_pps / bare.udp_pps,
        udp_flows_share: own.udp_flows_pps / bare.udp_flows_pps,
        udp_bar: UDP_BAR,
        rounds,
    }
}

fn median_of(rounds: &[Measured]) -> Measured {
    let of = |value: fn(&Measured) -> f64| median(rounds.iter().map(value));
    Measured {
        tcp_gbit: of(|round| round.tcp_gbit),
        tcp_kernel_cores: of(|round| round.tcp_kernel_cores),
        tcp_own_cores: of(|round| round.tcp_own_cores),
        tcp_late_p99_us: of(|round| round.tcp_late_p99_us),
        udp_pps: of(|round| round.udp_pps),
        udp_flows_pps: of(|round| round.udp_flows_pps),
    }
}

/// Results of one round.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    pub tcp_gbit: f64,
    pub tcp_kernel_cores: f64,
    pub tcp_own_cores: f64,
    pub tcp_late_p99_us: f64,
    pub udp_pps: f64,
    pub udp_flows_pps: f64,
}

/// A network with a single link, without options.
const NETWORK: &str = "[ports]\nnear = \"packet:near\"\nfar = \"packet:far\"\n\n\
    [[link]]\nname = \"link\"\nmatch = \"in-port=near\"\n";

/// Number of flows in the second flood.
const FLOWS: u32 = 1_000;

/// Measures a row once.
fn measure(setup: &Setup, time: Duration) -> Result<Measured, Error> {
    let Some(options) = setup.options else {
        let testbed = Testbed::bare()?;
        let mut found = Measured {
            tcp_gbit: tcp(testbed.path(), time)?,
            ..Measured::default()
        };
        floods(testbed.path(), time, &mut found)?;
        return Ok(found);
    };
    let folder = Folder::create()?;
    fs::write(folder.path().join(NETWORK_FILE), NETWORK)?;
    let mut found = Measured::default();
    let run = ExecRun::start(&program::path()?, folder.path(), options)?;
    let (before, start) = (run.cpu()?, Instant::now());
    found.tcp_gbit = tcp(run.path(), time)?;
    let (after, seconds) = (run.cpu()?, start.elapsed().as_secs_f64());
    found.tcp_own_cores = (after.own - before.own) / seconds;
    found.tcp_kernel_cores = (after.kernel - before.kernel) / seconds;
    found.tcp_late_p99_us = late_p99(&run.stop()?);
    let run = ExecRun::start(&program::path()?, folder.path(), options)?;
    floods(run.path(), time, &mut found)?;
    run.stop()?;
    Ok(found)
}

fn tcp(path: Path<'_>, time: Duration) -> Result<f64, Error> {
    Ok(tcp_flow(path, time, time / 4)?.goodput / 1e9)
}

fn floods(path: Path<'_>, time: Duration, found: &mut Measured) -> Result<(), Error> {
    let flood = |flows| -> Result<f64, Error> {
        let flow = UdpFlow {
            flows,
            ..UdpFlow::new(64, 0, time)
        };
        let Datagrams { received, .. } = udp_flow(path, flow)?;
        Ok(received as f64 / time.as_secs_f64())
    };
    found.udp_pps = flood(1)?;
    found.udp_flows_pps = flood(FLOWS)?;
    Ok(())
}

/// Returns the 99th percentile of lateness from near to far.
fn late_p99(report: &Value) -> f64 {
    let ports = report["ports"].as_array().into_iter().flatten();
    let mut far = ports.filter(|port| port["name"] == "far");
    let late = far.find_map(|port| port["lateness_us"]["p99"].as_f64());
    late.unwrap_or(0.0)
}
