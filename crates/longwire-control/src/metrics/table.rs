//! The metrics: those of the run and the switch are listed here, the others follow from
//! the ledger.

use longwire_fabric::PeerReport;
use longwire_runtime::RunReport;
use longwire_runtime::fabric::{CoreCounts, LinkTotals};
use longwire_runtime::ledger::{Counter, Effects, Fold, Handovers, Memory, Scope, Traffic};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::Snapshot;

/// A metric: its name after `longwire_` and before its unit and `_total`, and the source
/// of its values.
#[derive(Clone)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: Option<Unit>,
    /// One line of help.
    pub help: &'static str,
    /// Its values.
    pub source: Source,
}

/// The source of values: one for each port, link or reason.
#[derive(Clone, Copy)]
pub enum Source {
    /// The program.
    Info,
    /// The run, rising and falling.
    Run(fn(&Snapshot) -> f64),
    /// A count of the switch.
    Switch(fn(&RunReport) -> u64),
    /// The same, by a label of this name.
    SwitchBy(&'static str, fn(&RunReport) -> Vec<(&str, u64)>),
    /// A counter of the ledger, of each object in a scope.
    Counter(&'static Counter, Scope),
    /// Artifacts of a port, by kind.
    PortArtifacts,
    /// The lateness of frames at a port.
    PortLateness,
    /// Drops of a link, by reason.
    LinkDrops,
    /// A gauge of a link.
    LinkGauge(fn(&LinkTotals) -> u64),
    /// A value of the exchange with each of the other hosts.
    Host(MetricType, fn(&PeerReport) -> u64),
}

/// Returns all metrics, in the order in which they are written.
pub fn metrics() -> Vec<Metric> {
    let groups = [
        run_metrics(),
        counters(CoreCounts::COUNTERS, Scope::Run),
        counters(Traffic::COUNTERS, Scope::Port),
        vec![metric(
            "port_artifacts",
            None,
            Source::PortArtifacts,
            "What the emulator did to frames that no link asked for, by kind",
        )],
        counters(Memory::COUNTERS, Scope::Port),
        vec![metric(
            "port_lateness",
            Some(Unit::Seconds),
            Source::PortLateness,
            "How much later than their release frames were handed to the port",
        )],
        counters(Traffic::COUNTERS, Scope::Link),
        vec![metric(
            "link_dropped_frames",
            None,
            Source::LinkDrops,
            "Frames that the link lost, by reason",
        )],
        counters(Effects::COUNTERS, Scope::Link),
        counters(Handovers::COUNTERS, Scope::Link),
        vec![metric(
            "link_queued_frames",
            None,
            Source::LinkGauge(LinkTotals::queued),
            "Frames in the link's queue",
        )],
        host_metrics(),
    ];
    groups.concat()
}

/// Returns the metrics of counters in a scope.
fn counters(counters: &'static [Counter], scope: Scope) -> Vec<Metric> {
    use longwire_runtime::ledger::Unit as Counted;
    let metrics = counters.iter().flat_map(|counter| {
        let exported = counter.metrics.iter();
        let exported = exported.filter(move |metric| metric.scope == scope);
        exported.map(move |metric| (counter, metric))
    });
    let metrics = metrics.map(|(counter, exported)| {
        let stem = exported.stem;
        let name = match scope {
            Scope::Link => format!("link_{stem}"),
            Scope::Port => format!("port_{stem}"),
            Scope::Run => stem.to_owned(),
        };
        let (name, unit) = match counter.unit {
            Counted::Frames => (name + "_frames", None),
            Counted::Rows => (name + "_rows", None),
            Counted::Bytes => (name, Some(Unit::Bytes)),
            Counted::Nanos => (name, Some(Unit::Other("nanoseconds".to_owned()))),
        };
        metric(&name, unit, Source::Counter(counter, scope), exported.help)
    });
    metrics.collect()
}

fn metric(name: &str, unit: Option<Unit>, source: Source, help: &'static str) -> Metric {
    Metric {
        name: name.to_owned(),
        unit,
        help,
        source,
    }
}

/// Returns the metrics of the program, the run and the switch.
fn run_metrics() -> Vec<Metric> {
    vec![
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
            Source::Switch(|fabric| fabric.switch.forwarded),
            "Frames that the switch sent to one port",
        ),
        metric(
            "switch_flooded_frames",
            None,
            Source::SwitchBy("kind", |fabric| fabric.switch.flooded_by_kind().collect()),
            "Frames that the switch sent to all ports, by kind of destination",
        ),
        metric(
            "switch_refused_frames",
            None,
            Source::SwitchBy("reason", |fabric| {
                fabric.switch.not_forwarded.nonzero().collect()
            }),
            "Frames that the switch sent to no port, by reason",
        ),
        metric(
            "switch_stations_learnt",
            None,
            Source::Switch(|fabric| fabric.switch.learnt),
            "Stations that the switch learnt",
        ),
        metric(
            "switch_stations_moved",
            None,
            Source::Switch(|fabric| fabric.switch.moved),
            "Stations heard of at another port than before",
        ),
        metric(
            "switch_loop_signs",
            None,
            Source::Switch(|fabric| fabric.switch.loop_signs),
            "Signs of a loop among the ports",
        ),
    ]
}

/// Returns the metrics of the exchange with other hosts.
fn host_metrics() -> Vec<Metric> {
    let counter =
        |name, help, value| metric(name, None, Source::Host(MetricType::Counter, value), help);
    vec![
        metric(
            "host_connected",
            None,
            Source::Host(MetricType::Gauge, |peer| peer.connected.into()),
            "Whether the host answers",
        ),
        counter(
            "host_outages",
            "Times at which the host did not answer for a second",
            |peer| peer.outages,
        ),
        counter("host_sent_frames", "Frames sent to the host", |peer| {
            peer.frames_sent
        }),
        counter(
            "host_received_frames",
            "Frames received from the host",
            |peer| peer.frames_received,
        ),
        counter(
            "host_lost_frames",
            "Frames that were lost on the way from the host",
            |peer| peer.frames_lost,
        ),
        counter(
            "host_dropped_frames",
            "Frames to the host and from it for which there was no memory",
            |peer| peer.frames_dropped,
        ),
        counter(
            "host_late_frames",
            "Frames that came from the host after their release",
            |peer| peer.frames_late,
        ),
        metric(
            "host_round_trip",
            Some(Unit::Other("nanoseconds".to_owned())),
            Source::Host(MetricType::Gauge, |peer| peer.round_trip_ns),
            "The shortest round trip to the host",
        ),
    ]
}

impl Metric {
    /// Returns the type of the metric.
    pub fn kind(&self) -> MetricType {
        match self.source {
            Source::Info => MetricType::Info,
            Source::Run(_) | Source::LinkGauge(_) => MetricType::Gauge,
            Source::Counter(counter, _) if counter.fold == Fold::Max => MetricType::Gauge,
            Source::PortLateness => MetricType::Histogram,
            Source::Host(kind, _) => kind,
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
        let mut wanted: Vec<String> = metrics()
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
