//! Trace quantities, with their units and column names.

use longwire_units::{BitRate, Date};

use longwire_units::decimal::scaled;

use crate::prelude::*;

/// Maximum delay: one day.
const DELAY_MAX: u64 = 86_400_000_000_000;

/// Quantity in a trace column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Start of a row, in nanoseconds.
    Time,
    /// Rate in bit/s; 0 stops the link.
    Rate,
    /// One-way delay, in nanoseconds.
    Delay,
    /// Loss probability, in steps of 10^-14 ([`Quantity::LOSS_STEPS`] is certain loss).
    Loss,
    /// Duplication probability, in the same steps.
    Duplication,
}

impl Quantity {
    /// Number of steps in a probability of 1.
    pub const LOSS_STEPS: u64 = 100_000_000_000_000;

    /// Returns the quantity's name, which is also its first default column name.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// Returns the default column names.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Quantity::Time => &["time", "timestamp", "t", "elapsed"],
            Quantity::Rate => &[
                "rate",
                "bandwidth",
                "bw",
                "throughput",
                "bitrate",
                "capacity",
            ],
            Quantity::Delay => &["delay", "latency", "owd"],
            Quantity::Loss => &["loss", "loss_rate", "packet_loss", "plr"],
            Quantity::Duplication => &["duplicate", "duplication", "dup"],
        }
    }

    /// Returns the customary unit of plain numbers, if any.
    pub fn usual_unit(self) -> Option<&'static str> {
        match self {
            Quantity::Time => Some("s"),
            Quantity::Loss | Quantity::Duplication => Some("ratio"),
            Quantity::Rate | Quantity::Delay => None,
        }
    }

    /// Returns an example unit for messages.
    pub fn example_unit(self) -> &'static str {
        match self {
            Quantity::Time => "s",
            Quantity::Rate => "mbit",
            Quantity::Delay => "ms",
            Quantity::Loss | Quantity::Duplication => "percent",
        }
    }

    /// Returns the number of steps per `unit`; `None` if the quantity does not have this unit.
    pub fn scale(self, unit: &str) -> Option<u64> {
        match self {
            Quantity::Time | Quantity::Delay => time_scale(unit),
            Quantity::Rate => rate_scale(unit),
            Quantity::Loss | Quantity::Duplication => loss_scale(unit),
        }
    }

    /// Parses a value: a number in steps of `scale`, or a number with a unit; a time may also be a
    /// date with a time of day.
    ///
    /// # Errors
    /// If the value is none of these, negative, or above the quantity's maximum.
    pub fn read(self, text: &str, scale: Option<u64>) -> Result<u64, String> {
        let value = self.read_number(text, scale);
        let value = match self {
            Quantity::Time => {
                value.or_else(|error| Date::parse(text).map(|date| date.nanos).ok_or(error))
            }
            _ => value,
        }?;
        let most = match self {
            Quantity::Time => (i64::MAX as u64, "292 years"),
            Quantity::Rate => (BitRate::MAX.bits_per_sec(), "10tbit"),
            Quantity::Delay => (DELAY_MAX, "24h"),
            Quantity::Loss | Quantity::Duplication => (Quantity::LOSS_STEPS, "100%"),
        };
        if value > most.0 {
            let name = self.name();
            return Err(format!(
                "{name}: '{text}' is too large; the maximum is {}",
                most.1
            ));
        }
        Ok(value)
    }

    fn read_number(self, text: &str, scale: Option<u64>) -> Result<u64, String> {
        let name = self.name();
        let wrong = |error: String| format!("{name}: {error}");
        // A value's unit takes precedence over its column's.
        let letters = text.find(|c: char| c.is_alphabetic() || c == '%');
        if let Some(at) = letters {
            let (number, unit) = text.split_at(at);
            if let Some(scale) = self.scale(unit.trim()) {
                return scaled(number.trim(), scale).map_err(wrong);
            }
        }
        match scale {
            Some(scale) => scaled(text, scale).map_err(wrong),
            None => {
                scaled(text, 1).map_err(wrong)?;
                let unit = self.example_unit();
                Err(format!(
                    "{name}: '{text}' has no unit; name the column {name}_{unit}, write \
                     {text}{unit}, or set {name}-unit={unit}"
                ))
            }
        }
    }
}

fn time_scale(unit: &str) -> Option<u64> {
    let unit = unit.to_lowercase();
    Some(match unit.as_str() {
        "ns" | "nsec" | "nanos" | "nanoseconds" => 1,
        "us" | "usec" | "µs" | "μs" | "micros" | "microseconds" => 1_000,
        "ms" | "msec" | "millis" | "milliseconds" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "min" | "minutes" => 60_000_000_000,
        "h" | "hours" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Returns the scale of a rate unit as used by measurement tools. Unlike in `tc`, `Mbps` means
/// megabits; bytes are a capital B or spelled out.
fn rate_scale(unit: &str) -> Option<u64> {
    let lower = unit.to_lowercase();
    let bare = ["/second", "/sec", "/s", "_per_s", " per second"];
    let bare = bare.iter().find_map(|ending| lower.strip_suffix(ending));
    // "bps" is bits; "BPS" is ambiguous.
    let bare = bare.or_else(|| lower.strip_suffix("ps")).unwrap_or(&lower);
    let (prefix, bits) = if let Some(prefix) = strip_any(bare, &["bits", "bit"]) {
        (prefix, 1)
    } else if let Some(prefix) = strip_any(bare, &["bytes", "byte"]) {
        (prefix, 8)
    } else {
        let prefix = bare.strip_suffix('b')?;
        let upper = unit[prefix.len()..].starts_with('B');
        if upper && unit.ends_with("PS") {
            return None;
        }
        (prefix, if upper { 8 } else { 1 })
    };
    let scale = match prefix {
        "" => 1,
        "k" | "kilo" => 1_000,
        "m" | "mega" => 1_000_000,
        "g" | "giga" => 1_000_000_000,
        "t" | "tera" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        _ => return None,
    };
    Some(scale * bits)
}

fn strip_any<'a>(text: &'a str, endings: &[&str]) -> Option<&'a str> {
    endings.iter().find_map(|ending| text.strip_suffix(ending))
}

fn loss_scale(unit: &str) -> Option<u64> {
    Some(match unit.to_lowercase().to_string().as_str() {
        "%" | "percent" | "pct" => Quantity::LOSS_STEPS / 100,
        "ratio" | "fraction" | "probability" => Quantity::LOSS_STEPS,
        _ => return None,
    })
}
