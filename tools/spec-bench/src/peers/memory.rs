//! Memory to memory: `longwire bench throughput` against TLEM with netmap ports in memory.
//!
//! TLEM runs in real time and as fast as it can, so its delay line holds as many bytes as it
//! receives within the delay. The delay of `bench throughput`, which runs at 100 Gbit/s of virtual
//! time, is set so that its delay line holds the same bytes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use longwire::Error;
use longwire_engine::Nanos;
use longwire_runtime::host;
use longwire_testbed::support::Folder;
use serde::Deserialize;

use super::comparison::{Contender, Reading};
use crate::program::{BenchProgram, failed, path};

/// Netmap ports in memory, linked with TLEM.
const RINGS: &str = include_str!("memory_rings.c");

/// Functions that the rings replace. TLEM calls them; netmap's library keeps its own.
const REPLACED: &str = "-Wl,--wrap=ioctl,--wrap=nmport_prepare,--wrap=nmport_open,\
                        --wrap=nmport_open_desc,--wrap=nmport_close";

/// Rate of both links, in bits per nanosecond.
const BITS_PER_NS: u64 = 100;

/// Sizes of the source memory in `bench throughput`.
const SOURCES: [(&str, u64); 2] = [("in cache", 512 << 10), ("in memory", 256 << 20)];

/// Minimum duration of `bench throughput`, which omits rows for which there is no time.
const TIME_MIN: Duration = Duration::from_secs(2);

/// TLEM, compiled with the rings into a temporary folder.
pub struct Tlem {
    program: PathBuf,
    _folder: Folder,
}

impl Tlem {
    /// Compiles `apps/tlem/tlem.c` of a source tree of netmap.
    ///
    /// # Errors
    /// If the compiler fails.
    pub fn build(source: &Path) -> Result<Tlem, Error> {
        let folder = Folder::create()?;
        let rings = folder.path().join("rings.c");
        std::fs::write(&rings, RINGS)?;
        let program = folder.path().join("tlem");
        // The source is in apps/tlem.
        let tree = source.ancestors().nth(3).unwrap_or(Path::new("."));
        let mut command = Command::new("cc");
        command.args(["-O3", "-pipe", "-w"]).arg(source).arg(&rings);
        for name in ["nmport.c", "nmreq.c", "nmctx.c", "nmctx-pthreads.c"] {
            command.arg(tree.join("libnetmap").join(name));
        }
        for name in ["sys", "apps/include", "libnetmap"] {
            command.arg("-I").arg(tree.join(name));
        }
        command
            .args([REPLACED, "-lpthread", "-lrt", "-lm", "-o"])
            .arg(&program);
        let output = command.output();
        let output = output.map_err(|error| failed(format!("cannot start cc: {error}")))?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("TLEM does not compile: {}", words.trim())));
        }
        Ok(Tlem {
            program,
            _folder: folder,
        })
    }

    /// Runs TLEM with the models of `bench throughput`: rate, delay, 0.1 % loss. Its queue is
    /// unlimited and its output drops no late packets.
    fn run(&self, case: Case, source: u64, time: Duration) -> Result<RingCounts, Error> {
        let mut command = Command::new(&self.program);
        command.args("-i rings:in -i rings:out -B 100G -L plr,0.001 -Q 0 -d 1s -w 0".split(' '));
        command.args(["-D", &format!("{}m", case.delay.as_millis())]);
        // Output, input; the other direction's threads sleep.
        let cores = host::allowed_cores();
        let [output, input] = [0, 1].map(|nth| cores.get(nth).or(cores.first()).copied());
        if let (Some(output), Some(input)) = (output, input) {
            command.args(["-C", &format!("{output},{input},{output},{input}")]);
        }
        command.env("RINGS_SIZE", case.size.to_string());
        command.env("RINGS_SOURCE", source.to_string());
        command.env("RINGS_NS", (time + 2 * case.delay).as_nanos().to_string());
        let report = BenchProgram::start("TLEM", None, &mut command, "")?.finish()?;
        RingCounts::of(report)
    }
}

/// A frame length and a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    size: u32,
    delay: Duration,
}

/// Counts of the rings: between the first transmission and the last reception.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
struct RingCounts {
    ns: u64,
    received: u64,
    sent: u64,
    /// Frames received and not sent, from the start to the end. Includes the lost ones.
    in_flight: u64,
}

impl RingCounts {
    fn of(report: serde_json::Value) -> Result<RingCounts, Error> {
        let counts: RingCounts = serde_json::from_value(report)
            .map_err(|error| failed(format!("unexpected report of TLEM's rings: {error}")))?;
        // Without a loss other than 0.1 %, the difference is the growth of the delay line.
        if counts.sent == 0 || counts.sent < counts.received / 2 {
            let RingCounts { sent, received, .. } = counts;
            return Err(failed(format!("TLEM sent {sent} of {received} frames")));
        }
        Ok(counts)
    }

    fn ns_per_packet(self) -> f64 {
        self.ns as f64 / self.sent as f64
    }

    /// Returns the delay at which a link of 100 Gbit/s holds the frames in flight. The lost ones are
    /// 0.1 % of those received.
    fn delay_of_equal_bytes(self, size: u32) -> Nanos {
        let held = self.in_flight.saturating_sub(self.received / 1_000);
        Nanos::from_nanos(held * u64::from(size) * 8 / BITS_PER_NS)
    }
}

/// A row of `bench throughput`, as far as it is compared.
#[derive(Clone, Debug, Deserialize)]
struct ThroughputFigures {
    ns_per_packet: f64,
    copies: u32,
    source_bytes: u64,
    memcpy_ns: f64,
    /// Time to move a cache line between the cores.
    crossing_ns: Option<f64>,
}

/// A round over all cases: TLEM, then Longwire with TLEM's bytes in flight.
pub struct MemoryRounds<'a> {
    pub tlem: Option<&'a Tlem>,
    pub sizes: &'a [u32],
    pub delays: &'a [Nanos],
    pub time: Duration,
    /// Times to move a cache line between the cores, in ns.
    pub crossings: Vec<f64>,
}

impl MemoryRounds<'_> {
    /// Measures all contenders once; each is in the order of `contenders`.
    ///
    /// # Errors
    /// If a program fails.
    pub fn measure(&mut self, contenders: &[Contender]) -> Result<Vec<Vec<Reading>>, Error> {
        let (mut tlem, mut own, mut witness) = (Vec::new(), Vec::new(), Vec::new());
        for size in self.sizes {
            for delay in self.delays {
                let case = Case {
                    size: *size,
                    delay: Duration::from_nanos(delay.as_nanos()),
                };
                for (place, source) in SOURCES {
                    let figure = format!("{size} B, {} ms, {place}", case.delay.as_millis());
                    let reading = |value| Reading::less(figure.clone(), "ns", value);
                    let mut equal = *delay;
                    if let Some(program) = self.tlem {
                        let counts = program.run(case, source, self.time)?;
                        tlem.push(reading(counts.ns_per_packet()));
                        if *delay > Nanos::ZERO {
                            equal = counts.delay_of_equal_bytes(*size);
                        }
                    }
                    let found = throughput(*size, equal, source, self.time)?;
                    own.push(reading(found.ns_per_packet));
                    witness.push(reading(found.memcpy_ns));
                    self.crossings.extend(found.crossing_ns);
                }
            }
        }
        let of = |contender: &Contender| match contender {
            Contender::Witness => witness.clone(),
            Contender::Longwire => own.clone(),
            Contender::Peer(_) => tlem.clone(),
        };
        Ok(contenders.iter().map(of).collect())
    }
}

/// Runs `longwire bench throughput` and returns the row of copied frames from this source.
fn throughput(
    size: u32,
    delay: Nanos,
    source: u64,
    time: Duration,
) -> Result<ThroughputFigures, Error> {
    let mut command = Command::new(path()?);
    command.args(["bench", "throughput", "--json", "--quiet"]);
    command.args(["--size", &size.to_string(), "--delay", &delay.to_string()]);
    // It measures two or three sources, each on one and on two threads.
    let time = (4 * time).max(TIME_MIN);
    command.args(["--time", &format!("{}ms", time.as_millis())]);
    let report = BenchProgram::start("longwire bench", None, &mut command, "")?.finish()?;
    copied_from(report, source)
}

fn copied_from(report: serde_json::Value, source: u64) -> Result<ThroughputFigures, Error> {
    let rows: Vec<ThroughputFigures> = serde_json::from_value(report)
        .map_err(|error| failed(format!("unexpected report of bench throughput: {error}")))?;
    let mut rows = rows.into_iter();
    let row = rows.find(|row| row.copies == 2 && row.source_bytes == source);
    row.ok_or_else(|| failed("bench throughput omitted a row; raise --time"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ring_counts_give_the_cost_and_the_bytes_in_flight() {
        let report = json!({"ns": 500_000_000, "received": 10_500_000, "sent": 10_000_000, "in_flight": 410_500});
        let counts = RingCounts::of(report).expect("a report");
        assert!((counts.ns_per_packet() - 50.0).abs() < 1e-9);
        // 25.6 MB at 12.5 bytes per nanosecond.
        assert_eq!(
            counts.delay_of_equal_bytes(64),
            Nanos::from_nanos(2_048_000)
        );
    }

    #[test]
    fn a_drop_of_half_the_frames_is_an_error() {
        let report = json!({"ns": 1, "received": 100, "sent": 40, "in_flight": 1});
        let error = RingCounts::of(report).expect_err("dropped").to_string();
        assert_eq!(error, "TLEM sent 40 of 100 frames");
        let error = RingCounts::of(json!({"ns": 1})).expect_err("fields are missing");
        assert!(error.to_string().contains("unexpected report"), "{error}");
    }

    #[test]
    fn rows_of_lent_frames_are_not_compared() {
        let row = |copies, source, ns| json!({"ns_per_packet": ns, "copies": copies, "source_bytes": source, "memcpy_ns": 9.5});
        let rows = json!([row(2, 512, 30.0), row(0, 1024, 10.0), row(2, 1024, 40.0)]);
        let found = copied_from(rows.clone(), 1024).expect("it is there");
        assert!((found.ns_per_packet - 40.0).abs() < 1e-9);
        assert!(copied_from(rows, 2048).is_err());
    }
}
