//! `bench replay-speed`: how fast a replay reads a trace, and sends it to
//! nowhere.
//!
//! A trace of ten million packets is written first, so that most of it is in
//! the page cache and none of it in the processor's. Then it is replayed as
//! fast as it goes by the stages of a real replay, to a sink that forgets
//! frames at once, and to one that copies and looks at each as a network
//! card's driver would.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use longwire_capture::CaptureWriter;
use longwire_engine::replay::Pace;
use longwire_engine::{LinkConfig, Nanos};
use longwire_io::port::one_way::{Discard, Silent};
use longwire_io::port::{AnyRx, AnyTx, Port, mem};
use longwire_packet::alter::{AlterError, AlterOptions, Alterations};
use longwire_packet::repair_checksums;
use longwire_runtime::LinkSetup;
use longwire_runtime::clock::monotonic_now;
use longwire_runtime::feed::trace::{TraceConfig, TraceFeed};
use longwire_runtime::replay::{ReplayConfig, ReplayOutput, start};
use serde::Serialize;

use longwire::Error;
use longwire::table::Table;

/// What `bench replay-speed` takes.
#[derive(Clone, Debug, Args)]
pub struct ReplaySpeedArgs {
    /// Frame lengths in bytes
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "64,1500"
    )]
    pub size: Vec<u32>,
    /// Packets in the trace of 64 bytes; longer frames are fewer
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub packets: u64,
    /// Where the traces are written, which takes 1.6 GB; without it, the
    /// directory for temporary files
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

impl ReplaySpeedArgs {
    pub(super) fn quickened(&self, quick: bool) -> ReplaySpeedArgs {
        match quick {
            false => self.clone(),
            true => ReplaySpeedArgs {
                packets: 20_000,
                ..self.clone()
            },
        }
    }
}

/// What becomes of frames between trace and sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Altered {
    Nothing,
    /// Both Ethernet addresses, both IP addresses, a port, DSCP and time to
    /// live, and the checksums.
    Rewritten,
    /// The same, with the addresses by Crypto-PAn.
    Anonymised,
}

/// Where frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum SinkKind {
    /// They are forgotten at once.
    Null,
    /// They are copied into a ring, and both ends of each are looked at.
    Copying,
}

/// One row.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    size: u32,
    sink: SinkKind,
    altered: Altered,
    packets: u64,
    mpps: f64,
    gbit_per_s: f64,
    /// Processor time a packet, of both threads together.
    cpu_ns: f64,
    /// Of the trace's packets, those that were not sent. Must be none.
    missing: u64,
    memory_max: u64,
}

/// What is measured of each length of frames.
const CASES: [(SinkKind, Altered); 5] = [
    (SinkKind::Null, Altered::Nothing),
    (SinkKind::Copying, Altered::Nothing),
    (SinkKind::Null, Altered::Rewritten),
    (SinkKind::Copying, Altered::Rewritten),
    (SinkKind::Null, Altered::Anonymised),
];

/// How often each row is measured; the median counts.
const RUNS: usize = 3;

pub(super) fn measure(args: &ReplaySpeedArgs) -> Result<Vec<Row>, Error> {
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let mut rows = Vec::new();
    for size in &args.size {
        let trace = Trace::write(&dir, *size, args.packets)?;
        let mut runs: Vec<Vec<Row>> = Vec::new();
        for _ in 0..RUNS {
            let run: Result<Vec<Row>, Error> = CASES
                .iter()
                .map(|(sink, altered)| trace.replay(*sink, *altered))
                .collect();
            runs.push(run?);
        }
        for case in 0..CASES.len() {
            let mut of_case: Vec<Row> = runs.iter().map(|run| run[case].clone()).collect();
            of_case.sort_by(|a, b| a.mpps.total_cmp(&b.mpps));
            rows.push(of_case.swap_remove(RUNS / 2));
        }
    }
    Ok(rows)
}

/// A trace on disk, removed when dropped.
struct Trace {
    path: PathBuf,
    size: u32,
    packets: u64,
}

/// The trace's frames are of so many conversations.
const FLOWS: u64 = 4096;
/// Between two frames, in nanoseconds: the times are read, and not heeded.
const GAP: u64 = 67;
/// A trace is replayed so often that a run takes some time: so many packets,
/// or so many bytes.
const PACKETS_MIN: u64 = 20_000_000;
const BYTES_MIN: u64 = 10_000_000_000;

impl Trace {
    fn write(dir: &Path, size: u32, packets: u64) -> Result<Trace, Error> {
        let name = format!("longwire-{}-{size}.pcap", std::process::id());
        let trace = Trace {
            path: dir.join(name),
            size,
            // As many bytes of each length, at most twice as many.
            packets: (packets * 128 / u64::from(size).max(128)).max(1),
        };
        let failed = |error: &dyn std::fmt::Display| Error::Failed(error.to_string());
        let path = trace.path.to_string_lossy();
        let mut writer = CaptureWriter::create(&path).map_err(|e| failed(&e))?;
        let mut frame = frame(size);
        for n in 0..trace.packets {
            number(&mut frame, n);
            let stamp = Nanos::from_nanos(n * GAP);
            let written = writer.write(stamp, &frame, size);
            written.map_err(|e| failed(&e))?;
        }
        writer.finish().map_err(|e| failed(&e))?;
        Ok(trace)
    }

    /// Replays it once, in as many rounds as make a run long enough.
    fn replay(&self, sink: SinkKind, altered: Altered) -> Result<Row, Error> {
        let rounds = match self.packets {
            // A quick run shows that it works.
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
        .map_err(|error| Error::Failed(error.to_string()))?;
        let output = ReplayOutput {
            port: port(sink),
            link: LinkSetup {
                name: "out".to_owned(),
                config: LinkConfig::default(),
            },
            sent: None,
        };
        let config = ReplayConfig {
            realtime: false,
            ..ReplayConfig::default()
        };
        let replaying = start(vec![Box::new(feed)], vec![output], config, None)
            .map_err(|error| Error::Failed(error.to_string()))?;
        while !replaying.ended() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // A replay begins a little after it was asked for. What it reads
        // before is no more than what may lie on its line.
        let took = monotonic_now().saturating_sub(replaying.start().monotonic);
        let report = replaying.stop();
        if let Some(error) = report.error {
            return Err(Error::Failed(error));
        }
        let link = &report.links[0];
        let sent = link.packets_out;
        let mpps = sent as f64 / took.as_secs_f64() / 1e6;
        Ok(Row {
            size: self.size,
            sink,
            altered,
            packets: sent,
            mpps,
            gbit_per_s: mpps * f64::from(self.size) * 8.0 / 1e3,
            cpu_ns: report.cpu_s * 1e9 / sent.max(1) as f64,
            missing: (self.packets * rounds).saturating_sub(sent),
            memory_max: link.memory_max,
        })
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = fs::remove_file(&self.path);
    }
}

fn port(sink: SinkKind) -> Port {
    Port {
        name: "memory".to_owned(),
        rx: AnyRx::Silent(Silent),
        tx: match sink {
            SinkKind::Null => AnyTx::Discard(Discard::default()),
            SinkKind::Copying => AnyTx::Sink(Box::new(mem::Sink::copying())),
        },
        notes: Vec::new(),
    }
}

fn alterations(altered: Altered) -> Result<Alterations, Error> {
    let options = || -> Result<AlterOptions, AlterError> {
        let mut options = AlterOptions::default();
        if altered == Altered::Nothing {
            return Ok(options);
        }
        options.source_mac = Some("02:00:00:00:00:01".parse()?);
        options.destination_mac = Some("02:00:00:00:00:02".parse()?);
        options.port_maps = vec!["9=4000".parse()?];
        options.dscp = Some(46);
        options.ttl = Some("-1".parse()?);
        match altered {
            Altered::Anonymised => options.anonymize = Some("5a".repeat(32).parse()?),
            _ => options.address_maps = vec!["10.0.0.0/8=172.0.0.0/8".parse()?],
        }
        Ok(options)
    };
    let options = options().map_err(|error| Error::Failed(error.to_string()))?;
    Ok(Alterations::new(options))
}

/// A UDP datagram over IPv4 in a frame of `size` bytes.
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

/// Gives a frame its number and its conversation's addresses, and right
/// checksums.
fn number(frame: &mut [u8], n: u64) {
    let flow = (n % FLOWS) as u16;
    frame[28..30].copy_from_slice(&flow.to_be_bytes());
    frame[32..34].copy_from_slice(&(!flow).to_be_bytes());
    frame[42..50].copy_from_slice(&n.to_be_bytes());
    repair_checksums(frame);
}

pub(super) fn print(rows: &[Row]) {
    println!("A trace replayed as fast as it goes, by the stages of a replay; medians of {RUNS}.");
    println!("Altered: addresses, ports, DSCP and time to live, and the checksums.");
    let mut table = Table::new(&[
        "size",
        "sink",
        "altered",
        "Mpps",
        "Gbit/s",
        "CPU ns/packet",
        "missing",
        "memory MB",
    ]);
    for row in rows {
        table.row(vec![
            row.size.to_string(),
            format!("{:?}", row.sink).to_lowercase(),
            format!("{:?}", row.altered).to_lowercase(),
            format!("{:.1}", row.mpps),
            format!("{:.1}", row.gbit_per_s),
            format!("{:.1}", row.cpu_ns),
            row.missing.to_string(),
            format!("{:.1}", row.memory_max as f64 / 1e6),
        ]);
    }
    table.print();
}
