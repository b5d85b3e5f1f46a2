//! `offline`: frames/s of `longwire simulate`, from capture to capture.
//!
//! The program runs as users run it, and its whole duration counts: start, reading, deciding and
//! writing. Both captures are in the page cache. Each row has a baseline from the same rounds: one
//! thread reads and writes the same capture in large pieces, without a link.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use longwire::Error;
use longwire::bench::harness::{in_turn, median};
use longwire_capture::CaptureWriter;
use longwire_engine::Nanos;
use longwire_testbed::support::Folder;
use longwire_units::random::absorb;
use serde::Serialize;
use serde_json::Value;

use crate::program::{self, Measurement, cpu_of_children};

/// Options of `offline`.
#[derive(Clone, Debug, Args)]
pub struct OfflineArgs {
    /// Frames in the 64-byte captures; mixed captures have as many bytes
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub frames: u64,
    /// Links of the network
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub links: u64,
    /// Rounds; rows show the median
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Another build to run in the same rounds, such as an earlier one
    #[arg(long, value_name = "PATH")]
    pub against: Option<PathBuf>,
}

/// Frame lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Sizes {
    /// 64 bytes.
    Shortest,
    /// 7 frames of 64 bytes, 4 of 594 and 1 of 1518: 362 bytes on average.
    Mix,
}

/// Link or network that the frames cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Crossing {
    /// A link with a rate, a delay and tail drop.
    Plain,
    /// The same link with FQ-CoDel.
    FqCodel,
    /// A network of many links, each with a rate and a delay.
    Network,
}

const SIZES: [Sizes; 2] = [Sizes::Shortest, Sizes::Mix];
const CROSSINGS: [Crossing; 3] = [Crossing::Plain, Crossing::FqCodel, Crossing::Network];

/// Results of one program.
#[derive(Clone, Debug, Serialize)]
pub struct OfflineRow {
    program: String,
    crossing: Crossing,
    sizes: Sizes,
    frames: u64,
    /// Million frames/s of the whole command.
    mfps: f64,
    /// CPU time per frame, over all threads.
    cpu_ns: f64,
    /// Duration of the command relative to the baseline of the same rounds.
    times_witness: f64,
    /// Frames of the capture missing from the report; must be 0.
    missing: u64,
    dropped: u64,
}

/// One run of a program.
#[derive(Clone, Copy, Debug, Default)]
struct SimulatedRun {
    took: Duration,
    cpu_s: f64,
    frames_in: u64,
    frames_out: u64,
}

/// Mean gap between frames, in nanoseconds. Gaps are exponential, so that queues build up and
/// drain.
const GAP: f64 = 1_000.0;

/// Timestamp of the first frame, in nanoseconds since 1970.
const BEGINNING: u64 = 1_700_000_000_000_000_000;

/// Number of conversations.
const FLOWS: u64 = 4_096;

impl Sizes {
    fn of(self, random: u64) -> usize {
        match (self, random % 12) {
            (Sizes::Shortest, _) | (Sizes::Mix, 0..=6) => 64,
            (Sizes::Mix, 7..=10) => 594,
            (Sizes::Mix, _) => 1_518,
        }
    }

    /// Returns the number of frames with as many bytes in total as `frames` frames of 64 bytes.
    fn frames(self, frames: u64) -> u64 {
        match self {
            Sizes::Shortest => frames,
            Sizes::Mix => (frames * 64 / 362).max(1),
        }
    }

    /// Returns a link rate whose utilisation by the frames is 85 %.
    fn rate(self) -> &'static str {
        match self {
            Sizes::Shortest => "602mbit",
            Sizes::Mix => "3400mbit",
        }
    }
}

/// An input capture, the simulated output and the network.
struct OfflineFiles<'a> {
    folder: &'a Folder,
    sizes: Sizes,
    frames: u64,
}

impl OfflineFiles<'_> {
    /// Writes the capture and the network.
    fn write(&self, links: u64) -> Result<(), Error> {
        let mut writer = CaptureWriter::create(&text(&self.input()))?;
        let mut frame = longest_frame();
        let mut at = 0.0;
        for number in 0..self.frames {
            let random = absorb(1, number);
            at += -GAP * (((absorb(2, number) >> 11) + 1) as f64 / (1u64 << 53) as f64).ln();
            let len = self.sizes.of(random >> 32);
            let [host, port] = [random % links + 1, random % FLOWS];
            frame[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
            frame[27..30].copy_from_slice(&host.to_be_bytes()[5..]);
            frame[31..34].copy_from_slice(&host.to_be_bytes()[5..]);
            frame[34..36].copy_from_slice(&(1_024 + port as u16).to_be_bytes());
            frame[38..40].copy_from_slice(&(len as u16 - 34).to_be_bytes());
            let stamp = Nanos::from_nanos(BEGINNING + at as u64);
            writer.write(stamp, &frame[..len], len as u32)?;
        }
        writer.finish()?;
        let mut network =
            "unmatched = \"drop\"\n[ports]\nleft = \"null\"\nright = \"null\"\n".to_owned();
        let _ = write!(
            network,
            "[[link]]\nname = \"l{{n}}\"\nbetween = [\"10.0.0.0/8\", \"11.0.0.0/8\"]\n\
             count = {links}\nrate = \"10mbit\"\ndelay = \"10ms\"\n"
        );
        Ok(fs::write(self.folder.path().join("network.toml"), network)?)
    }

    fn input(&self) -> PathBuf {
        self.folder.path().join("in.pcap")
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("out.pcap")
    }

    /// Simulates the capture once.
    fn simulate(&self, program: &Path, crossing: Crossing) -> Result<SimulatedRun, Error> {
        let mut command = Command::new(program);
        command
            .args(["simulate", "--json"])
            .current_dir(self.folder.path());
        let link = [
            "in.pcap",
            "out.pcap",
            "--delay",
            "20ms",
            "--rate",
            self.sizes.rate(),
        ];
        match crossing {
            Crossing::Plain => command.args(link),
            Crossing::FqCodel => command.args(link).args(["--queue", "fq-codel"]),
            Crossing::Network => command.args([
                "network.toml",
                "--in",
                "left=in.pcap",
                "--out",
                "right=out.pcap",
            ]),
        };
        self.remove_output();
        let (began, cpu) = (Instant::now(), cpu_of_children());
        let output = command.output()?;
        let (took, cpu_s) = (began.elapsed(), cpu_of_children() - cpu);
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(Error::Failed(error.into_owned()));
        }
        let report: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| Error::Failed(format!("report of {}: {error}", program.display())))?;
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        let (frames_in, frames_out) = match crossing {
            Crossing::Network => (&report["ports"][0], &report["ports"][1]),
            Crossing::Plain | Crossing::FqCodel => (&report["links"][0], &report["links"][0]),
        };
        Ok(SimulatedRun {
            took,
            cpu_s,
            frames_in: count(&frames_in["packets_in"]),
            frames_out: count(&frames_out["packets_out"]),
        })
    }

    /// Reads and writes the capture once, without a link: the baseline.
    fn witness(&self) -> Result<SimulatedRun, Error> {
        let mut piece = vec![0; 512 * 1024];
        self.remove_output();
        let began = Instant::now();
        let (mut input, mut output) = (File::open(self.input())?, File::create(self.output())?);
        loop {
            let len = input.read(&mut piece)?;
            if len == 0 {
                return Ok(SimulatedRun {
                    took: began.elapsed(),
                    ..SimulatedRun::default()
                });
            }
            output.write_all(&piece[..len])?;
        }
    }

    /// Removes the previous output, because truncating it takes as long as writing it.
    fn remove_output(&self) {
        // Before the first run, there is no output.
        let _ = fs::remove_file(self.output());
    }
}

/// Returns a UDP datagram over IPv4 from 10.0.0.0 to 11.0.0.0, in a frame of maximum length.
fn longest_frame() -> Vec<u8> {
    let mut bytes = vec![
        2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x08, 0x00, 0x45, 0, 0, 0,
    ];
    bytes.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0]);
    bytes.extend([0, 0, 0, 80, 0, 0, 0, 0]);
    bytes.resize(1_518, 0x5a);
    bytes
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Measurement for OfflineArgs {
    type Found = Vec<OfflineRow>;

    const ABOUT: &'static str = "Whole `simulate` commands, with captures in the page cache; medians.\nWitness: one thread reads and writes the same capture, without a link.";

    fn quick(&self) -> OfflineArgs {
        OfflineArgs {
            frames: 20_000,
            links: 100,
            rounds: 1,
            ..self.clone()
        }
    }

    fn measure(&self, _port: &str) -> Result<Vec<OfflineRow>, Error> {
        let mut programs = vec![program::path()?];
        programs.extend(self.against.clone());
        let mut rows = Vec::new();
        for sizes in SIZES {
            let folder = Folder::create()?;
            let files = OfflineFiles {
                folder: &folder,
                sizes,
                frames: sizes.frames(self.frames),
            };
            files.write(self.links)?;
            let of_programs = |crossing| programs.iter().map(move |it| (it, crossing));
            let cases = CROSSINGS.into_iter().flat_map(of_programs);
            // The first case is the baseline.
            let cases: Vec<_> = [None].into_iter().chain(cases.map(Some)).collect();
            let runs = in_turn(self.rounds, &cases, |_, case| match case {
                None => files.witness(),
                Some((program, crossing)) => files.simulate(program, *crossing),
            })?;
            let witness = median(runs[0].iter().map(|run| run.took.as_secs_f64()));
            for (case, runs) in cases.into_iter().zip(&runs) {
                if let Some((program, crossing)) = case {
                    rows.push(files.row(text(program), crossing, runs, witness));
                }
            }
        }
        Ok(rows)
    }
}

impl OfflineFiles<'_> {
    /// Returns the medians of one program's runs.
    fn row(
        &self,
        program: String,
        crossing: Crossing,
        runs: &[SimulatedRun],
        witness: f64,
    ) -> OfflineRow {
        let took = median(runs.iter().map(|run| run.took.as_secs_f64()));
        let cpu = median(runs.iter().map(|run| run.cpu_s));
        let last = runs.last().copied().unwrap_or_default();
        let frames = self.frames as f64;
        OfflineRow {
            program,
            crossing,
            sizes: self.sizes,
            frames: self.frames,
            mfps: frames / took / 1e6,
            cpu_ns: cpu * 1e9 / frames,
            times_witness: took / witness,
            missing: self.frames.abs_diff(last.frames_in),
            dropped: last.frames_in.saturating_sub(last.frames_out),
        }
    }
}
