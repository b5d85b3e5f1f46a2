//! The parts of a JSON report that a page shows.
//!
//! All fields are optional: earlier versions had fewer, and the reports of networks differ from
//! those of a link.

#![allow(missing_docs, reason = "docs/reference/report.md describes the fields")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::PlotError;

/// A report.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RunDocument {
    pub seed: Option<u64>,
    pub epoch_ns: u64,
    pub duration_s: f64,
    pub links: Vec<PartDocument>,
    pub ports: Vec<PartDocument>,
    pub pauses: Option<PausesDocument>,
    pub stops: Option<PausesDocument>,
    pub cpu_s: f64,
    pub core_wait_s: f64,
    pub notes: Vec<String>,
    pub error: Option<String>,
    pub changes: Option<ChangesDocument>,
    pub verdict: Option<VerdictDocument>,
    pub command: Vec<String>,
    pub version: Option<String>,
}

/// A direction of a link, or a port.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PartDocument {
    pub name: String,
    pub config: Map<String, Value>,
    pub packets_in: u64,
    pub packets_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub drops: Value,
    pub dropped: BTreeMap<String, u64>,
    pub artifacts: BTreeMap<String, u64>,
    pub ecn_marked: u64,
    pub queue_packets_max: Option<u64>,
    pub lateness_us: Option<BTreeMap<String, f64>>,
    pub lateness_own_us: Option<BTreeMap<String, f64>>,
    pub lateness_histogram_us: Vec<(Option<u64>, u64)>,
}

impl PartDocument {
    /// Returns the non-zero drops by reason.
    pub fn drops(&self) -> BTreeMap<String, u64> {
        let named = self.drops.as_object().into_iter().flatten();
        let named = named.filter_map(|(reason, count)| Some((reason.clone(), count.as_u64()?)));
        let named = named.chain(self.dropped.iter().map(|(reason, n)| (reason.clone(), *n)));
        named.filter(|(_, count)| *count > 0).collect()
    }
}

/// Pauses of the machine, or stops of the process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PausesDocument {
    pub count: u64,
    pub max_us: f64,
    pub total_us: f64,
}

/// Changes made during a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ChangesDocument {
    pub made: Vec<ChangeDocument>,
    pub forgotten: u64,
}

/// A change.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ChangeDocument {
    pub at_ns: u64,
    pub until_ns: Option<u64>,
    pub by: String,
    pub change: Value,
    pub links: u64,
}

/// Verdict on a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct VerdictDocument {
    pub grade: String,
    pub line: String,
    pub hints: Vec<String>,
}

impl RunDocument {
    /// Reads a report from its file.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a report.
    pub fn read(path: &Path) -> Result<RunDocument, PlotError> {
        let file = File::open(path).map_err(|source| PlotError::unreadable(path, source))?;
        let report: RunDocument =
            serde_json::from_reader(BufReader::new(file)).map_err(|source| PlotError::Report {
                path: path.to_owned(),
                source,
            })?;
        if report.links.is_empty() {
            let what = "the report has no links: empty or missing field `links`";
            return Err(PlotError::nothing(path, what));
        }
        Ok(report)
    }
}
