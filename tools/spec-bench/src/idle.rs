//! `bench idle`: the cost of an idle link.

use std::time::{Duration, Instant};

use longwire_engine::LinkConfig;
use longwire_runtime::RunConfig;
use serde::Serialize;

use crate::harness::Measurement;
use longwire::Error;
use longwire::bench::testbed::Testbed;

use super::{IdleArgs, QUICK};

/// The results of `bench idle`.
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

/// Returns the resident memory of a process in bytes; `self` is this one.
pub(super) fn resident(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
