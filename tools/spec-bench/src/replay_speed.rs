//! `replay-speed`: speed of reading a trace and replaying it to a sink that discards frames.
//!
//! The bench first writes a trace of ten million packets, so that most of it is in the page cache,
//! but not in the CPU's caches. The stages of a real replay then send the trace at full speed, to a
//! sink that discards frames immediately, and to one that copies and reads each frame as a network
//! card's driver does.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use longwire::Error;
use longwire::bench::harness::{in_turn, median_by};
use longwire_capture::CaptureWriter;
use longwire_engine::replay::Pace;
use longwire_engine::{LinkConfig, Nanos};
use longwire_io::port::one_way::{DiscardTx, SilentRx};
use longwire_io::port::{AnyRx, AnyTx, Port, mem};
use longwire_packet::alter::{AlterError, AlterOptions, Alterations};
use longwire_packet::repair_checksums;
use longwire_runtime::clock::monotonic_now;
use longwire_runtime::feed::trace::{TraceConfig, TraceFeed};
use longwire_runtime::replay::{ReplayConfig, ReplayOutput};
use longwire_runtime::{LinkSetup, NetworkPlan, RunConfig};
use serde::Serialize;

use crate::program::{Measurement, failed, start, stop};

/// Options of `replay-speed`.
#[derive(Clone, Debug, Args)]
pub struct ReplaySpeedArgs {
    /// Frame lengths in bytes
    #[arg(long, value_name = "BYTES")]
    #[arg(value_delimiter = ',', default_value = "64,1500")]
    pub size: Vec<u32>,
    /// Packets in the 64-byte trace; traces of longer frames have fewer
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub packets: u64,
    /// Directory for the traces (1.6 GB) [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Alteration of frames between trace and sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Alteration {
    Nothing,
    /// Rewrites Ethernet addresses, IP addresses, a port, DSCP and TTL, and updates the checksums.
    Rewritten,
    /// Like `Rewritten`, with addresses anonymised by Crypto-PAn.
    Anonymised,
}

/// Destination of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum SinkKind {
    /// Discards frames immediately.
    Null,
    /// Copies frames into a ring, and reads both ends of each.
    Copying,
}

/// Results of one sink and alteration.
#[derive(Clone, Debug, Serialize)]
pub struct ReplaySpeedRow {
    size: u32,
    sink: SinkKind,
    altered: Alteration,
    packets: u64,
    mpps: f64,
    gbit_per_s: f64,
    /// CPU time per packet, of both threads.
    cpu_ns: f64,
    /// Packets of the trace that were not sent; must be 0.
    missing: u64,
    memory_max: u64,
}

/// Measurements for each frame length.
const CASES: [(SinkKind, Alteration); 5] = [
    (SinkKind::Null, Alteration::Nothing),
    (SinkKind::Copying, Alteration::Nothing),
    (SinkKind::Null, Alteration::Rewritten),
    (SinkKind::Copying, Alteration::Rewritten),
    (SinkKind::Null, Alteration::Anonymised),
];

/// Runs per row; the row reports the median.
const RUNS: usize = 3;

impl Measurement for ReplaySpeedArgs {
    type Found = Vec<ReplaySpeedRow>;

    const ABOUT: &'static str = "A trace replayed at full speed, by the stages of a replay; medians of 3.\nAltered: addresses, ports, DSCP and time to live, and the checksums.";

    fn quick(&self) -> ReplaySpeedArgs {
        ReplaySpeedArgs {
            packets: 20_000,
            ..self.clone()
        }
    }

    fn measure(&self, _port: &str) -> Result<Vec<ReplaySpeedRow>, Error> {
        let dir = self.dir.clone().unwrap_or_else(std::env::temp_dir);
        let mut rows = Vec::new();
        for size in &self.size {
            let trace = SpeedTrace::write(&dir, *size, self.packets)?;
            let runs = in_turn(RUNS, &CASES, |_, (sink, altered)| {
                trace.replay(*sink, *altered)
            })?;
            rows.extend(runs.into_iter().map(|runs| median_by(runs, |row| row.mpps)));
        }
        Ok(rows)
    }
}

/// A trace on disk, removed on drop.
struct SpeedTrace {
    path: PathBuf,
    size: u32,
    packets: u64,
}

/// Number of conversations in the trace.
const FLOWS: u64 = 4096;
/// Gap between frames in the trace, in nanoseconds. The replay reads but ignores it.
const GAP: u64 = 67;
/// Minimum numbers of packets and bytes per run. The trace is repeated until a run reaches one of
/// them.
const PACKETS_MIN: u64 = 20_000_000;
const BYTES_MIN: u64 = 10_000_000_000;

impl SpeedTrace {
    fn write(dir: &Path, size: u32, packets: u64) -> Result<SpeedTrace, Error> {
        let name = format!("longwire-{}-{size}.pcap", std::process::id());
        let trace = SpeedTrace {
            path: dir.join(name),
            size,
            // Traces of frames from 128 bytes on have equal sizes in bytes; a trace of shorter
            // frames has `packets` frames.
            packets: (packets * 128 / u64::from(size).max(128)).max(1),
        };
        let mut writer = CaptureWriter::create(&trace.path.to_string_lossy())?;
        let mut frame = frame(size);
        for n in 0..trace.packets {
            number(&mut frame, n);
            let stamp = Nanos::from_nanos(n * GAP);
            writer.write(stamp, &frame, size)?;
        }
        writer.finish()?;
        Ok(trace)
    }

    /// Replays the trace once, with the number of rounds that a run needs.
    fn replay(&self, sink: SinkKind, altered: Alteration) -> Result<ReplaySpeedRow, Error> {
        let rounds = match self.packets {
            // A quick run only has to show that the bench works.
            0..500_000 => 1,
            packets => {
                let by_bytes = BYTES_MIN.div_ceil(packets * u64::from(self.size));
                PACKETS_MIN.div_ceil(packets).min(by_bytes)
            }
        };
        let feed = TraceFeed::open(TraceConfig {
            traces: vec![self.path.to_string_lossy().into_owned()],
            pace: Pace::TopSpeed,
            rounds: Some(rounds),
            alterations: alterations(altered)?,
            ..TraceConfig::default()
        })
        .map_err(failed)?;
        let output = ReplayOutput {
            port: port(sink),
            link: LinkSetup::new("out", LinkConfig::default()),
            sent: None,
            cells: None,
        };
        let config = RunConfig {
            realtime: false,
            ..RunConfig::default()
        };
        let replay = ReplayConfig::default();
        let plan = NetworkPlan::replay(Box::new(feed), vec![output], replay);
        let replaying = start(plan, config)?;
        while !replaying.ended() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The epoch is shortly after `start`. Until then, the replay reads at most the packets that
        // fit in its delay line.
        let took = monotonic_now().saturating_sub(replaying.epoch().monotonic);
        let report = stop(replaying)?;
        let link = &report.links[0];
        let sent = link.traffic.packets_out;
        let mpps = sent as f64 / took.as_secs_f64() / 1e6;
        Ok(ReplaySpeedRow {
            size: self.size,
            sink,
            altered,
            packets: sent,
            mpps,
            gbit_per_s: mpps * f64::from(self.size) * 8.0 / 1e3,
            cpu_ns: report.cpu_s * 1e9 / sent.max(1) as f64,
            missing: (self.packets * rounds).saturating_sub(sent),
            memory_max: link.memory.memory_max,
        })
    }
}

impl Drop for SpeedTrace {
    fn drop(&mut self) {
        // If writing failed, the file may not exist.
        let _ = fs::remove_file(&self.path);
    }
}

fn port(sink: SinkKind) -> Port {
    let tx = match sink {
        SinkKind::Null => AnyTx::Discard(DiscardTx::default()),
        SinkKind::Copying => AnyTx::Sink(Box::new(mem::Sink::copying())),
    };
    Port::with_halves("memory", AnyRx::Silent(SilentRx), tx)
}

fn alterations(altered: Alteration) -> Result<Alterations, Error> {
    let options = || -> Result<AlterOptions, AlterError> {
        let mut options = AlterOptions::default();
        if altered == Alteration::Nothing {
            return Ok(options);
        }
        options.source_mac = Some("02:00:00:00:00:01".parse()?);
        options.destination_mac = Some("02:00:00:00:00:02".parse()?);
        options.port_maps = vec!["9=4000".parse()?];
        options.dscp = Some(46);
        options.ttl = Some("-1".parse()?);
        match altered {
            Alteration::Anonymised => options.anonymize = Some("5a".repeat(32).parse()?),
            _ => options.address_maps = vec!["10.0.0.0/8=172.0.0.0/8".parse()?],
        }
        Ok(options)
    };
    let options = options().map_err(failed)?;
    Ok(Alterations::new(options))
}

/// Returns a UDP datagram over IPv4 in a frame of `size` bytes.
fn frame(size: u32) -> Vec<u8> {
    let size = size.max(60) as usize;
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x08, 0x00, 0x45, 0];
    bytes.extend(((size - 14) as u16).to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 0, 10, 128, 0, 0]);
    bytes.extend([0x80, 0, 0, 9]);
    bytes.extend(((size - 34) as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.resize(size, 0x5a);
    bytes
}

/// Writes the frame's number, the addresses of its conversation, and valid checksums.
fn number(frame: &mut [u8], n: u64) {
    let flow = (n % FLOWS) as u16;
    frame[28..30].copy_from_slice(&flow.to_be_bytes());
    frame[32..34].copy_from_slice(&(!flow).to_be_bytes());
    frame[42..50].copy_from_slice(&n.to_be_bytes());
    repair_checksums(frame);
}
