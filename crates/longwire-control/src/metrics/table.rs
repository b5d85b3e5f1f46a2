//! Table of metrics. Metrics of counters derive from [`longwire_runtime::counters`].

use longwire_network::PeerReport;
use longwire_runtime::RunReport;
use longwire_runtime::counters::{Counter, Effects, Fold, Handovers, Memory, Scope, Traffic};
use longwire_runtime::deciding::{CoreCounts, LinkTotals};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::Snapshot;

/// A metric. Its name omits `longwire_`, the unit and `_total`.
#[derive(Clone)]
pub struct Metric {
    pub name: String,
    pub unit: Option<Unit>,
    /// Help text, one line.
    pub help: &'static str,
    pub source: Source,
}

/// Source of a metric's values.
#[derive(Clone, Copy)]
pub enum Source {
    /// Program version.
    Info,
    /// Gauge of the run.
    Run(fn(&Snapshot) -> f64),
    /// Counter of the switch.
    Switch(fn(&RunReport) -> u64),
    /// Switch counters, by label.
    SwitchBy(&'static str, fn(&RunReport) -> Vec<(&str, u64)>),
    /// Counter of the runtime, for each object of a scope.
    Counter(&'static Counter, Scope),
    /// Port artifacts, by kind.
    PortArtifacts,
    /// Lateness of a port.
    PortLateness,
    /// Link drops, by reason.
    LinkDrops,
    /// Gauge of a link.
    LinkGauge(fn(&LinkTotals) -> u64),
    /// Value per remote host.
    Host(MetricType, fn(&PeerReport) -> u64),
}

/// Returns all metrics, in output order.
pub fn metrics() -> Vec<Metric> {
    let groups = [
        run_metrics(),
        counters(CoreCounts::COUNTERS, Scope::Run),
        counters(Traffic::COUNTERS, Scope::Port),
        vec![
            metric("port_artifacts", Source::PortArtifacts)
                .help("Artifacts: deviations of the emulator from its configuration, by kind"),
        ],
        counters(Memory::COUNTERS, Scope::Port),
        vec![
            metric("port_lateness", Source::PortLateness)
                .unit(Unit::Seconds)
                .help("Lateness: time from a frame's release to its handover to the port"),
        ],
        counters(Traffic::COUNTERS, Scope::Link),
        vec![metric("link_dropped_frames", Source::LinkDrops).help("Dropped frames, by reason")],
        counters(Effects::COUNTERS, Scope::Link),
        counters(Handovers::COUNTERS, Scope::Link),
        vec![
            metric("link_queued_frames", Source::LinkGauge(LinkTotals::queued))
                .help("Frames in the link's queue"),
        ],
        host_metrics(),
    ];
    groups.concat()
}

/// Returns the metrics of a scope's counters.
fn counters(counters: &'static [Counter], scope: Scope) -> Vec<Metric> {
    use longwire_runtime::counters::Unit as Counted;
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
        let metric = metric(&name, Source::Counter(counter, scope)).help(exported.help);
        Metric { unit, ..metric }
    });
    metrics.collect()
}

fn metric(name: &str, source: Source) -> Metric {
    Metric {
        name: name.to_owned(),
        unit: None,
        help: "",
        source,
    }
}

/// Returns the metrics of the program, the run and the switch.
fn run_metrics() -> Vec<Metric> {
    use Source::{Run, Switch, SwitchBy};
    vec![
        metric("build", Source::Info).help("Version of the program"),
        metric("run_elapsed", Run(|it| it.elapsed_s))
            .unit(Unit::Seconds)
            .help("Time since the start of the run"),
        metric("links", Run(|it| it.count as f64))
            .help("Link directions; a shared link counts once"),
        metric("frames_in_flight", Run(|it| it.report.in_flight as f64))
            .help("Frames queued or in flight"),
        metric("switch_forwarded_frames", Switch(|it| it.switch.forwarded))
            .help("Frames forwarded to one port"),
        metric(
            "switch_flooded_frames",
            SwitchBy("kind", |it| it.switch.flooded_by_kind().collect()),
        )
        .help("Flooded frames, by kind of destination"),
        metric(
            "switch_refused_frames",
            SwitchBy("reason", |it| it.switch.not_forwarded.nonzero().collect()),
        )
        .help("Frames forwarded to no port, by reason"),
        metric("switch_stations_learnt", Switch(|it| it.switch.learnt))
            .help("Stations learned by the switch"),
        metric("switch_stations_moved", Switch(|it| it.switch.moved))
            .help("Stations that moved to another port"),
        metric("switch_loop_signs", Switch(|it| it.switch.loop_signs))
            .help("Suspected loops among the ports"),
    ]
}

/// Returns the metrics of the exchange with other hosts.
fn host_metrics() -> Vec<Metric> {
    let gauge = |name, value| metric(name, Source::Host(MetricType::Gauge, value));
    let counter = |name, value| metric(name, Source::Host(MetricType::Counter, value));
    vec![
        gauge("host_connected", |peer| peer.connected.into()).help("Whether the host answers"),
        counter("host_outages", |peer| peer.outages)
            .help("Outages: times the host did not answer for a second"),
        counter("host_sent_frames", |peer| peer.frames_sent).help("Frames sent to the host"),
        counter("host_received_frames", |peer| peer.frames_received)
            .help("Frames received from the host"),
        counter("host_lost_frames", |peer| peer.frames_lost)
            .help("Frames lost in transit from the host"),
        counter("host_dropped_frames", |peer| peer.frames_dropped)
            .help("Frames to and from the host dropped for lack of memory"),
        counter("host_late_frames", |peer| peer.frames_late)
            .help("Frames received from the host after their release"),
        gauge("host_round_trip", |peer| peer.round_trip_ns)
            .unit(Unit::Other("nanoseconds".to_owned()))
            .help("Minimum round-trip time to the host"),
    ]
}

impl Metric {
    fn unit(self, unit: Unit) -> Metric {
        let unit = Some(unit);
        Metric { unit, ..self }
    }

    fn help(self, help: &'static str) -> Metric {
        Metric { help, ..self }
    }

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

    /// docs/metrics.md lists exactly these metrics, with their types.
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
