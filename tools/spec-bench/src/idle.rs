//! `bench idle`: the cost of a link without traffic.

use std::time::{Duration, Instant};

use longwire_engine::LinkConfig;
use longwire_runtime::RunConfig;
use serde::Serialize;

use longwire::Error;
use longwire::bench::testbed::Testbed;

/// The results of `bench idle`.
#[derive(Debug, Serialize)]
pub(super) struct IdleFindings {
    seconds: f64,
    /// CPU time of the emulator's threads, of one core.
    cpu_percent: f64,
    /// Frames of the kernel (neighbour discovery and the like).
    packets: u64,
    /// Resident memory of the whole program, in bytes.
    resident: u64,
}

pub(super) fn measure(time: Duration, kind: &str) -> Result<IdleFindings, Error> {
    let testbed = Testbed::emulated()?;
    let link = LinkConfig::default;
    let running = testbed.start(kind, link(), link(), RunConfig::default())?;
    let start = Instant::now();
    std::thread::sleep(time);
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

/// Returns the resident memory of a process (`self`: this one), in bytes.
pub(super) fn resident(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

pub(super) fn print(findings: &IdleFindings) {
    println!(
        "idle for {:.1} s: {:.3} % of a core, {} frames, {:.1} MB resident",
        findings.seconds,
        findings.cpu_percent,
        findings.packets,
        findings.resident as f64 / 1e6
    );
}
