//! Distributions: statistics of a set of values.

use hdrhistogram::Histogram;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

/// Statistics of a set of values, mostly in microseconds. Percentiles are exact to the histogram's
/// significant digits, at least to 1 %. Without values, all statistics are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Spread {
    /// Number of values.
    pub count: u64,
    /// Minimum.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Maximum.
    pub max: f64,
    /// Mean.
    #[serde(serialize_with = "thousandths")]
    #[schemars(with = "f64")]
    pub mean: f64,
    /// Standard deviation, for lateness only.
    #[serde(skip_serializing)]
    pub stddev: f64,
}

/// Serializes a number with three decimals.
fn thousandths<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1e3).round() / 1e3)
}

/// A statistic of a [`Spread`].
#[derive(Clone, Copy, Debug)]
pub struct Statistic {
    /// Name in JSON and of the `--require` measure.
    pub name: &'static str,
    /// Name in the text report.
    pub label: &'static str,
    /// Returns the statistic.
    pub of: fn(&Spread) -> f64,
}

const fn statistic(name: &'static str, label: &'static str, of: fn(&Spread) -> f64) -> Statistic {
    Statistic { name, label, of }
}

const MIN: Statistic = statistic("min", "min", |spread| spread.min);
const P50: Statistic = statistic("p50", "p50", |spread| spread.p50);
const P90: Statistic = statistic("p90", "p90", |spread| spread.p90);
const P99: Statistic = statistic("p99", "p99", |spread| spread.p99);
const P999: Statistic = statistic("p999", "p99.9", |spread| spread.p999);
const MAX: Statistic = statistic("max", "max", |spread| spread.max);
const MEAN: Statistic = statistic("mean", "mean", |spread| spread.mean);
const STDDEV: Statistic = statistic("stddev", "stddev", |spread| spread.stddev);

/// The lateness statistics, in the order of JSON and text reports.
pub static LATENESS: [Statistic; 6] = [P50, P99, P999, MAX, MEAN, STDDEV];

/// The statistics in a receiver's distributions, in the order of JSON.
pub static RECEIVED: [Statistic; 7] = [MIN, P50, P90, P99, P999, MAX, MEAN];

/// Bounds of [`buckets`] in nanoseconds: 1, 2 and 5 of each decade from 1 us to 1 s.
const BOUNDS: [u64; 19] = {
    let mut bounds = [0; 19];
    let mut decade = 1_000;
    let mut at = 0;
    while at < bounds.len() {
        bounds[at] = decade * [1, 2, 5][at % 3];
        if at % 3 == 2 {
            decade *= 10;
        }
        at += 1;
    }
    bounds
};

/// Returns upper bounds in seconds, each with the number of nanosecond values between the previous
/// bound and it. The last bound is infinite.
pub fn buckets(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    let mut counts = [0; BOUNDS.len() + 1];
    for step in histogram.iter_recorded() {
        let bucket = BOUNDS.partition_point(|bound| *bound < step.value_iterated_to());
        counts[bucket] += step.count_at_value();
    }
    let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e9);
    bounds.chain([f64::INFINITY]).zip(counts).collect()
}

/// Histograms in reports: pairs of an upper bound in microseconds, or null for infinity, and the
/// number of values between the previous bound and it. Empty buckets are omitted. In memory, bounds
/// are in seconds ([`buckets`]).
pub(crate) mod histogram {
    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::{Deserialize, Deserializer, Serializer};

    /// Serializes a histogram.
    pub(crate) fn serialize<S: Serializer>(
        buckets: &[(f64, u64)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let filled = buckets.iter().filter(|(_, count)| *count > 0);
        // Bounds are whole microseconds.
        let micros = |bound: f64| bound.is_finite().then(|| (bound * 1e6).round() as u64);
        serializer.collect_seq(filled.map(|(bound, count)| (micros(*bound), count)))
    }

    /// Deserializes a histogram.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(f64, u64)>, D::Error> {
        let pairs = Vec::<(Option<u64>, u64)>::deserialize(deserializer)?.into_iter();
        let seconds = |micros: u64| micros as f64 / 1e6;
        Ok(pairs
            .map(|(bound, count)| (bound.map_or(f64::INFINITY, seconds), count))
            .collect())
    }

    /// Returns a histogram's schema.
    pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "description": "Handover minus release of the frames that left: pairs of an upper \
                bound in microseconds, null where there is none, and the number of frames.",
            "items": {
                "type": "array",
                "prefixItems": [
                    { "type": ["integer", "null"], "minimum": 0 },
                    { "type": "integer", "minimum": 0 },
                ],
                "minItems": 2,
                "maxItems": 2,
            },
        })
    }
}

impl Spread {
    /// A distribution without measurements: NaN, which meets no requirement.
    pub const UNMEASURED: Spread = Spread {
        count: 0,
        min: f64::NAN,
        p50: f64::NAN,
        p90: f64::NAN,
        p99: f64::NAN,
        p999: f64::NAN,
        max: f64::NAN,
        mean: f64::NAN,
        stddev: f64::NAN,
    };

    /// Returns a nanosecond histogram's statistics, in microseconds with three decimals.
    pub fn of_nanos(histogram: &Histogram<u64>) -> Spread {
        let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e3;
        if histogram.is_empty() {
            return Spread::default();
        }
        Spread {
            count: histogram.len(),
            min: histogram.min() as f64 / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1e3,
            mean: histogram.mean().round() / 1e3,
            stddev: histogram.stdev().round() / 1e3,
        }
    }

    /// Returns whether the lateness statistics are equal.
    pub fn is_as_late_as(&self, other: &Spread) -> bool {
        LATENESS
            .iter()
            .all(|statistic| (statistic.of)(self) == (statistic.of)(other))
    }

    /// Serializes the statistics of [`LATENESS`].
    pub(crate) fn as_lateness<S: Serializer>(
        spread: &Spread,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let statistics = LATENESS.iter();
        serializer.collect_map(statistics.map(|found| (found.name, (found.of)(spread))))
    }

    /// Returns the schema of [`Spread::as_lateness`].
    pub(crate) fn lateness_schema(_: &mut SchemaGenerator) -> Schema {
        let names = LATENESS.map(|statistic| statistic.name);
        let number = || json_schema!({ "type": "number", "description": "Microseconds." });
        let properties: Map<String, Value> = names
            .iter()
            .map(|name| ((*name).to_owned(), number().to_value()))
            .collect();
        json_schema!({ "type": "object", "properties": properties, "required": names })
    }
}
