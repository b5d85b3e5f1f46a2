//! Series of values of a page's charts, from bins.

use crate::axis::{RATE, TIME, Units};
use crate::gather::{Bin, Gathered, LinkBins};

/// Steps of charts of rates and counts.
const STEPS: usize = 300;

/// Delivered frames of a step, on average, of other charts.
const FRAMES_A_STEP: u64 = 4;

/// Rows of a chart's table.
const TABLE_ROWS: usize = 40;

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// The classes of its look in the style sheet.
    pub class: &'static str,
    /// Its values, with gaps.
    pub values: Vec<Option<f64>>,
}

/// A chart over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its heading.
    pub title: &'static str,
    /// How to read it.
    pub note: String,
    /// Units of the values.
    pub units: Units,
    /// Width of a step in nanoseconds.
    pub step: f64,
    /// The end of the time, in nanoseconds.
    pub span: f64,
    /// Whether a value holds for its whole step.
    pub stairs: bool,
    /// The lines, the lowest first.
    pub lines: Vec<Line>,
    /// The same lines with few values, for the table, and their step.
    pub table: (f64, Vec<Line>),
}

/// Returns the charts of a link.
pub fn charts(data: &Gathered, link: &LinkBins) -> Vec<Chart> {
    let mut charts = vec![
        chart(data, link, &THROUGHPUT),
        chart(data, link, &DELAY),
        chart(data, link, &QUEUE),
    ];
    if !link.reasons.is_empty() {
        charts.push(chart(data, link, &DROPS));
    }
    charts
}

/// A kind of chart.
struct ChartKind {
    title: &'static str,
    note: &'static str,
    units: Units,
    stairs: bool,
    lines: fn(&LinkBins, &[Bin], f64) -> Vec<Line>,
}

const THROUGHPUT: ChartKind = ChartKind {
    title: "Throughput",
    note: "bytes without framing, offered by arrival and delivered by release; the configured \
           rate is derived from departures",
    units: RATE,
    stairs: true,
    lines: throughput,
};

const DELAY: ChartKind = ChartKind {
    title: "One-way delay",
    note: "release − arrival, by arrival; the queueing part includes serialisation",
    units: TIME,
    stairs: false,
    lines: delay,
};

const QUEUE: ChartKind = ChartKind {
    title: "Queue",
    note: "packets in the queue and in service; drains between arrivals",
    units: Units::PACKETS,
    stairs: false,
    lines: queue,
};

const DROPS: ChartKind = ChartKind {
    title: "Drops by reason",
    note: "dropped frames/s, by arrival",
    units: Units::BARE,
    stairs: true,
    lines: drops,
};

fn chart(data: &Gathered, link: &LinkBins, kind: &ChartKind) -> Chart {
    let frames: u64 = link.bins.iter().map(|bin| bin.delay.total()).sum();
    let wanted = if kind.stairs {
        STEPS
    } else {
        (frames / FRAMES_A_STEP).max(STEPS as u64) as usize
    };
    let of = |most: usize| {
        let group = link.bins.len().div_ceil(most.max(1)).max(1);
        let step = data.width as f64 * group as f64;
        (step, (kind.lines)(link, &joined(&link.bins, group), step))
    };
    let (step, lines) = of(wanted);
    Chart {
        title: kind.title,
        note: format!("{}; steps of {}", kind.note, TIME.write(step)),
        units: kind.units,
        step,
        span: data.bins as f64 * data.width as f64,
        stairs: kind.stairs,
        lines,
        table: of(TABLE_ROWS),
    }
}

/// Joins each `group` adjacent bins.
fn joined(bins: &[Bin], group: usize) -> Vec<Bin> {
    let groups = bins.chunks(group);
    groups
        .map(|bins| {
            let mut all = Bin::default();
            for bin in bins {
                all.merge(bin.clone());
            }
            all
        })
        .collect()
}

fn line(name: &str, class: &'static str, bins: &[Bin], of: impl Fn(&Bin) -> Option<f64>) -> Line {
    Line {
        name: name.to_owned(),
        class,
        values: bins.iter().map(of).collect(),
    }
}

fn throughput(_: &LinkBins, bins: &[Bin], step: f64) -> Vec<Line> {
    let rate = move |bytes: u64| Some(bytes as f64 * 8e9 / step);
    let offered = line("offered", "c2 thin", bins, |bin| rate(bin.offered));
    let delivered = line("delivered", "c1 fill", bins, |bin| rate(bin.delivered));
    let mut in_force = line("configured rate", "c3 dash", bins, |bin| bin.served.rate());
    // Of a bucket with tokens, the rate has no bound: beyond the throughput, the line
    // would hide it.
    let carried = offered.values.iter().chain(&delivered.values);
    let most = carried.flatten().copied().fold(0.0, f64::max) * 1.5;
    for value in &mut in_force.values {
        *value = value.filter(|rate| *rate <= most);
    }
    let mut lines = vec![delivered, offered];
    if in_force.values.iter().any(Option::is_some) {
        lines.push(in_force);
    }
    lines
}

fn delay(_: &LinkBins, bins: &[Bin], _: f64) -> Vec<Line> {
    let of = |sketch: &crate::gather::Sketch, share| sketch.quantile(share).map(|at| at as f64);
    vec![
        line("p99", "c1 thin band", bins, |bin| of(&bin.delay, 0.99)),
        line("median", "c1", bins, |bin| of(&bin.delay, 0.5)),
        line("in the queue, median", "c2", bins, |bin| {
            of(&bin.sojourn, 0.5)
        }),
    ]
}

fn queue(_: &LinkBins, bins: &[Bin], _: f64) -> Vec<Line> {
    let most = |bin: &Bin| bin.queue.mean().map(|_| bin.queue.most as f64);
    vec![
        line("greatest", "c1 thin band", bins, most),
        line("mean", "c1", bins, |bin| bin.queue.mean()),
    ]
}

fn drops(link: &LinkBins, bins: &[Bin], step: f64) -> Vec<Line> {
    const CLASSES: [&str; 6] = [
        "c2 fill", "c1 fill", "c4 fill", "c3 fill", "c5 fill", "c6 fill",
    ];
    let reasons = link.reasons.iter().enumerate();
    let lines = reasons.map(|(index, reason)| {
        let count = |bin: &Bin| bin.drops.get(index).copied().unwrap_or(0);
        line(
            &reason.replace('_', " "),
            CLASSES[index % CLASSES.len()],
            bins,
            |bin| Some(count(bin) as f64 * 1e9 / step),
        )
    });
    lines.collect()
}
