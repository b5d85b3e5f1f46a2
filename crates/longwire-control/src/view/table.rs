//! Rates of all directions, read once per second while clients request them.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use longwire_engine::{LinkId, Nanos};
use longwire_network::{Controller, NumberedLink};
use longwire_topology::State;
use longwire_topology::glob::fits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Idle time after which counters are no longer read.
const IDLE_AFTER: Duration = Duration::from_secs(5);

/// Idle time after which the table is dropped.
const DROP_AFTER: Duration = Duration::from_secs(60);

/// Length of a row's history, in seconds.
const RECENT: usize = 60;

/// Sort keys.
pub const SORTS: [&str; 6] = ["name", "bits_in", "bits_out", "drops", "queued", "late"];

/// Rows of the table of directions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TablePage {
    /// Time at which the counters were read, in seconds since the start of the run.
    pub elapsed_s: f64,
    /// Number of directions.
    pub directions: usize,
    /// Number of matching directions.
    pub fitting: usize,
    /// Rows.
    pub rows: Vec<TableRow>,
}

/// Row of a direction.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TableRow {
    /// Name, such as `adsl7.up`.
    pub name: String,
    /// State.
    pub state: State,
    /// Offered bit/s.
    pub bits_in_per_s: f64,
    /// Delivered bit/s.
    pub bits_out_per_s: f64,
    /// Offered frames/s.
    pub packets_in_per_s: f64,
    /// Delivered frames/s.
    pub packets_out_per_s: f64,
    /// Dropped frames/s.
    pub drops_per_s: f64,
    /// Queued frames as of the last arrival.
    pub queued: u64,
    /// Late frames since the start of the run.
    pub late: u64,
    /// Frames late because of overload, since the start of the run.
    pub overload: u64,
    /// Delivered bits in each of the last 60 seconds at most, oldest first.
    pub recent: Vec<f64>,
}

/// Rows requested by a client.
#[derive(Clone, Debug)]
pub struct Selection<'a> {
    pub pattern: &'a str,
    pub sort: &'a str,
    pub descending: bool,
    pub offset: usize,
    pub limit: usize,
}

/// Rates of all directions.
#[derive(Debug, Default)]
pub struct Table {
    at: Nanos,
    rows: Vec<Row>,
    asked: Option<Instant>,
}

#[derive(Debug)]
struct Row {
    direction: NumberedLink,
    before: Counts,
    rates: [f64; 5],
    late: u64,
    overload: u64,
    recent: VecDeque<f32>,
}

/// Offered and delivered bits and frames, and dropped frames.
type Counts = [u64; 5];

impl Table {
    /// Returns whether a client has read the table recently.
    pub fn is_read(&self) -> bool {
        self.asked.is_some()
    }

    /// Reads the counters if a client has read the table recently.
    pub fn refresh(&mut self, controller: &Controller) {
        let Some(asked) = self.asked else {
            return;
        };
        if asked.elapsed() > DROP_AFTER {
            *self = Table::default();
        } else if asked.elapsed() <= IDLE_AFTER {
            self.read(controller);
        }
    }

    fn read(&mut self, controller: &Controller) {
        let now = controller.elapsed();
        let seconds = now.saturating_sub(self.at).as_secs_f64();
        let mut known: HashMap<LinkId, Row> = self
            .rows
            .drain(..)
            .map(|row| (row.direction.id, row))
            .collect();
        let rows = controller.directions().into_iter().map(|direction| {
            let mut row = known
                .remove(&direction.id)
                .unwrap_or_else(|| Row::new(&direction));
            row.direction = direction;
            row.read(seconds);
            row
        });
        self.rows = rows.collect();
        self.at = now;
    }

    /// Returns rows. Rates are available from the second reading on.
    pub fn page(&mut self, selection: &Selection<'_>, controller: &Controller) -> TablePage {
        self.asked = Some(Instant::now());
        if self.rows.is_empty() {
            self.read(controller);
        }
        let rows = self.rows.iter();
        let mut rows: Vec<&Row> = rows.filter(|row| row.fits(selection.pattern)).collect();
        let fitting = rows.len();
        sort(&mut rows, selection);
        let rows = rows.into_iter().skip(selection.offset);
        let rows: Vec<&Row> = rows.take(selection.limit).collect();
        let ids = rows.iter().map(|row| row.direction.id).collect();
        let queues = controller.occupancies(ids);
        let queue = |at: usize| queues.get(at).copied().flatten();
        let queued = |at: usize| queue(at).map_or(0, |queue| queue.packets);
        let rows = rows.iter().enumerate();
        TablePage {
            elapsed_s: self.at.as_secs_f64(),
            directions: self.rows.len(),
            fitting,
            rows: rows.map(|(at, row)| row.shown(queued(at))).collect(),
        }
    }
}

fn sort(rows: &mut [&Row], selection: &Selection<'_>) {
    let by_name = |a: &&Row, b: &&Row| a.direction.name.cmp(&b.direction.name);
    let key = |row: &Row| match selection.sort {
        "bits_in" => row.rates[0],
        "bits_out" => row.rates[1],
        "drops" => row.rates[4],
        "queued" => row.direction.cells.totals().queued() as f64,
        "late" => (row.late + row.overload) as f64,
        _ => 0.0,
    };
    // Sort by name first, because ties are in the order of names.
    rows.sort_by(by_name);
    match (selection.sort, selection.descending) {
        ("name", true) => rows.reverse(),
        ("name", false) => {}
        (_, true) => rows.sort_by(|a, b| key(b).total_cmp(&key(a))),
        (_, false) => rows.sort_by(|a, b| key(a).total_cmp(&key(b))),
    }
}

impl Row {
    fn new(direction: &NumberedLink) -> Row {
        let mut row = Row {
            direction: direction.clone(),
            before: Counts::default(),
            rates: [0.0; 5],
            late: 0,
            overload: 0,
            recent: VecDeque::new(),
        };
        row.before = row.counts();
        row
    }

    fn counts(&mut self) -> Counts {
        let totals = self.direction.cells.totals();
        self.late = totals.handovers.late;
        self.overload = totals.handovers.overload;
        let traffic = &totals.traffic;
        let [bits_in, bits_out] = [traffic.bytes_in, traffic.bytes_out].map(|bytes| 8 * bytes);
        [
            bits_in,
            bits_out,
            traffic.packets_in,
            traffic.packets_out,
            totals.drops.total(),
        ]
    }

    fn read(&mut self, seconds: f64) {
        let now = self.counts();
        let grown = |at: usize| now[at].saturating_sub(self.before[at]) as f64;
        self.rates = std::array::from_fn(|at| (grown(at) / seconds.max(1e-3)).round());
        self.before = now;
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(self.rates[1] as f32);
    }

    fn fits(&self, pattern: &str) -> bool {
        let name = &self.direction.name;
        let link = name
            .strip_suffix(".up")
            .or_else(|| name.strip_suffix(".down"));
        fits(pattern, name) || link.is_some_and(|link| fits(pattern, link))
    }

    fn shown(&self, queued: u64) -> TableRow {
        let [
            bits_in_per_s,
            bits_out_per_s,
            packets_in_per_s,
            packets_out_per_s,
            drops_per_s,
        ] = self.rates;
        TableRow {
            name: self.direction.name.clone(),
            state: self.direction.state,
            bits_in_per_s,
            bits_out_per_s,
            packets_in_per_s,
            packets_out_per_s,
            drops_per_s,
            queued,
            late: self.late,
            overload: self.overload,
            recent: self.recent.iter().map(|rate| f64::from(*rate)).collect(),
        }
    }
}
