//! `replay`: timing errors of replays at a receiver, and their CPU time.
//!
//! A separate program (`longwire replay`, or tcpreplay if installed) sends a trace from one network
//! namespace into a veth pair; in another namespace, `longwire receive` compares arrivals by their
//! kernel timestamps. Both run as commands, as users run them.

pub mod senders;
mod stress;
pub mod traces;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use longwire::Error;
use longwire::bench::testbed::Testbed;
use longwire_runtime::host;
use longwire_testbed::support::Folder;
use serde::Serialize;
use serde_json::Value;

use crate::program::Measurement;
use crate::replay::senders::{ReplayResult, ReplaySender};
use crate::replay::stress::{Stress, StressKind};
use crate::replay::traces::{Trace, Workload};

/// Options of `replay`.
#[derive(Clone, Debug, Args)]
pub struct ReplayArgs {
    /// Traces to replay
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_enum)]
    #[arg(default_values_t = Workload::value_variants())]
    pub workload: Vec<Workload>,
    /// Load on the machine during the replay
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_enum)]
    #[arg(default_values_t = [StressKind::None, StressKind::Disk, StressKind::Memory])]
    pub stress: Vec<StressKind>,
    /// Replay programs; missing ones are skipped
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_enum)]
    #[arg(default_values_t = ReplaySender::USUAL)]
    pub sender: Vec<ReplaySender>,
    /// Packets of the trace with gaps of 70 us; TCPivo's has a million. Other traces
    /// last as long, but have at most a million packets
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub packets: u64,
    /// Options for `longwire replay`, such as '--wait spin'
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub replay_options: Option<String>,
    /// tcpreplay, by its path or name
    #[arg(long, value_name = "PATH", default_value = "tcpreplay")]
    pub tcpreplay: PathBuf,
    /// Directory for traces and the files of the disk stress [default: the directory for temporary
    /// files]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// All results.
#[derive(Debug, Serialize)]
pub struct ReplayFindings {
    rows: Vec<ReplayRow>,
    /// Missing programs, and further remarks.
    remarks: Vec<String>,
}

/// Results of one replay.
#[derive(Debug, Serialize)]
struct ReplayRow {
    workload: &'static str,
    stress: &'static str,
    sender: &'static str,
    /// Version printed by the program.
    version: String,
    /// Frames of the trace.
    packets: u64,
    lost: u64,
    changed: u64,
    reordered: u64,
    duplicates: u64,
    /// Median gaps, in the trace and at the receiver.
    trace_gap_p50_us: f64,
    gap_p50_us: f64,
    gap_p99_us: f64,
    /// Absolute differences from the gaps of the trace.
    error_p50_us: f64,
    error_p99_us: f64,
    error_p999_us: f64,
    error_max_us: f64,
    drift_ppm: Option<f64>,
    /// CPU time of the replaying process, in percent of its duration.
    cpu_percent: f64,
    /// Frames dropped because the receiver's ring was full.
    unseen: u64,
    /// Pauses of the machine.
    pauses: Value,
    /// Time in seconds in which pauses would have been detected.
    watched_s: f64,
    /// Steal time in seconds.
    stolen_s: f64,
}

impl Measurement for ReplayArgs {
    type Found = ReplayFindings;

    const ABOUT: &'static str = "Each trace is sent into a veth pair and compared at the other end by kernel timestamps.\ngap: between frames. error: |gap - the trace's gap|. CPU: of the replaying process, percent of a core.\nPauses: of the machine, detected by an idle-priority thread on the receiver's core.";

    fn quick(&self) -> ReplayArgs {
        ReplayArgs {
            stress: vec![StressKind::None, StressKind::Disk],
            workload: vec![
                Workload::Even70us,
                Workload::Poisson100k,
                Workload::BurstyImix,
            ],
            sender: vec![ReplaySender::Longwire, ReplaySender::Tcpreplay],
            packets: 1_000,
            ..self.clone()
        }
    }

    fn measure(&self, kind: &str) -> Result<ReplayFindings, Error> {
        let parent = self.directory.clone().unwrap_or_else(std::env::temp_dir);
        let directory = Folder::create_in(&parent).map_err(|source| Error::File {
            path: parent,
            action: "cannot create a directory in it",
            source,
        })?;
        let mut remarks = Vec::new();
        let mut senders = Vec::new();
        for sender in &self.sender {
            match sender.version(&self.tcpreplay) {
                Some(version) => senders.push((*sender, version)),
                None => remarks.push(format!("{} is not installed", sender.name())),
            }
        }
        remarks.extend(machine_remarks());
        let mut rows = Vec::new();
        for workload in &self.workload {
            let trace = Trace::write(*workload, self.packets, directory.path())?;
            for kind_of_stress in &self.stress {
                // Interleave the programs, because the load of a shared machine changes.
                for (sender, version) in &senders {
                    let stress = Stress::start(*kind_of_stress, directory.path())?;
                    let sent = sender.replay(&trace, self, kind)?;
                    stress.stop()?;
                    rows.push(row(&trace, *kind_of_stress, *sender, version, &sent));
                }
            }
            trace.remove();
        }
        Ok(ReplayFindings { rows, remarks })
    }
}

fn row(
    trace: &Trace,
    stress: StressKind,
    sender: ReplaySender,
    version: &str,
    sent: &ReplayResult,
) -> ReplayRow {
    let found = &sent.received;
    let (compared, witness) = (&found["trace"], &found["witness"]);
    let count = |name: &str| compared[name].as_u64().unwrap_or(0);
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let gap = |name: &str| number(&found["gap_us"][name]);
    let error = |name: &str| number(&compared["timing"]["gap_error_us"][name]);
    let unseen = found["unseen"].as_object().into_iter().flatten();
    ReplayRow {
        workload: trace.workload.name(),
        stress: stress.name(),
        sender: sender.name(),
        version: version.to_owned(),
        packets: trace.packets,
        lost: count("lost") + count("behind_last"),
        changed: count("changed"),
        reordered: count("reordered"),
        duplicates: count("duplicates"),
        trace_gap_p50_us: trace.gap_p50_us,
        gap_p50_us: gap("p50"),
        gap_p99_us: gap("p99"),
        error_p50_us: error("p50"),
        error_p99_us: error("p99"),
        error_p999_us: error("p999"),
        error_max_us: error("max"),
        drift_ppm: compared["timing"]["drift"]["ppm"].as_f64(),
        cpu_percent: sent.cpu_s / sent.took_s * 100.0,
        unseen: unseen.filter_map(|(_, frames)| frames.as_u64()).sum(),
        pauses: witness["pauses"].clone(),
        watched_s: number(&witness["watched_s"]),
        stolen_s: number(&found["stolen_s"]),
    }
}

/// Returns remarks on this machine, as sentences.
pub fn machine_remarks() -> Vec<String> {
    let mut remarks = vec![format!("{} cores", host::cores())];
    if let Ok(release) = nix::sys::utsname::uname() {
        remarks.push(format!("Linux {}", release.release().to_string_lossy()));
    }
    let throttle = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us");
    let throttle: Option<i64> = throttle.ok().and_then(|text| text.trim().parse().ok());
    if let Some(micros) = throttle.filter(|micros| *micros >= 0) {
        remarks.push(format!(
            "real-time threads may run for {micros} us per second \
             (kernel.sched_rt_runtime_us); a spinning one is stopped for the rest"
        ));
    }
    remarks
}
