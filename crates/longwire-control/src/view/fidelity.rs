//! Fidelity of the run so far.

use longwire_network::Controller;
use longwire_runtime::counters::NamedCounts;
use longwire_runtime::deciding::PortReport;
use longwire_runtime::{Grade, Pauses, RunReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Judgement;

/// Fidelity of a run so far.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Fidelity {
    /// Time since the start of the run, in seconds.
    pub elapsed_s: f64,
    /// Verdict in one sentence.
    pub verdict: String,
    /// Grade: `faithful`, `nearly-faithful`, `no-frames` or `not-faithful`.
    #[schemars(with = "String")]
    pub grade: Grade,
    /// Lateness at the worst port, in microseconds.
    pub lateness_us: Lateness,
    /// Histogram of lateness over all ports, without empty classes.
    pub histogram: Vec<LatenessClass>,
    /// Artifacts of all ports by kind, without zeros.
    pub artifacts: NamedCounts,
    /// Machine pauses.
    pub pauses: Pauses,
    /// First artifact that was observed.
    pub first: Option<FirstSeen>,
}

/// Quantiles of lateness, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Lateness {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Maximum.
    pub max: f64,
}

/// Class of the lateness histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatenessClass {
    /// Lower bound, exclusive, in microseconds.
    pub from_us: f64,
    /// Upper bound, inclusive; null for the last class.
    pub to_us: Option<f64>,
    /// Number of releases.
    pub count: u64,
}

/// First artifact of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstSeen {
    /// Time of the observation since the start, in seconds; at most 1 s after the artifact.
    pub at_s: f64,
    /// Port or host, and kind of artifact.
    pub text: String,
}

/// Detects the first artifact.
#[derive(Debug, Default)]
pub struct FirstArtifact(Option<FirstSeen>);

impl FirstArtifact {
    /// Reads the ports' counters until an artifact is found.
    pub fn update(&mut self, controller: &Controller) {
        if self.0.is_some() {
            return;
        }
        let report = controller.report();
        let first = places(&report).find_map(|(place, artifacts)| {
            let (kind, count) = artifacts.nonzero().next()?;
            Some(format!("{place}: {kind}, {count}"))
        });
        self.0 = first.map(|text| FirstSeen {
            at_s: controller.elapsed().as_secs_f64(),
            text,
        });
    }

    /// Returns the fidelity of the run so far.
    pub fn fidelity(&self, controller: &Controller, judgement: Judgement) -> Fidelity {
        let report = controller.report();
        let worst = report.ports.iter().map(|port| &port.lateness_us);
        let worst = worst.max_by(|a, b| a.p99.total_cmp(&b.p99));
        Fidelity {
            elapsed_s: controller.elapsed().as_secs_f64(),
            verdict: judgement.line,
            grade: judgement.grade,
            lateness_us: worst.map_or(Lateness::default(), |worst| Lateness {
                p50: worst.p50,
                p99: worst.p99,
                p999: worst.p999,
                max: worst.max,
            }),
            histogram: histogram(&report.ports),
            artifacts: artifacts(&report),
            pauses: report.pauses,
            first: self.0.clone(),
        }
    }
}

/// Returns the ports and hosts, with their artifact counts.
fn places(report: &RunReport) -> impl Iterator<Item = (String, NamedCounts)> {
    let ports = report.ports.iter();
    let ports = ports.map(|port| (format!("port {}", port.name), port.artifacts.clone()));
    let peers = report.hosts.iter().flat_map(|hosts| &hosts.peers);
    ports.chain(peers.map(|peer| (format!("host {}", peer.name), peer.artifacts())))
}

fn artifacts(report: &RunReport) -> NamedCounts {
    let mut sums = NamedCounts::default();
    for (_, artifacts) in places(report) {
        for (kind, count) in artifacts.iter().filter(|(_, count)| **count > 0) {
            *sums.entry(kind.clone()).or_default() += count;
        }
    }
    sums
}

fn histogram(ports: &[PortReport]) -> Vec<LatenessClass> {
    let Some(first) = ports.first() else {
        return Vec::new();
    };
    let bounds = first.lateness_buckets.iter().map(|(bound, _)| *bound);
    let mut below = 0.0;
    let classes = bounds.enumerate().map(|(at, bound)| {
        let of_port = |port: &PortReport| port.lateness_buckets.get(at).map_or(0, |class| class.1);
        let class = LatenessClass {
            from_us: below * 1e6,
            to_us: bound.is_finite().then_some(bound * 1e6),
            count: ports.iter().map(of_port).sum(),
        };
        below = bound;
        class
    });
    classes.filter(|class| class.count > 0).collect()
}
