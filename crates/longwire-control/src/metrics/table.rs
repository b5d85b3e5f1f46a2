//! The metrics there are.

use longwire_runtime::fabric::{FabricReport, LinkTotals, PortReport};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::Snapshot;

/// A metric: what it is called behind `longwire_` and before its unit and
/// `_total`, and where its value comes from.
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: Option<Unit>,
    /// One line of help.
    pub help: &'static str,
    /// Its values.
    pub source: Source,
}

/// The source of values: one for each port, link or reason.
pub enum Source {
    /// Said of the program.
    Info,
    /// Of the run, rising and falling.
    Run(fn(&Snapshot) -> f64),
    /// Counted of the switch and the classifier.
    Fabric(fn(&FabricReport) -> u64),
    /// The same, by a label of this name.
    FabricBy(&'static str, fn(&FabricReport) -> Vec<(&'static str, u64)>),
    /// Counted of a port.
    Port(fn(&PortReport) -> u64),
    /// The same, by kind.
    PortArtifacts,
    /// Of a port, rising and falling.
    PortGauge(fn(&PortReport) -> u64),
    /// The lateness of frames at a port.
    PortLateness,
    /// Counted of a link, or of all together.
    Link(fn(&LinkTotals) -> u64),
    /// The same, by reason.
    LinkDrops,
    /// Of a link, rising and falling.
    LinkGauge(fn(&LinkTotals) -> u64),
}

const fn metric(
    name: &'static str,
    unit: Option<Unit>,
    source: Source,
    help: &'static str,
) -> Metric {
    Metric {
        name,
        unit,
        help,
        source,
    }
}

/// All metrics.
pub static METRICS: [Metric; 29] = [
    metric("build", None, Source::Info, "Version of the program"),
    metric(
        "run_elapsed",
        Some(Unit::Seconds),
        Source::Run(|snapshot| snapshot.elapsed_s),
        "Time since the start of the run",
    ),
    metric(
        "links",
        None,
        Source::Run(|snapshot| snapshot.count as f64),
        "Links that are counted here, directions apart",
    ),
    metric(
        "frames_in_flight",
        None,
        Source::Run(|snapshot| snapshot.report.in_flight as f64),
        "Frames inside: queued, on their way, or waiting for their release",
    ),
    metric(
        "switch_forwarded_frames",
        None,
        Source::Fabric(|fabric| fabric.switch.forwarded),
        "Frames that the switch sent to one port",
    ),
    metric(
        "switch_flooded_frames",
        None,
        Source::FabricBy("kind", flooded),
        "Frames that the switch sent to all ports, by kind of destination",
    ),
    metric(
        "switch_refused_frames",
        None,
        Source::FabricBy("reason", |fabric| {
            let reasons = fabric.switch.not_forwarded.iter();
            reasons.map(|(reason, count)| (*reason, *count)).collect()
        }),
        "Frames that the switch sent to no port, by reason",
    ),
    metric(
        "switch_stations_learnt",
        None,
        Source::Fabric(|fabric| fabric.switch.learnt),
        "Stations that the switch learnt",
    ),
    metric(
        "switch_stations_moved",
        None,
        Source::Fabric(|fabric| fabric.switch.moved),
        "Stations heard of at another port than before",
    ),
    metric(
        "switch_loop_signs",
        None,
        Source::Fabric(|fabric| fabric.switch.loop_signs),
        "Signs of a loop among the ports",
    ),
    metric(
        "passed_frames",
        None,
        Source::Fabric(|fabric| fabric.counts.passed),
        "Frames that crossed no link, for no rule was about them",
    ),
    metric(
        "unmatched_dropped_frames",
        None,
        Source::Fabric(|fabric| fabric.counts.unmatched_dropped),
        "Frames that were dropped because no rule was about them",
    ),
    metric(
        "moved_frames",
        None,
        Source::Fabric(|fabric| fabric.counts.moved),
        "Frames taken to have arrived later than they did, by more than the tolerance",
    ),
    metric(
        "port_received_frames",
        None,
        Source::Port(|port| port.packets_in),
        "Frames that came in by the port",
    ),
    metric(
        "port_received",
        Some(Unit::Bytes),
        Source::Port(|port| port.bytes_in),
        "Their bytes",
    ),
    metric(
        "port_sent_frames",
        None,
        Source::Port(|port| port.packets_out),
        "Frames that left by the port",
    ),
    metric(
        "port_sent",
        Some(Unit::Bytes),
        Source::Port(|port| port.bytes_out),
        "Their bytes",
    ),
    metric(
        "port_artifacts",
        None,
        Source::PortArtifacts,
        "What the emulator did to frames that no link asked for, by kind",
    ),
    metric(
        "port_memory_max",
        Some(Unit::Bytes),
        Source::PortGauge(|port| port.memory_max),
        "The most memory that frames of the port took so far",
    ),
    metric(
        "port_lateness",
        Some(Unit::Seconds),
        Source::PortLateness,
        "How much later than their release frames were handed to the port",
    ),
    metric(
        "link_received_frames",
        None,
        Source::Link(|link| link.packets_in),
        "Frames that came to the link",
    ),
    metric(
        "link_received",
        Some(Unit::Bytes),
        Source::Link(|link| link.bytes_in),
        "Their bytes",
    ),
    metric(
        "link_delivered_frames",
        None,
        Source::Link(|link| link.packets_out),
        "Frames that the link delivered, duplicates included",
    ),
    metric(
        "link_delivered",
        Some(Unit::Bytes),
        Source::Link(|link| link.bytes_out),
        "Their bytes",
    ),
    metric(
        "link_dropped_frames",
        None,
        Source::LinkDrops,
        "Frames that the link lost, by reason",
    ),
    metric(
        "link_marked_frames",
        None,
        Source::Link(|link| link.ecn_marked),
        "Frames that the link's queue marked as having met congestion",
    ),
    metric(
        "link_corrupted_frames",
        None,
        Source::Link(|link| link.corrupted),
        "Frames that the link spoilt",
    ),
    metric(
        "link_duplicated_frames",
        None,
        Source::Link(|link| link.duplicated),
        "Deliveries beside the first of a frame",
    ),
    metric(
        "link_queued_frames",
        None,
        Source::LinkGauge(LinkTotals::queued),
        "Frames in the link's queue",
    ),
];

fn flooded(fabric: &FabricReport) -> Vec<(&'static str, u64)> {
    let kinds = ["broadcast", "multicast", "unknown"];
    kinds.into_iter().zip(fabric.switch.flooded).collect()
}

impl Metric {
    /// Returns the type of the metric.
    pub fn kind(&self) -> MetricType {
        match self.source {
            Source::Info => MetricType::Info,
            Source::Run(_) | Source::PortGauge(_) | Source::LinkGauge(_) => MetricType::Gauge,
            Source::PortLateness => MetricType::Histogram,
            _ => MetricType::Counter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page has each metric under the name that is scraped, of its kind,
    /// and no other.
    #[test]
    fn the_page_lists_all_metrics() {
        let page = include_str!("../../../../docs/metrics.md");
        let mut wanted: Vec<String> = METRICS
            .iter()
            .map(|metric| {
                let mut name = format!("longwire_{}", metric.name);
                if let Some(unit) = &metric.unit {
                    name = format!("{name}_{}", unit.as_str());
                }
                let (end, kind) = match metric.kind() {
                    MetricType::Counter => ("_total", "counter"),
                    MetricType::Gauge => ("", "gauge"),
                    MetricType::Histogram => ("", "histogram"),
                    _ => ("_info", "info"),
                };
                format!("| `{name}{end}` | {kind} |")
            })
            .collect();
        let rows = page.lines().filter(|line| line.starts_with("| `longwire_"));
        let mut listed: Vec<String> = rows
            .map(|row| {
                let cells: Vec<&str> = row.split('|').take(3).collect();
                format!("{}|", cells.join("|"))
            })
            .collect();
        wanted.sort();
        listed.sort();
        assert_eq!(wanted, listed);
    }
}
