//! `/metrics`, in the format that Prometheus requests.
//!
//! `table.rs` lists the metrics; docs/metrics.md explains them.

mod table;

use std::fmt::{self, Write};
use std::sync::Arc;

use hyper::StatusCode;
use longwire_network::{Controller, HostsReport};
use longwire_runtime::RunReport;
use longwire_runtime::counters::{Counter, Scope};
use longwire_runtime::deciding::{LinkTotals, PortReport};
use longwire_topology::{Direction, split_direction};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use crate::config::Detail;
use crate::metrics::table::{Metric, Source, metrics};
use crate::reply::{METRICS_TEXT, OPEN_METRICS, Refusal, Reply};
use crate::route::Call;
use crate::state::ApiState;

/// Maximum number of links listed individually.
const EACH_MAX: usize = 20_000;

/// Counters at one point in time.
#[derive(Debug)]
struct Snapshot {
    /// Name of the node's attachment.
    attachment: Option<String>,
    elapsed_s: f64,
    report: RunReport,
    hosts: Option<HostsReport>,
    count: usize,
    /// Counters by link name and direction; for totals, a single row with neither.
    links: Vec<LinkRow>,
}

type LinkRow = (Option<(String, &'static str)>, LinkTotals);

/// Answers `/metrics` of a run.
pub fn answer(state: &ApiState, call: &Call) -> Result<Reply, Refusal> {
    let pattern = call.query.text("match").unwrap_or("*");
    let each = match call.query.text("links") {
        Some(said) => said == "each",
        None => state.metrics == Detail::Each,
    };
    let controller = &state.controller;
    let (count, sums) = controller.totals(pattern);
    if each && count > EACH_MAX {
        return Err(Refusal::bad(format!(
            "{count} directions match, but at most {EACH_MAX} are listed; narrow ?match=, or use \
             ?links=sum"
        )));
    }
    let links = if each {
        each_link(controller, pattern)
    } else {
        vec![(None, sums)]
    };
    let snapshot = Snapshot::of(controller, count, links);
    written(Snapshots(vec![snapshot]), &call.accept)
}

/// Answers `/metrics` of a node: all attachments, labelled with their names, and links by
/// direction. `accept` is the request's `Accept` header.
pub fn of_attachments(runs: &[(String, Arc<Controller>)], accept: &str) -> Result<Reply, Refusal> {
    let snapshots = runs.iter().map(|(name, controller)| {
        let links = each_link(controller, "*");
        Snapshot {
            attachment: Some(name.clone()),
            ..Snapshot::of(controller, links.len(), links)
        }
    });
    written(Snapshots(snapshots.collect()), accept)
}

/// Writes metrics in the accepted format.
fn written(snapshots: Snapshots, accept: &str) -> Result<Reply, Refusal> {
    let mut registry = Registry::with_prefix("longwire");
    registry.register_collector(Box::new(snapshots));
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|_| {
        let error = "cannot serialise the metrics";
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    })?;
    let (kind, text) = if prefers_open_metrics(accept) {
        (OPEN_METRICS, text)
    } else {
        (METRICS_TEXT, plain(&text))
    };
    Ok(Reply {
        status: StatusCode::OK,
        kind,
        text: text.into(),
    })
}

/// Returns the counters of each matching link, by its name and direction.
fn each_link(controller: &Controller, pattern: &str) -> Vec<LinkRow> {
    let mut links = Vec::new();
    controller.each_totals(pattern, &mut |name, totals| {
        let (name, direction) = split_direction(name);
        let direction = direction.map_or("both", Direction::name);
        links.push((Some((name.to_owned(), direction)), totals));
    });
    links
}

/// Counters of a run, or of all attachments of a node.
#[derive(Debug)]
struct Snapshots(Vec<Snapshot>);

impl Collector for Snapshots {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        metrics()
            .iter()
            .try_for_each(|metric| metric.write(&self.0, &mut encoder))
    }
}

const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, u64>> = None;

impl Metric {
    fn write(&self, all: &[Snapshot], encoder: &mut DescriptorEncoder) -> fmt::Result {
        let mut out =
            encoder.encode_descriptor(&self.name, self.help, self.unit.as_ref(), self.kind())?;
        if let Source::Info = self.source {
            return out.encode_info(&[("version", env!("CARGO_PKG_VERSION"))]);
        }
        all.iter()
            .try_for_each(|from| self.write_one(from, &mut out))
    }

    /// Writes the values of one run.
    fn write_one(&self, from: &Snapshot, out: &mut MetricEncoder) -> fmt::Result {
        let report = &from.report;
        let (mut ports, mut links) = (report.ports.iter(), from.links.iter());
        let mut put = |labels: &[_], value| self.write_value(out, &from.labels(labels), value);
        match self.source {
            Source::Info => Ok(()),
            Source::Run(value) => match from.labels(&[]).as_slice() {
                [] => out.encode_gauge(&value(from)),
                labels => out.encode_family(&labels)?.encode_gauge(&value(from)),
            },
            Source::Switch(value) => put(&[], value(report)),
            Source::SwitchBy(label, values) => {
                let mut values = values(report).into_iter();
                values.try_for_each(|(name, count)| put(&[(label, name)], count))
            }
            Source::Counter(counter, Scope::Run) => {
                put(&[], value(report.counts.counted(), counter))
            }
            Source::Counter(counter, Scope::Port) => {
                ports.try_for_each(|port| put(&[label(port)], value(port.counted(), counter)))
            }
            Source::PortArtifacts => ports.try_for_each(|port| {
                let mut artifacts = port.artifacts.iter();
                artifacts.try_for_each(|(kind, count)| put(&[label(port), ("kind", kind)], *count))
            }),
            Source::Host(_, value) => {
                let mut peers = from.hosts.iter().flat_map(|hosts| &hosts.peers);
                peers.try_for_each(|peer| put(&[("host", &peer.name)], value(peer)))
            }
            Source::PortLateness => {
                ports.try_for_each(|port| lateness(out, &from.labels(&[label(port)]), port))
            }
            Source::Counter(counter, Scope::Link) => links.try_for_each(|(link, totals)| {
                put(&labels_of(link), value(totals.counted(), counter))
            }),
            Source::LinkGauge(value) => {
                links.try_for_each(|(link, totals)| put(&labels_of(link), value(totals)))
            }
            Source::LinkDrops => links.try_for_each(|(link, totals)| {
                // Omit reasons without drops for individual links: they would be most of the text.
                let mut drops = totals.drops.iter();
                drops.try_for_each(|(reason, count)| match count {
                    0 if link.is_some() => Ok(()),
                    _ => put(&[&*labels_of(link), &[("reason", reason)]].concat(), count),
                })
            }),
        }
    }

    /// Writes a value with its labels.
    fn write_value(
        &self,
        out: &mut MetricEncoder,
        labels: &[(&str, &str)],
        value: u64,
    ) -> fmt::Result {
        match (self.kind(), labels) {
            (MetricType::Gauge, []) => out.encode_gauge(&value),
            (MetricType::Gauge, _) => out.encode_family(&labels)?.encode_gauge(&value),
            (_, []) => out.encode_counter(&value, NO_EXEMPLAR),
            _ => out
                .encode_family(&labels)?
                .encode_counter(&value, NO_EXEMPLAR),
        }
    }
}

impl Snapshot {
    fn of(controller: &Controller, count: usize, links: Vec<LinkRow>) -> Snapshot {
        Snapshot {
            attachment: None,
            elapsed_s: controller.elapsed().as_secs_f64(),
            report: controller.report(),
            hosts: controller.hosts(),
            count,
            links,
        }
    }

    /// Returns labels, preceded by that of the attachment.
    fn labels<'a>(&'a self, labels: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let attachment = self.attachment.as_deref();
        let attachment = attachment.map(|name| ("attachment", name));
        attachment
            .into_iter()
            .chain(labels.iter().copied())
            .collect()
    }
}

/// Returns the labels of a link; none for totals.
fn labels_of<'a>(link: &'a Option<(String, &'static str)>) -> Vec<(&'static str, &'a str)> {
    let labels = link.iter();
    let labels = labels.flat_map(|(name, direction)| [("link", &**name), ("direction", direction)]);
    labels.collect()
}

fn value(counted: impl Iterator<Item = (&'static Counter, u64)>, of: &Counter) -> u64 {
    let mut counted = counted.filter(|(counter, _)| counter.name == of.name);
    counted.next().map_or(0, |(_, value)| value)
}

fn label(port: &PortReport) -> (&str, &str) {
    ("port", port.name.as_str())
}

fn lateness(out: &mut MetricEncoder, labels: &[(&str, &str)], port: &PortReport) -> fmt::Result {
    let lateness = &port.lateness_us;
    let sum_s = lateness.mean * lateness.count as f64 / 1e6;
    out.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
        sum_s,
        lateness.count,
        &port.lateness_buckets,
        None,
    )
}

/// Returns whether `Accept` prefers OpenMetrics to plain text. Wildcards get plain text.
pub fn prefers_open_metrics(accept: &str) -> bool {
    let (mut open, mut plain) = (0, 0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut quality, mut version) = (1000, "");
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => quality = thousandths(value),
                "version" => version = value,
                _ => {}
            }
        }
        match (kind.as_str(), version) {
            ("application/openmetrics-text", "" | "0.0.1" | "1.0.0") => open = quality.max(open),
            ("text/plain", "" | "0.0.4") | ("text/*" | "*/*", _) => plain = quality.max(plain),
            _ => {}
        }
    }
    open > 0 && open >= plain
}

/// Parses a quality value (RFC 9110, section 12.4.2) in thousandths; 0 if invalid.
fn thousandths(text: &str) -> u32 {
    (text.parse::<f64>().unwrap_or(0.0).clamp(0.0, 1.0) * 1000.0) as u32
}

/// Converts OpenMetrics to text format 0.0.4: counter families are named like their samples, infos
/// become gauges, and units are omitted.
pub fn plain(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        let described = line.strip_prefix("# ");
        let described = described.and_then(|rest| rest.split_once(' '));
        // Writing to a string cannot fail.
        let _ = match described {
            Some(("HELP", rest)) => {
                help = rest;
                Ok(())
            }
            Some(("TYPE", rest)) => {
                let (name, kind) = rest.split_once(' ').unwrap_or((rest, "unknown"));
                let (suffix, kind) = match kind {
                    "counter" => ("_total", kind),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    kind => ("", kind),
                };
                let help = help.strip_prefix(name).unwrap_or_default().trim_start();
                write!(
                    text,
                    "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n"
                )
            }
            Some(("UNIT", _)) => Ok(()),
            _ if line == "# EOF" => Ok(()),
            _ => writeln!(text, "{line}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_negotiated() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,\
                      application/openmetrics-text;version=0.0.1;q=0.4,\
                      text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, open) in [
            ("", false),
            ("*/*", false),
            ("text/plain", false),
            ("text/plain;version=0.0.4;q=1,*/*;q=0.1", false),
            ("application/openmetrics-text", true),
            (
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                true,
            ),
            ("Application/OpenMetrics-Text;version=\"1.0.0\"", true),
            ("application/openmetrics-text;version=2.0.0", false),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text;q=0.2,text/plain;q=0.3", false),
            ("application/openmetrics-text;q=0.3,text/*;q=0.3", true),
            ("text/html,*/*;q=0.8", false),
            (prometheus, true),
        ] {
            assert_eq!(prefers_open_metrics(accept), open, "{accept}");
        }
    }

    #[test]
    fn plain_families_match_their_samples() {
        let open = "# HELP a Count of a.\n# TYPE a counter\na_total{x=\"# HELP\"} 1\n\
                # HELP b Build.\n# TYPE b info\nb_info{v=\"1\"} 1\n\
                # HELP c_seconds Time.\n# TYPE c_seconds gauge\n# UNIT c_seconds seconds\n\
                c_seconds 1.5\n# EOF\n";
        let plain = plain(open);
        assert_eq!(
            plain,
            "# HELP a_total Count of a.\n# TYPE a_total counter\na_total{x=\"# HELP\"} 1\n\
         # HELP b_info Build.\n# TYPE b_info gauge\nb_info{v=\"1\"} 1\n\
         # HELP c_seconds Time.\n# TYPE c_seconds gauge\nc_seconds 1.5\n"
        );
    }
}
