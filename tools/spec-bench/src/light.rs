//! `light`: CPU time, memory and RTT of a link with little traffic, as most links have in practice.
//!
//! `longwire exec` delays frames by 20 ms per direction. A steady flow of datagrams crosses the
//! link in each direction, and probes measure the RTT with kernel timestamps. Rounds interleave the
//! programs, and rows compare medians over the rounds.

use std::path::{Path as FilePath, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use longwire::Error;
use longwire::bench::harness::{in_turn, median};
use longwire::bench::testbed::Testbed;
use longwire_engine::{LinkConfig, Nanos};
use longwire_runtime::RunConfig;
use longwire_testbed::support::Folder;
use longwire_traffic::sockets::{Path, Probes, RoundTrips, UdpFlow, probe_trips, udp_flow};
use serde::Serialize;

use crate::program::{ExecRun, Measurement, joined};
use crate::{IdleArgs, QUICK, program};

/// Arguments of `light`.
#[derive(Clone, Debug, Args)]
pub struct LightArgs {
    /// Datagrams per second in each direction; 0: probes only
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "0,100,1000,10000"
    )]
    pub rates: Vec<u64>,
    /// Measured steady-state duration of each row and round
    #[arg(long, value_name = "TIME", default_value = "3s")]
    pub time: Nanos,
    /// Interleaved rounds over all rows
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rounds: usize,
    /// Further options of `exec`
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true
    )]
    pub options: String,
    /// Another build of `longwire` to compare in the same rounds
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<PathBuf>,
}

/// A row: a program at one rate.
#[derive(Clone, Debug, Serialize)]
pub struct LightRow {
    program: String,
    /// Datagrams/s per direction.
    per_second: u64,
    /// CPU time of the program's threads, in percent of a core.
    cpu_percent: f64,
    /// Resident memory at the end, in bytes.
    resident: u64,
    /// Median RTT minus the delays in both directions, in microseconds.
    rtt_error_median_us: f64,
    rtt_error_p99_us: f64,
    /// Datagrams lost in all rounds, including lost probes.
    lost: u64,
}

/// Delay in each direction.
pub const DELAY: Duration = Duration::from_millis(20);

/// Time from the start of the flows to steady state.
const SETTLING: Duration = Duration::from_millis(700);

/// Time to wait for the last datagrams.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Minimum interval between probes, each of which waits for the previous one.
const PROBE_INTERVAL: Duration = Duration::from_millis(10);

const FRAME_LEN: u32 = 100;

impl Measurement for LightArgs {
    type Found = Vec<LightRow>;

    const ABOUT: &'static str =
        "Datagrams in frames of 100 bytes over 20 ms each way; medians of the rounds.";

    fn quick(&self) -> LightArgs {
        LightArgs {
            rates: vec![1_000],
            time: Nanos::from_millis(300),
            rounds: 1,
            ..self.clone()
        }
    }

    fn measure(&self, _port: &str) -> Result<Vec<LightRow>, Error> {
        let mut programs = vec![program::path()?];
        programs.extend(self.against.clone());
        let cells = self.rates.iter().flat_map(|rate| {
            let of_rate = programs.iter().zip(["longwire", "against"]);
            of_rate.map(move |(program, name)| (program, name, *rate))
        });
        let cells: Vec<_> = cells.collect();
        let found = in_turn(self.rounds, &cells, |_, (program, name, rate)| {
            Ok(LightRow {
                program: (*name).to_owned(),
                ..measure_once(self, program, *rate)?
            })
        })?;
        Ok(found
            .iter()
            .filter_map(|rounds| median_row(rounds))
            .collect())
    }
}

/// A link under a steady load.
pub struct LightLoad {
    /// CPU time in cores.
    pub cores: f64,
    pub resident: u64,
    pub trips: RoundTrips,
    pub lost: u64,
}

/// Measures a program once at one rate.
fn measure_once(args: &LightArgs, program: &FilePath, rate: u64) -> Result<LightRow, Error> {
    let folder = Folder::create()?;
    let delay = DELAY.as_millis();
    let options = format!("--delay {delay}ms {}", args.options);
    let run = ExecRun::start(program, folder.path(), &options)?;
    let time = Duration::from_nanos(args.time.as_nanos());
    let load = light_load(run.path(), rate, time, || {
        Ok((run.run_time()?, run.resident()))
    })?;
    run.stop()?;
    let error = |share| rtt_error_us(&load.trips, share, DELAY);
    Ok(LightRow {
        program: String::new(),
        per_second: rate,
        cpu_percent: 100.0 * load.cores,
        resident: load.resident,
        rtt_error_median_us: error(0.5),
        rtt_error_p99_us: error(0.99),
        lost: load.lost,
    })
}

/// Sends datagrams and probes over a link with [`DELAY`]; `usage` returns the emulator's CPU time in
/// seconds, and its resident memory.
///
/// # Errors
/// Any error of the flows and of `usage`.
pub fn light_load(
    path: Path<'_>,
    rate: u64,
    time: Duration,
    usage: impl Fn() -> Result<(f64, u64), Error>,
) -> Result<LightLoad, Error> {
    thread::scope(|scope| {
        let there = scope.spawn(move || lost_of_flow(path, rate, time + SETTLING));
        let back = scope.spawn(move || lost_of_flow(path.reversed(), rate, time + SETTLING));
        let trips = scope.spawn(move || probe(path, time + SETTLING));
        thread::sleep(SETTLING);
        let ((before, _), start) = (usage()?, Instant::now());
        thread::sleep(time);
        let ((after, resident), seconds) = (usage()?, start.elapsed().as_secs_f64());
        let lost = joined(there)? + joined(back)?;
        let trips = joined(trips)?;
        Ok(LightLoad {
            cores: (after - before) / seconds,
            resident,
            lost: lost + trips.lost,
            trips,
        })
    })
}

/// Returns the quantile of the RTT minus `delay` in both directions, in microseconds.
pub fn rtt_error_us(trips: &RoundTrips, share: f64, delay: Duration) -> f64 {
    let last = trips.times_ns.len().saturating_sub(1);
    let time = trips.times_ns.get((last as f64 * share) as usize);
    let both = 2.0 * delay.as_nanos() as f64;
    time.map_or(f64::NAN, |time| (*time as f64 - both) / 1e3)
}

/// Sends datagrams at a steady rate; returns the number of lost ones.
fn lost_of_flow(path: Path<'_>, rate: u64, duration: Duration) -> Result<u64, Error> {
    if rate == 0 {
        return Ok(0);
    }
    let flow = UdpFlow {
        timeout: TIMEOUT,
        ..UdpFlow::new(FRAME_LEN, rate, duration)
    };
    let datagrams = udp_flow(path, flow)?;
    Ok(datagrams.sent.saturating_sub(datagrams.received))
}

/// Measures round trips for about `duration`.
fn probe(path: Path<'_>, duration: Duration) -> Result<RoundTrips, Error> {
    let each = PROBE_INTERVAL.max(2 * DELAY);
    let probes = Probes {
        frame_len: FRAME_LEN,
        count: (duration.as_nanos() / each.as_nanos()).max(1) as u32,
        interval: PROBE_INTERVAL,
        timeout: TIMEOUT,
    };
    Ok(probe_trips(path, probes)?)
}

/// Returns a row with the median of each column over the rounds, and the sum of losses.
fn median_row(rounds: &[LightRow]) -> Option<LightRow> {
    let of = |value: fn(&LightRow) -> f64| median(rounds.iter().map(value));
    let first = rounds.first()?;
    Some(LightRow {
        program: first.program.clone(),
        per_second: first.per_second,
        cpu_percent: of(|row| row.cpu_percent),
        resident: of(|row| row.resident as f64) as u64,
        rtt_error_median_us: of(|row| row.rtt_error_median_us),
        rtt_error_p99_us: of(|row| row.rtt_error_p99_us),
        lost: rounds.iter().map(|row| row.lost).sum(),
    })
}

/// Results of `idle`.
#[derive(Debug, Serialize)]
pub struct IdleFindings {
    seconds: f64,
    /// CPU time of the emulator's threads, in percent of a core.
    cpu_percent: f64,
    /// Frames sent by the kernel, such as neighbour discovery.
    packets: u64,
    /// Resident memory of the whole program, in bytes.
    resident: u64,
}

impl Measurement for IdleArgs {
    type Found = IdleFindings;

    const ABOUT: &'static str = "A link without traffic.";

    fn quick(&self) -> IdleArgs {
        IdleArgs { time: QUICK }
    }

    fn measure(&self, kind: &str) -> Result<IdleFindings, Error> {
        let testbed = Testbed::emulated()?;
        let link = LinkConfig::default;
        let running = testbed.start(kind, link(), link(), RunConfig::default())?;
        let start = Instant::now();
        std::thread::sleep(Duration::from_nanos(self.time.as_nanos()));
        let seconds = start.elapsed().as_secs_f64();
        let resident = resident("self");
        let report = running.stop();
        Ok(IdleFindings {
            seconds,
            cpu_percent: report.cpu_s / seconds * 100.0,
            packets: report
                .links
                .iter()
                .map(|link| link.traffic.packets_in)
                .sum(),
            resident,
        })
    }
}

/// Returns the resident memory of a process in bytes; `self` means this process.
pub(super) fn resident(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
