//! Samples in columns.

use std::collections::BTreeMap;

use longwire_engine::Nanos;
use longwire_runtime::fabric::LinkTotals;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PERIOD;
use super::history::HistorySample;

/// Samples of a direction: columns of equal length, with a value per period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Columns {
    /// Nominal length of a period, in seconds.
    pub period_s: f64,
    /// Ends of the periods, in seconds since the start of the run.
    pub elapsed_s: Vec<f64>,
    /// Offered bit/s.
    pub bits_in_per_s: Vec<f64>,
    /// Delivered bit/s.
    pub bits_out_per_s: Vec<f64>,
    /// Offered frames/s.
    pub packets_in_per_s: Vec<f64>,
    /// Delivered frames/s.
    pub packets_out_per_s: Vec<f64>,
    /// Rate in bit/s: the configured one if it is fixed, else the mean rate of service without
    /// framing; null without served frames or a rate.
    pub rate_bits_per_s: Vec<Option<u64>>,
    /// Queued frames at the end of the period.
    pub queued_frames: Vec<u64>,
    /// Median delay from arrival to release, in microseconds; null without deliveries.
    pub delay_p50_us: Vec<Option<f64>>,
    /// 99th percentile of the delay from arrival to release.
    pub delay_p99_us: Vec<Option<f64>>,
    /// Median delay from arrival to departure: queueing and serialisation.
    pub queueing_p50_us: Vec<Option<f64>>,
    /// 99th percentile of the delay from arrival to departure.
    pub queueing_p99_us: Vec<Option<f64>>,
    /// Frames/s marked with congestion experienced.
    pub marks_per_s: Vec<f64>,
    /// Late frames.
    pub late: Vec<u32>,
    /// Dropped frames/s by reason; reasons without drops are omitted.
    pub drops_per_s: BTreeMap<String, Vec<f64>>,
}

/// New samples by direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct HistoryEvent(pub BTreeMap<String, Columns>);

impl Columns {
    /// Converts samples.
    pub fn of<'a>(samples: impl Iterator<Item = &'a HistorySample> + Clone) -> Columns {
        let mut columns = Columns {
            period_s: PERIOD.as_secs_f64(),
            ..Columns::default()
        };
        for (row, sample) in samples.enumerate() {
            columns.push(row, sample);
        }
        let rows = columns.elapsed_s.len();
        for drops in columns.drops_per_s.values_mut() {
            drops.resize(rows, 0.0);
        }
        columns
    }

    fn push(&mut self, row: usize, sample: &HistorySample) {
        let seconds = sample.period.as_secs_f64().max(1e-9);
        let rate = |count: u64| rounded(count as f64 / seconds);
        let micros = |time: Nanos| rounded(time.as_nanos() as f64 / 1e3);
        // Millisecond resolution.
        self.elapsed_s
            .push((sample.at.as_secs_f64() * 1e3).round() / 1e3);
        self.bits_in_per_s.push(rate(8 * sample.bytes_in));
        self.bits_out_per_s.push(rate(8 * sample.bytes_out));
        self.packets_in_per_s.push(rate(sample.packets_in));
        self.packets_out_per_s.push(rate(sample.packets_out));
        self.rate_bits_per_s.push(sample.rate);
        self.queued_frames.push(sample.queued);
        let of = |part: fn(&longwire_runtime::ledger::DelayQuantiles) -> Nanos| {
            sample.delays.as_ref().map(|delays| micros(part(delays)))
        };
        self.delay_p50_us.push(of(|delays| delays.total[0]));
        self.delay_p99_us.push(of(|delays| delays.total[1]));
        self.queueing_p50_us.push(of(|delays| delays.queueing[0]));
        self.queueing_p99_us.push(of(|delays| delays.queueing[1]));
        self.marks_per_s.push(rate(sample.marks.into()));
        self.late.push(sample.late);
        for (reason, count) in &sample.drops {
            let name = reason_name(*reason);
            let column = self.drops_per_s.entry(name.to_owned()).or_default();
            column.resize(row, 0.0);
            column.push(rate((*count).into()));
        }
    }
}

/// Rounds to a tenth: further digits would be most of the text.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn reason_name(index: u8) -> &'static str {
    let none = LinkTotals::default();
    let name = none.drops.iter().nth(index.into()).map(|(name, _)| name);
    name.unwrap_or("other")
}
