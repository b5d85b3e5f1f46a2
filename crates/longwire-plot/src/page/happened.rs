//! Section about the traffic: counters of all links, and charts.

use std::collections::BTreeMap;

use super::html::Html;
use crate::axis::{RATE, SHARE, TIME, grouped};
use crate::gather::{LinkBins, RunGatherer, Sketch};
use crate::page::{Page, PartDocument, chart, request};

/// Maximum number of links listed.
const LINKS_MAX: usize = 500;

/// Counters of a link.
struct Counted {
    name: String,
    /// Frames in, out and dropped.
    frames: [u64; 3],
    /// Bytes in and out.
    bytes: [u64; 2],
    reasons: BTreeMap<String, u64>,
    queue_max: Option<u64>,
}

/// Writes the section.
pub(super) fn write(html: &mut Html, page: &Page) {
    summary(html, page);
    let Some(log) = &page.log else {
        html.raw(
            "<p class=\"missing\">No charts over time, since the log is missing or empty. --log \
             FILE writes a log.</p>",
        );
        return;
    };
    let (charted, directions) = (log.links.len(), log.counts.len());
    if directions > charted {
        let all = grouped(directions as f64, 0);
        let what = format!("Charts of {charted} of {all} directions; select others with --link.");
        html.element("p", &what);
    }
    html.raw(
        "<p class=\"script\">Drag over a chart to zoom; double-click or press 0 to reset. On a \
         focused chart, ← and → move the cursor, + and − zoom.</p>\n",
    );
    let marks = request::marks(page);
    for (index, link) in log.links.iter().enumerate() {
        html.raw("<section class=\"link\">")
            .element("h3", &link.link);
        facts(html, link);
        for (number, chart) in chart::charts(log, link).enumerate() {
            let id = format!("c{index}-{number}");
            chart::write(html, &chart, &id, &link.link, &marks);
        }
        html.raw("</section>\n");
    }
}

/// Writes a sentence that summarises the delay distribution of a link.
fn facts(html: &mut Html, link: &LinkBins) {
    let (mut all, mut queueing) = (<Sketch>::default(), <Sketch>::default());
    for bin in &link.bins {
        all.merge(bin.delay.clone());
        queueing.merge(bin.sojourn.clone());
    }
    if all.total() == 0 {
        html.element("p", "No frame was delivered.");
        return;
    }
    let rates = link.bins.iter().filter_map(|bin| bin.served.rate());
    let (low, high) = rates.fold((f64::MAX, 0.0), |(low, high), rate| {
        (f64::min(low, rate), f64::max(high, rate))
    });
    let (low, high) = (RATE.write(low), RATE.write(high));
    let in_force = match high.as_str() {
        "0 bit/s" => String::new(),
        _ if low == high => format!(" The configured rate was {low}."),
        _ => format!(" The configured rate was between {low} and {high}."),
    };
    let at = |of: &Sketch, share| {
        of.quantile(share)
            .map_or_else(|| "–".to_owned(), |nanos| TIME.write(nanos as f64))
    };
    let facts = format!(
        "One-way delay: median {}, p99 {}, maximum {}; queueing delay: median {}, p99 \
         {}.{in_force}",
        at(&all, 0.5),
        at(&all, 0.99),
        at(&all, 1.0),
        at(&queueing, 0.5),
        at(&queueing, 0.99),
    );
    html.element("p", &facts).raw("\n");
}

/// Writes the counters of all links.
fn summary(html: &mut Html, page: &Page) {
    let log = page.log.as_ref();
    let mut links = match &page.report {
        Some(report) => {
            let links = report.links.iter();
            links.map(|link| of_report(link, log)).collect()
        }
        None => log.map(of_log).unwrap_or_default(),
    };
    // Without a log, use the duration in the report; for a simulation, that is the computing time.
    let duration = page.report.as_ref().map_or(0.0, |report| report.duration_s);
    let seconds = log.map_or(duration, RunGatherer::seconds);
    let all = links.len();
    if all > LINKS_MAX {
        links.sort_by_key(|link| std::cmp::Reverse(link.bytes[0]));
        links.truncate(LINKS_MAX);
    }
    let head = "link | frames in | out | dropped |  | bytes in | bytes out | offered | delivered | \
                queue max | drops by reason";
    let head = head.split(" | ");
    html.table(head, links.iter().map(|link| row(link, seconds)));
    if all > links.len() {
        let (shown, all) = (links.len(), grouped(all as f64, 0));
        let what =
            format!("The {shown} of {all} directions with the most frames; the report has all.");
        html.element("p", &what);
    }
    let time = TIME.write(seconds * 1e9);
    let what = format!("Offered and delivered are means over {time}.");
    html.element("p", &what);
}

fn row(link: &Counted, seconds: f64) -> Vec<String> {
    let count = |count: u64| grouped(count as f64, 0);
    let rate = |bytes: u64| RATE.write(bytes as f64 * 8.0 / seconds.max(1e-9));
    let [came, went, dropped] = link.frames;
    let reasons = link.reasons.iter();
    let reasons = reasons.map(|(reason, n)| format!("{} {}", reason.replace('_', " "), count(*n)));
    vec![
        link.name.clone(),
        count(came),
        count(went),
        count(dropped),
        SHARE.write(dropped as f64 / came.max(1) as f64),
        count(link.bytes[0]),
        count(link.bytes[1]),
        rate(link.bytes[0]),
        rate(link.bytes[1]),
        link.queue_max.map_or_else(|| "–".to_owned(), count),
        reasons.collect::<Vec<_>>().join(", "),
    ]
}

fn of_report(link: &PartDocument, log: Option<&RunGatherer>) -> Counted {
    let reasons = link.drops();
    // Reports of networks contain no queue lengths.
    let logged = log.and_then(|log| log.links.iter().find(|of| *of.link == *link.name));
    Counted {
        name: link.name.clone(),
        frames: [link.packets_in, link.packets_out, reasons.values().sum()],
        bytes: [link.bytes_in, link.bytes_out],
        reasons,
        queue_max: link.queue_packets_max.or(logged.and_then(queue_max)),
    }
}

/// Returns the maximum queue length of a link, in packets.
fn queue_max(link: &LinkBins) -> Option<u64> {
    link.bins.iter().map(|bin| bin.queue.most).max()
}

fn of_log(log: &RunGatherer) -> Vec<Counted> {
    let links = log.counts.iter().map(|(name, counts)| {
        let bins = log.links.iter().find(|link| link.link == *name);
        let mut reasons = BTreeMap::new();
        for (index, reason) in bins.iter().flat_map(|link| link.reasons.iter().enumerate()) {
            let drops = bins.iter().flat_map(|link| &link.bins);
            let count = drops.filter_map(|bin| bin.drops.get(index)).sum();
            reasons.insert(reason.to_string(), count);
        }
        Counted {
            name: name.to_string(),
            frames: [counts.frames_in, counts.frames_out, counts.dropped],
            bytes: [counts.bytes_in, counts.bytes_out],
            reasons,
            queue_max: bins.and_then(queue_max),
        }
    });
    let mut links: Vec<Counted> = links.collect();
    links.sort_by(|a, b| crate::series::rank(&a.name).cmp(&crate::series::rank(&b.name)));
    links
}
