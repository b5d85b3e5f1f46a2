//! Models of the netem-trace crate, also used by Rattan, as JSON or TOML: an object whose only key
//! names its model, such as `{"StaticBwConfig": {"bw": "12Mbps", "duration": "1s"}}`; a list of
//! models; or only the rows of `TraceBwConfig`.
//!
//! Absent fields take netem-trace's defaults. Random models are drawn once, from their own seed;
//! the draws differ from netem-trace's, whose generator is different.

use alloc::collections::BTreeMap;
use core::f64::consts::PI;

use longwire_units::BitRate;
use longwire_units::random::Stream;
use serde_json::{Map, Value};

use super::human;
use super::quantity::Quantity;
use super::series::SeriesBuilder;
use super::{Contents, Patterns};
use crate::prelude::*;

/// Whether the text starts with a JSON list and not with a TOML table header.
pub fn begins_list(text: &str) -> bool {
    let inner = text.trim_start_matches(|c: char| c == '[' || c.is_whitespace());
    let is_value = |c: char| c.is_ascii_digit() || matches!(c, '{' | '"' | ']');
    text.starts_with('[') && (inner.is_empty() || inner.starts_with(is_value))
}

/// Maximum number of values in a model.
const ROWS_MAX: usize = 10_000_000;

const MBIT: u64 = 1_000_000;
const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// netem-trace's default seed for random models.
const SEED: u64 = 42;

/// netem-trace's default loss and duplication pattern.
const PATTERN: [u64; 2] = [Quantity::LOSS_STEPS / 10, Quantity::LOSS_STEPS / 5];

/// Parses a document.
///
/// # Errors
/// A message with its position.
pub fn document(text: &str) -> Result<Value, String> {
    let text = text.trim_start_matches('\u{feff}');
    let start = text.trim_start();
    // In JSON, an object starts with a brace; a TOML document never does.
    if start.starts_with('{') || begins_list(start) {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let lines = text.as_bytes()[..at.min(text.len())].iter();
        let line = lines.filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line}: {}", error.message())
    })
}

/// Returns the rows in a list of objects, unless they are models.
pub fn objects(document: &Value) -> Option<&[Value]> {
    let rows = document.as_array()?;
    let first = rows.first()?.as_object()?;
    let is_model = first
        .values()
        .any(|value| value.is_object() || value.is_array());
    (!is_model).then_some(rows)
}

/// Reads a model of rates, delays, losses or duplicates.
///
/// # Errors
/// A message with its position.
pub fn read(document: &Value, quantity: Quantity) -> Result<Contents, String> {
    let mut rows = Rows {
        quantity,
        builder: SeriesBuilder::default(),
        time: 0,
        count: 0,
        patterns: Vec::new(),
        known_patterns: BTreeMap::new(),
    };
    let mut repeats = false;
    match document.as_array().map(Vec::as_slice) {
        None => repeats = rows.model(document, true)?,
        Some(list @ [Value::Array(_), ..]) if quantity == Quantity::Rate => rows.recorded(list)?,
        Some(models) => rows.sequence(models)?,
    }
    if rows.time == 0 {
        return Err("zero duration".to_string());
    }
    let series = rows.builder.finish_at(rows.time)?;
    let sets = rows.patterns;
    Ok(match quantity {
        Quantity::Loss | Quantity::Duplication => {
            Contents::Patterns(Patterns { series, sets }, repeats)
        }
        _ => Contents::Series(series, repeats),
    })
}

/// Values read so far.
struct Rows {
    quantity: Quantity,
    builder: SeriesBuilder,
    time: u64,
    count: usize,
    patterns: Vec<Vec<u64>>,
    /// Index of each pattern.
    known_patterns: BTreeMap<Vec<u64>, u64>,
}

impl Rows {
    /// Adds all values of a model, and returns whether it repeats them forever.
    fn model(&mut self, value: &Value, outermost: bool) -> Result<bool, String> {
        let only = value.as_object().filter(|object| object.len() == 1);
        let Some((name, inner)) = only.and_then(|object| object.iter().next()) else {
            return Err("not a model; write {\"NAME\": {…}} with one name".to_string());
        };
        let within = |message: String| format!("{name}: {message}");
        if name == "TraceBwConfig" && self.quantity == Quantity::Rate {
            let pattern = recorded_pattern(inner).and_then(|pattern| self.recorded(pattern));
            return pattern.map(|()| false).map_err(within);
        }
        let Some(fields) = inner.as_object() else {
            return Err(within("not an object".to_string()));
        };
        match (self.quantity, name.as_str()) {
            (Quantity::Rate, "StaticBwConfig") => self.fixed(fields, "bw", 12 * MBIT),
            (Quantity::Delay, "StaticDelayConfig") => self.fixed(fields, "delay", 10 * MILLI),
            (Quantity::Loss, "StaticLossConfig") => self.pattern(fields, "loss"),
            (Quantity::Duplication, "StaticDuplicateConfig") => self.pattern(fields, "duplicate"),
            (Quantity::Rate, "NormalizedBwConfig") => self.normal(fields),
            (Quantity::Rate, "SawtoothBwConfig") => self.sawtooth(fields),
            (Quantity::Rate, "RepeatedBwPatternConfig")
            | (Quantity::Delay, "RepeatedDelayPatternConfig")
            | (Quantity::Loss, "RepeatedLossPatternConfig")
            | (Quantity::Duplication, "RepeatedDuplicatePatternConfig") => {
                return self.repeated(fields, outermost).map_err(within);
            }
            (quantity, _) => {
                let quantity = quantity.name();
                return Err(format!("unknown {quantity} model {name}"));
            }
        }
        .map(|()| false)
        .map_err(within)
    }

    fn push(&mut self, value: u64, duration: u64) -> Result<(), String> {
        let most = match self.quantity {
            Quantity::Rate => BitRate::MAX.bits_per_sec(),
            Quantity::Loss | Quantity::Duplication => u64::MAX,
            _ => 24 * 3_600 * SECOND,
        };
        if value > most {
            return Err(format!("value {value} is too large; the maximum is {most}"));
        }
        if duration == 0 {
            return Ok(());
        }
        self.count += 1;
        if self.count > ROWS_MAX {
            return Err(format!("more than {ROWS_MAX} values"));
        }
        self.builder.push(self.time, value)?;
        self.time = self.time.checked_add(duration).ok_or("too long")?;
        Ok(())
    }

    fn fixed(&mut self, fields: &Map<String, Value>, key: &str, usual: u64) -> Result<(), String> {
        known(fields, &format!("{key}, duration"))?;
        let value = human::field(fields, key, self.quantity, usual)?;
        let duration = human::field(fields, "duration", Quantity::Time, SECOND)?;
        self.push(value, duration)
    }

    /// Adds one clamped normal value per step.
    fn normal(&mut self, fields: &Map<String, Value>) -> Result<(), String> {
        let keys = "mean, std_dev, upper_bound, lower_bound, duration, step, seed";
        known(fields, keys)?;
        let rate = |key, usual| human::field(fields, key, Quantity::Rate, usual);
        let (mean, deviation) = (rate("mean", 12 * MBIT)?, rate("std_dev", 0)?);
        let bounds = (rate("lower_bound", 0)?, rate("upper_bound", u64::MAX)?);
        let mut noise = Noise::new(fields, deviation)?;
        self.steps(fields, |_| {
            let value = (mean as f64 + noise.draw()) as u64;
            value.max(bounds.0).min(bounds.1)
        })
    }

    /// Adds a sawtooth with normal noise.
    fn sawtooth(&mut self, fields: &Map<String, Value>) -> Result<(), String> {
        let keys = "bottom, top, interval, duty_ratio, duration, step, seed, std_dev, \
                    upper_noise_bound, lower_noise_bound";
        known(fields, keys)?;
        let rate = |key, usual| human::field(fields, key, Quantity::Rate, usual);
        let (bottom, top) = (rate("bottom", 0)?, rate("top", 12 * MBIT)?);
        let interval = human::field(fields, "interval", Quantity::Time, SECOND)?;
        let duty = fields.get("duty_ratio").map_or(Some(0.5), Value::as_f64);
        let duty = duty.filter(|duty| (0.0..=1.0).contains(duty));
        let duty = duty.ok_or("duty_ratio: must be a number from 0 to 1")?;
        if bottom > top || interval == 0 {
            return Err("bottom is above top, or interval is zero".to_string());
        }
        let (least, most) = (
            rate("lower_noise_bound", u64::MAX)?,
            rate("upper_noise_bound", u64::MAX)?,
        );
        let mut noise = Noise::new(fields, rate("std_dev", 0)?)?;
        let turn = interval as f64 * duty;
        let rise = (top - bottom) as f64;
        self.steps(fields, |time| {
            let inside = (time % interval) as f64;
            let base = if inside < turn {
                bottom as f64 + rise * (inside / turn)
            } else {
                top as f64 - rise * ((inside - turn) / (interval as f64 - turn))
            };
            (base + noise.draw().min(most as f64).max(-(least as f64))) as u64
        })
    }

    /// Adds one value per step of the model's duration.
    fn steps(
        &mut self,
        fields: &Map<String, Value>,
        mut value: impl FnMut(u64) -> u64,
    ) -> Result<(), String> {
        let duration = human::field(fields, "duration", Quantity::Time, SECOND)?;
        let step = human::field(fields, "step", Quantity::Time, MILLI)?;
        if step == 0 {
            return Err("step: zero; write a longer time, such as 1ms".to_string());
        }
        let mut time = 0;
        while time < duration {
            self.push(value(time), step.min(duration - time))?;
            time = time.saturating_add(step);
        }
        Ok(())
    }

    /// Adds models in sequence, a number of times or forever.
    fn repeated(&mut self, fields: &Map<String, Value>, outermost: bool) -> Result<bool, String> {
        known(fields, "pattern, count")?;
        let pattern = fields.get("pattern").and_then(Value::as_array);
        let pattern = pattern.ok_or("pattern: must be a list of models")?;
        let count = fields.get("count").map_or(Some(0), Value::as_u64);
        let count = count.ok_or("count: must be an integer")?;
        let for_ever = count == 0;
        if for_ever && !outermost {
            return Err("count: only the outermost pattern may be unlimited (0)".to_string());
        }
        for _ in 0..count.max(1) {
            let before = self.time;
            self.sequence(pattern)?;
            // A repeated model of zero duration adds nothing.
            if self.time == before {
                break;
            }
        }
        Ok(for_ever)
    }

    fn sequence(&mut self, models: &[Value]) -> Result<(), String> {
        for (index, model) in models.iter().enumerate() {
            let within = |message| format!("pattern {}: {message}", index + 1);
            self.model(model, false).map_err(within)?;
        }
        Ok(())
    }

    /// Reads selection probabilities after runs of 0, 1, 2 … selected frames.
    fn pattern(&mut self, fields: &Map<String, Value>, key: &str) -> Result<(), String> {
        known(fields, &format!("{key}, duration"))?;
        let pattern = match fields.get(key) {
            None => PATTERN.to_vec(),
            Some(value) => probabilities(value).map_err(|message| format!("{key}: {message}"))?,
        };
        let duration = human::field(fields, "duration", Quantity::Time, SECOND)?;
        let next = self.patterns.len() as u64;
        let index = *self.known_patterns.entry(pattern.clone()).or_insert(next);
        if index == next {
            self.patterns.push(pattern);
        }
        self.push(index, duration)
    }

    /// Adds rates with their durations: `[["25ms", ["2Mbps", "4Mbps"]], …]`, or plain
    /// numbers in milliseconds and Mbit/s.
    fn recorded(&mut self, rows: &[Value]) -> Result<(), String> {
        for (index, row) in rows.iter().enumerate() {
            let within = |message| format!("row {}: {message}", index + 1);
            let Some([duration, rates]) = row.as_array().map(|row| row.as_slice()) else {
                return Err(within(RECORDED.to_string()));
            };
            let rates = rates.as_array();
            let rates = rates.ok_or_else(|| within(RECORDED.to_string()))?;
            let duration = human::value(duration, Quantity::Time, MILLI).map_err(within)?;
            for rate in rates {
                let rate = human::value(rate, Quantity::Rate, MBIT).map_err(within)?;
                self.push(rate, duration).map_err(within)?;
            }
        }
        Ok(())
    }
}

/// Message about an invalid recorded trace.
const RECORDED: &str = "not a list such as [[\"25ms\", [\"10Mbps\", \"20Mbps\"]], …]";

/// Returns the rows of a recorded trace: the `pattern` field, or the rows themselves.
fn recorded_pattern(value: &Value) -> Result<&[Value], String> {
    let rows = match value {
        Value::Object(fields) => {
            known(fields, "pattern")?;
            match fields.get("pattern") {
                Some(rows) => rows.as_array().map(Vec::as_slice),
                None => Some(&[][..]),
            }
        }
        value => value.as_array().map(Vec::as_slice),
    };
    rows.ok_or_else(|| RECORDED.to_string())
}

/// Reads a list of numbers from 0 to 1, converted to steps; an empty list means never.
fn probabilities(value: &Value) -> Result<Vec<u64>, String> {
    let values = value.as_array();
    let values = values.ok_or("not a list of probabilities such as [0.1, 0.2]")?;
    let read = |value| match human::number(value, Quantity::LOSS_STEPS) {
        Ok(steps) if steps > Quantity::LOSS_STEPS => Err(format!("{value} is above 1")),
        steps => steps,
    };
    if values.is_empty() {
        Ok(vec![0])
    } else {
        values.iter().map(read).collect()
    }
}

/// Rejects unknown keys, which would have no effect.
fn known(fields: &Map<String, Value>, keys: &str) -> Result<(), String> {
    let is_known = |key: &str| keys.split(", ").any(|known| known == key);
    match fields.keys().find(|key| !is_known(key)) {
        Some(key) => Err(format!("unknown key '{key}'; known: {keys}")),
        None => Ok(()),
    }
}

/// Seeded normal noise.
struct Noise {
    deviation: f64,
    stream: Stream,
}

impl Noise {
    fn new(fields: &Map<String, Value>, deviation: u64) -> Result<Noise, String> {
        let seed = fields.get("seed").map_or(Some(SEED), Value::as_u64);
        Ok(Noise {
            deviation: deviation as f64,
            stream: Stream::of_seed(seed.ok_or("seed: must be an integer")?),
        })
    }

    /// Draws by the Box-Muller method (1958).
    fn draw(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.stream.unit()));
        self.deviation * radius * libm::cos(2.0 * PI * self.stream.unit())
    }
}
