//! `/metrics`: what is counted, for Prometheus, in the format it asks for.
//!
//! `table.rs` lists all there are; docs/metrics.md explains them.

mod table;
mod text;

use std::fmt;

use hyper::StatusCode;
use longwire_engine::DropReason;
use longwire_runtime::fabric::{FabricReport, LinkTotals, PortReport};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use super::refusal::Refusal;
use super::reply::{METRICS_TEXT, OPEN_METRICS, Reply};
use super::route::Call;
use super::stats::seconds;
use crate::config::Detail;
use crate::state::ApiState;
use table::{METRICS, Metric, Source};

/// The most links that are listed one by one.
const EACH_MAX: usize = 20_000;

/// The counters at one time.
#[derive(Debug)]
struct Snapshot {
    elapsed_s: f64,
    report: FabricReport,
    count: usize,
    /// By name and direction; one row without either when they are summed up.
    links: Vec<(Option<(String, &'static str)>, LinkTotals)>,
}

/// `/metrics`.
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
            "{count} links fit, directions counted apart, and at most {EACH_MAX} are listed; \
             narrow ?match=, or ask for ?links=sum"
        )));
    }
    let links = if each {
        let mut links = Vec::with_capacity(count);
        controller.each_totals(pattern, &mut |name, totals| {
            links.push((Some(split(name)), totals));
        });
        links
    } else {
        vec![(None, sums)]
    };
    let snapshot = Snapshot {
        elapsed_s: seconds(controller.elapsed()),
        report: controller.report(),
        count,
        links,
    };
    let mut registry = Registry::with_prefix("longwire");
    registry.register_collector(Box::new(snapshot));
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|_| {
        let error = "the metrics cannot be written";
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    })?;
    let (kind, text) = if text::prefers_open_metrics(&call.accept) {
        (OPEN_METRICS, text)
    } else {
        (METRICS_TEXT, text::plain(&text))
    };
    Ok(Reply {
        status: StatusCode::OK,
        kind,
        text: text.into(),
    })
}

/// A link's name and direction.
fn split(name: &str) -> (String, &'static str) {
    for (end, direction) in [(".up", "up"), (".down", "down")] {
        if let Some(name) = name.strip_suffix(end) {
            return (name.to_owned(), direction);
        }
    }
    (name.to_owned(), "both")
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        METRICS
            .iter()
            .try_for_each(|metric| metric.write(self, &mut encoder))
    }
}

const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, u64>> = None;

impl Metric {
    fn write(&self, from: &Snapshot, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let mut out =
            encoder.encode_descriptor(self.name, self.help, self.unit.as_ref(), self.kind())?;
        match &self.source {
            Source::Info => out.encode_info(&[("version", env!("CARGO_PKG_VERSION"))]),
            Source::Run(value) => out.encode_gauge(&value(from)),
            Source::Fabric(value) => out.encode_counter(&value(&from.report), NO_EXEMPLAR),
            Source::FabricBy(label, values) => values(&from.report)
                .into_iter()
                .try_for_each(|(value, count)| counter(&mut out, &[(*label, value)], count)),
            Source::Port(_) | Source::PortArtifacts | Source::PortGauge(_) => {
                let mut ports = from.report.ports.iter();
                ports.try_for_each(|port| self.write_port(port, &mut out))
            }
            Source::PortLateness => {
                let mut ports = from.report.ports.iter();
                ports.try_for_each(|port| lateness(&mut out, port))
            }
            Source::Link(_) | Source::LinkDrops | Source::LinkGauge(_) => {
                let mut links = from.links.iter();
                links.try_for_each(|(name, totals)| {
                    let labels = name.iter().flat_map(|(name, direction)| {
                        [("link", name.as_str()), ("direction", *direction)]
                    });
                    self.write_link(labels.collect(), totals, &mut out)
                })
            }
        }
    }

    fn write_port(&self, port: &PortReport, out: &mut MetricEncoder) -> fmt::Result {
        let labels = [("port", port.name.as_str())];
        match &self.source {
            Source::Port(value) => counter(out, &labels, value(port)),
            Source::PortGauge(value) => out.encode_family(&labels)?.encode_gauge(&value(port)),
            _ => port
                .artifacts
                .iter()
                .try_for_each(|(kind, count)| counter(out, &[labels[0], ("kind", *kind)], *count)),
        }
    }

    fn write_link(
        &self,
        labels: Vec<(&str, &str)>,
        totals: &LinkTotals,
        out: &mut MetricEncoder,
    ) -> fmt::Result {
        match &self.source {
            Source::Link(value) => counter(out, &labels, value(totals)),
            Source::LinkGauge(value) => gauge(out, &labels, value(totals)),
            _ => {
                // Of single links, reasons that there were none of are left
                // out: they would be most of the text.
                let reasons = DropReason::ALL.iter().zip(totals.drops);
                let reasons = reasons.filter(|(_, count)| labels.is_empty() || *count > 0);
                reasons.into_iter().try_for_each(|(reason, count)| {
                    let mut labels = labels.clone();
                    labels.push(("reason", reason.name()));
                    counter(out, &labels, count)
                })
            }
        }
    }
}

/// A value of a counter. Without labels it is the metric's own.
fn counter(out: &mut MetricEncoder, labels: &[(&str, &str)], count: u64) -> fmt::Result {
    match labels {
        [] => out.encode_counter(&count, NO_EXEMPLAR),
        labels => out
            .encode_family(&labels)?
            .encode_counter(&count, NO_EXEMPLAR),
    }
}

/// A value that rises and falls.
fn gauge(out: &mut MetricEncoder, labels: &[(&str, &str)], value: u64) -> fmt::Result {
    match labels {
        [] => out.encode_gauge(&value),
        labels => out.encode_family(&labels)?.encode_gauge(&value),
    }
}

fn lateness(out: &mut MetricEncoder, port: &PortReport) -> fmt::Result {
    let spread = &port.lateness_spread;
    let labels = [("port", port.name.as_str())];
    out.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
        spread.sum_s,
        spread.count,
        &spread.buckets,
        None,
    )
}
