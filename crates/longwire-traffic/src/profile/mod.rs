//! Device tests that combine several generator runs: RFC 2544 for throughput and latency, RFC 2889
//! for switches, and ITU-T Y.1564 for services.
//!
//! A test requests trials from a [`Tester`] and judges their outcomes; [`PortTester`] runs them
//! between two ports. Loss that the generator or receiver may have caused is never attributed to
//! the device: see [`Verdict`].

mod ports;
mod probes;
mod rfc2544;
mod rfc2889;
mod search;
mod trial;
mod y1564;

#[cfg(test)]
mod tests;

pub use ports::{PortTester, Progress, StartRun};
pub use probes::ProbeReport;
pub use rfc2544::{
    BurstReport, LatencyReport, LossReport, Rfc2544, Rfc2544Report, Rfc2544Test, SizeReport,
    ThroughputReport,
};
pub use rfc2889::{
    CachingReport, ForwardingReport, LearningReport, Rfc2889, Rfc2889Report, Rfc2889Test,
};
pub use search::Limit;
pub use trial::{Headers, Length, Outcome, ProfileError, Tester, Trial, Verdict};
pub use y1564::{Limits, Service, ServiceReport, StepReport, Y1564, Y1564Report};

use serde::Serialize;

/// Report of a profile.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileReport {
    /// RFC 2544: throughput, latency, loss and bursts.
    Rfc2544(Rfc2544Report),
    /// RFC 2889: forwarding and learning of a switch.
    Rfc2889(Rfc2889Report),
    /// ITU-T Y.1564: service rates and limits.
    Y1564(Y1564Report),
}

impl ProfileReport {
    /// Whether all requirements are met.
    pub fn passed(&self) -> bool {
        match self {
            ProfileReport::Rfc2544(report) => report.passed,
            ProfileReport::Rfc2889(report) => report.passed,
            ProfileReport::Y1564(report) => report.passed,
        }
    }
}
