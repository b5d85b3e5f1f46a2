//! Counters of a run.

use serde_json::Value;

/// Counters of a run, summed over its links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Delivered frames.
    pub carried: u64,
    /// Dropped frames.
    pub dropped: u64,
    /// Artifacts.
    pub artifacts: u64,
    /// Highest 99th percentile of a port's lateness, in microseconds.
    pub lateness_p99_us: u64,
}

impl Counters {
    /// Reads the statistics and the report of a run. Missing fields count as 0.
    pub fn of_run(stats: &Value, report: &Value) -> Counters {
        let totals = &stats["totals"];
        let mut sum = Counters {
            carried: totals["packets_out"].as_u64().unwrap_or(0),
            dropped: total(&totals["drops"]),
            ..Counters::default()
        };
        for port in report["ports"].as_array().into_iter().flatten() {
            // Repeats the counters of a peer, and is in the final report alone.
            if !port["name"].as_str().is_some_and(is_row_of_host) {
                sum.artifacts += total(&port["artifacts"]);
            }
            let late = port["lateness_us"]["p99"].as_f64().unwrap_or(0.0);
            sum.lateness_p99_us = sum.lateness_p99_us.max(late.ceil() as u64);
        }
        for peer in report["hosts"]["peers"].as_array().into_iter().flatten() {
            let count = |name: &str| peer[name].as_u64().unwrap_or(0);
            // An outage is an artifact besides the frames that it drops as `port_lost`.
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

    /// Adds counters; takes the maximum of the lateness.
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
    fn underlay_losses_are_artifacts() {
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
