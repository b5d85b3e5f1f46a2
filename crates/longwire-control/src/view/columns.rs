//! Samples as columns of numbers.

use std::collections::BTreeMap;

use longwire_engine::Nanos;
use longwire_runtime::fabric::LinkTotals;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PERIOD;
use super::history::HistorySample;

/// Samples of a direction: columns of the same length, a value for each period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Columns {
    /// The usual length of a period, in seconds.
    pub period_s: f64,
    /// The ends of the periods, since the start of the run.
    pub elapsed_s: Vec<f64>,
    /// Offered bits a second.
    pub bits_in_per_s: Vec<f64>,
    /// Delivered bits a second.
    pub bits_out_per_s: Vec<f64>,
    /// Offered frames a second.
    pub packets_in_per_s: Vec<f64>,
    /// Delivered frames a second.
    pub packets_out_per_s: Vec<f64>,
    /// The rate in force in bits a second: the configured one if it is fixed, else that at
    /// which frames were served, without framing; null where there were none, or no rate.
    pub rate_bits_per_s: Vec<Option<u64>>,
    /// Frames in the queue at the end of the period.
    pub queued_frames: Vec<u64>,
    /// Median from arrival to release, in microseconds; null where no frame was delivered.
    pub delay_p50_us: Vec<Option<f64>>,
    /// 99th percentile from arrival to release.
    pub delay_p99_us: Vec<Option<f64>>,
    /// Median from arrival to departure: queueing and serialisation.
    pub queueing_p50_us: Vec<Option<f64>>,
    /// 99th percentile from arrival to departure.
    pub queueing_p99_us: Vec<Option<f64>>,
    /// Frames a second that were marked with congestion experienced.
    pub marks_per_s: Vec<f64>,
    /// Frames that were handed over late.
    pub late: Vec<u32>,
    /// Dropped frames a second, by reason; without reasons that did not occur.
    pub drops_per_s: BTreeMap<String, Vec<f64>>,
}

/// The new samples of directions, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct HistoryEvent(pub BTreeMap<String, Columns>);

impl Columns {
    /// Returns the columns of samples.
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
        // To a millisecond.
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

/// To a tenth: more digits are most of the text.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn reason_name(index: u8) -> &'static str {
    let none = LinkTotals::default();
    let name = none.drops.iter().nth(index.into()).map(|(name, _)| name);
    name.unwrap_or("other")
}
