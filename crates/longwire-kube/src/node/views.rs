//! Answers of a node: the fields that the agent reads.

use serde::Deserialize;
use serde_json::Value;

/// All attachments of a node.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct AttachmentList {
    /// In the order of their names.
    pub attachments: Vec<AttachmentView>,
}

/// An attachment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AttachmentView {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: AttachmentState,
    /// Why it waits.
    #[serde(default)]
    pub reason: Option<String>,
    /// Whether it waits because another link, or a port of a network, has the interface.
    #[serde(default)]
    pub taken: bool,
    /// Unix time of the start of its links, in seconds.
    #[serde(default)]
    pub since_unix: Option<u64>,
    /// The attachment as it was asked for.
    pub spec: Value,
}

impl AttachmentView {
    /// Returns whether its link carries packets.
    pub fn is_attached(&self) -> bool {
        self.state == AttachmentState::Attached
    }
}

/// The state of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentState {
    /// Its link carries packets.
    Attached,
    /// Its target or interface does not exist yet, or a state that this program does not
    /// know.
    #[serde(other)]
    Waiting,
}

/// All networks of a node.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NetworkList {
    /// In the order of their names.
    pub networks: Vec<NetworkView>,
}

/// A network that a node runs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NetworkView {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: NetworkState,
    /// Why it does not run.
    #[serde(default)]
    pub reason: Option<String>,
}

impl NetworkView {
    /// Returns whether it carries frames.
    pub fn is_running(&self) -> bool {
        self.state == NetworkState::Running
    }
}

/// The state of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkState {
    /// It carries frames.
    Running,
    /// Its process has started, and waits for those of other hosts.
    Starting,
    /// It waits for a pod, or for a new start after a failure, or a state that this program
    /// does not know.
    #[serde(other)]
    Waiting,
}

/// The reason for which a request is refused.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Refusal {
    /// In one line.
    #[serde(default)]
    pub error: String,
    /// Everything that is wrong.
    #[serde(default)]
    pub problems: Vec<Problem>,
}

/// A wrong value of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Problem {
    /// The pointer (RFC 6901) to the value in the request's body.
    #[serde(default)]
    pub pointer: String,
    /// The field or option.
    #[serde(default)]
    pub field: String,
    /// The reason.
    #[serde(default)]
    pub reason: String,
    /// The remedy; empty if there is none.
    #[serde(default)]
    pub remedy: String,
}

/// Sums of a run, from its statistics and its report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that the links delivered.
    pub carried: u64,
    /// Frames that the links dropped.
    pub dropped: u64,
    /// Failures of the emulator.
    pub artifacts: u64,
    /// The highest 99th percentile of lateness of a link, in microseconds.
    pub lateness_p99_us: u64,
}

impl Counters {
    /// Reads the statistics and the report of a run. Fields that they do not have count as 0.
    pub fn of_run(stats: &Value, report: &Value) -> Counters {
        let totals = &stats["totals"];
        let mut sum = Counters {
            carried: totals["packets_out"].as_u64().unwrap_or(0),
            dropped: total(&totals["drops"]),
            ..Counters::default()
        };
        for port in report["ports"].as_array().into_iter().flatten() {
            // Its row repeats the frames of a peer, and only the report at the end has one.
            if !port["name"].as_str().is_some_and(is_row_of_host) {
                sum.artifacts += total(&port["artifacts"]);
            }
            let late = port["lateness_us"]["p99"].as_f64().unwrap_or(0.0);
            sum.lateness_p99_us = sum.lateness_p99_us.max(late.ceil() as u64);
        }
        for peer in report["hosts"]["peers"].as_array().into_iter().flatten() {
            let count = |name: &str| peer[name].as_u64().unwrap_or(0);
            // An outage drops frames as the link's `port_lost`, and is a failure as well.
            let lost = [
                "frames_lost",
                "frames_unconfirmed",
                "frames_dropped",
                "outages",
            ];
            sum.artifacts += lost.iter().map(|name| count(name)).sum::<u64>();
        }
        sum
    }

    /// Adds others; of the lateness, the higher one stays.
    pub fn add(&mut self, other: Counters) {
        self.carried += other.carried;
        self.dropped += other.dropped;
        self.artifacts += other.artifacts;
        self.lateness_p99_us = self.lateness_p99_us.max(other.lateness_p99_us);
    }
}

fn is_row_of_host(port: &str) -> bool {
    port.starts_with("host ")
}

/// Returns the sum of an object's numbers.
fn total(counters: &Value) -> u64 {
    let fields = counters.as_object();
    let numbers = fields.into_iter().flatten().filter_map(|(_, n)| n.as_u64());
    numbers.sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn frames_that_the_underlay_lost_are_artifacts() {
        let stats = json!({ "totals": { "packets_out": 90, "drops": { "loss": 4, "queue": 3 } } });
        let report = json!({ "ports": [
            { "name": "a", "artifacts": { "late": 1 }, "lateness_us": { "p99": 41.5 } },
            { "name": "host east", "artifacts": { "underlay_lost": 2 } },
        ], "hosts": { "peers": [
            { "name": "east", "frames_lost": 2, "frames_unconfirmed": 3, "outages": 1 },
        ] } });
        let expected = Counters {
            carried: 90,
            dropped: 7,
            artifacts: 7,
            lateness_p99_us: 42,
        };
        assert_eq!(Counters::of_run(&stats, &report), expected);
    }
}
