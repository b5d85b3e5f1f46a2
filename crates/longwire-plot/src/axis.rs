//! Axes: scales that map values to positions, with ticks at round values in a readable unit.

/// A unit: its factor, which is also the minimum value shown in it, and its name.
type Unit = (f64, &'static str);

/// Units of a quantity, smallest first; values are in the unit with factor 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units(&'static [Unit]);

/// Time units; values are in nanoseconds.
pub const TIME: Units = Units(&[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")]);
/// Rate units; values are in bits per second.
pub const RATE: Units = Units(&[
    (1.0, "bit/s"),
    (1e3, "kbit/s"),
    (1e6, "Mbit/s"),
    (1e9, "Gbit/s"),
    (1e12, "Tbit/s"),
]);
/// Size units; values are in bytes.
pub const BYTES: Units = Units(&[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")]);
/// The single unit `%`; values are fractions of 1.
pub const SHARE: Units = Units(&[(0.01, "%")]);

impl Units {
    /// The single unit `packets`.
    pub const PACKETS: Units = Units(&[(1.0, "packets")]);
    /// The single unit `frames`.
    pub const FRAMES: Units = Units(&[(1.0, "frames")]);
    /// The single unit `runs`.
    pub const RUNS: Units = Units(&[(1.0, "runs")]);
    /// A single, unnamed unit.
    pub const BARE: Units = Units(&[(1.0, "")]);

    /// Returns all units with their factors, smallest first.
    pub fn all(self) -> &'static [Unit] {
        self.0
    }

    /// Returns the unit of an axis that extends to `high`.
    fn of(self, high: f64) -> Unit {
        let fits = |(factor, _): &&Unit| *factor <= high.abs();
        let unit = self.0.iter().rev().find(fits).or(self.0.first());
        unit.copied().unwrap_or((1.0, ""))
    }

    /// Formats a value with its unit and three significant digits: `12.3 ms`.
    pub fn write(self, value: f64) -> String {
        // A value that rounds up to the next unit is shown in that unit.
        let (factor, name) = self.of(value * 1.0005);
        let value = value / factor;
        let decimals = match value.abs() {
            0.0 => 0,
            size if size < 9.995 => 2,
            size if size < 99.95 => 1,
            _ => 0,
        };
        let text = grouped(value, decimals);
        let text = match decimals {
            0 => &text[..],
            _ => text.trim_end_matches('0').trim_end_matches('.'),
        };
        match name {
            "%" => format!("{text}%"),
            "" => text.to_owned(),
            name => format!("{text} {name}"),
        }
    }
}

/// A scale with its ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Tick positions with their labels.
    pub ticks: Vec<(f64, String)>,
    /// Unit of the labels; empty if the labels contain it.
    pub unit: &'static str,
}

impl Axis {
    /// Creates a linear scale from `low` to `high` with about `ticks` ticks.
    pub fn linear(low: f64, high: f64, ticks: usize, units: Units) -> Axis {
        // A single value is centred.
        let (low, high) = if high > low {
            (low, high)
        } else {
            (low - 0.5, low + 0.5)
        };
        let (factor, unit) = units.of(high.abs().max(low.abs()));
        let step = round_step((high - low) / factor / ticks.max(1) as f64);
        // Counts have ticks only at whole numbers.
        let whole = units.0.len() == 1 && unit != "%";
        let step = if whole { step.max(1.0) } else { step };
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let first = (low / factor / step - 1e-9).ceil();
        let last = (high / factor / step + 1e-9).floor();
        let count = (last - first).clamp(-1.0, 100.0) as i64 + 1;
        let marks = (0..count).map(|index| {
            let value = (first + index as f64) * step;
            (value * factor, grouped(value, decimals))
        });
        Axis {
            low,
            high,
            logarithmic: false,
            ticks: marks.collect(),
            unit,
        }
    }

    /// Creates a logarithmic scale; `low` must be positive. Tick labels contain their unit, because
    /// the scale spans several.
    pub fn logarithmic(low: f64, high: f64, units: Units) -> Axis {
        let low = low.max(1e-12);
        let high = if high > low { high } else { low * 10.0 };
        let decades = (high / low).log10();
        // A scale of few decades has space for more ticks.
        let marks: &[f64] = match decades {
            d if d < 1.5 => &[1.0, 2.0, 5.0],
            d if d < 3.0 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let every = (decades / 9.0).ceil().max(1.0) as i32;
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let mut ticks = Vec::new();
        for exponent in (first..=last).filter(|exponent| exponent.rem_euclid(every) == 0) {
            for mark in marks {
                let value = mark * 10f64.powi(exponent);
                if (low * 0.999..=high * 1.001).contains(&value) {
                    ticks.push((value, units.write(value)));
                }
            }
        }
        Axis {
            low,
            high,
            logarithmic: true,
            ticks,
            unit: "",
        }
    }

    /// Returns the same scale without ticks.
    pub fn without_ticks(mut self) -> Axis {
        self.ticks.clear();
        self
    }

    /// Returns a value's position, from 0 at the low end to 1 at the high end. Values outside are
    /// clamped.
    pub fn place(&self, value: f64) -> f64 {
        let [mut low, mut high, mut value] = [self.low, self.high, value];
        if self.logarithmic {
            value = value.max(low * 1e-3);
            [low, high, value] = [low, high, value].map(f64::ln);
        }
        ((value - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// Returns the caption of the axis, with its unit: `Queue (packets)`.
    pub fn label(&self, name: &str) -> String {
        match self.unit {
            "" => name.to_owned(),
            unit => format!("{name} ({unit})"),
        }
    }
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is at least `rough`.
pub fn round_step(rough: f64) -> f64 {
    if rough <= 0.0 || !rough.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let found = steps.into_iter().find(|step| *step >= rough * 0.999_999);
    found.unwrap_or(power * 10.0)
}

/// Formats a number with thousands separators.
pub fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, format!(".{fraction}")),
        None => (text.as_str(), String::new()),
    };
    let mut out = String::new();
    // A rounded −0 is shown as 0.
    if value < 0.0 && text.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) {
        out.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + &fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_in_the_unit_that_reads_best() {
        let axis = Axis::linear(0.0, 23.4e6, 5, TIME);
        assert_eq!(labels(&axis), ["0", "5", "10", "15", "20"]);
        assert_eq!(axis.label("Delay"), "Delay (ms)");
        let axis = Axis::linear(19.98e6, 20.02e6, 4, TIME);
        assert_eq!(labels(&axis), ["19.98", "19.99", "20.00", "20.01", "20.02"]);
        let axis = Axis::linear(0.0, 2.0, 8, Units::PACKETS);
        assert_eq!(labels(&axis), ["0", "1", "2"], "no half packets");
        let axis = Axis::linear(0.0, 12_000.0, 3, Units::PACKETS);
        assert_eq!(labels(&axis), ["0", "5,000", "10,000"]);
        let axis = Axis::linear(0.0, 1.0, 4, SHARE);
        assert_eq!(labels(&axis), ["0", "50", "100"]);
    }

    #[test]
    fn values_outside_are_at_the_ends() {
        let axis = Axis::linear(10.0, 20.0, 5, Units::PACKETS);
        let check = |axis: &Axis, values: [f64; 5]| {
            for (value, place) in values.into_iter().zip([0.0, 0.0, 0.5, 1.0, 1.0]) {
                assert!((axis.place(value) - place).abs() < 1e-12, "{value}");
            }
        };
        check(&axis, [5.0, 10.0, 15.0, 20.0, 99.0]);
        let axis = Axis::logarithmic(1e3, 1e7, TIME);
        check(&axis, [0.0, 1e3, 1e5, 1e7, 1e9]);
        assert_eq!(labels(&axis), ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]);
    }

    #[test]
    fn one_value_has_an_axis_too() {
        for value in [0.0, 1.0, 20e6] {
            let axis = Axis::linear(value, value, 5, TIME);
            assert!((axis.place(value) - 0.5).abs() < 1e-9);
            let logarithmic = Axis::logarithmic(value.max(1.0), value, TIME);
            assert!(!logarithmic.ticks.is_empty());
        }
    }

    #[test]
    fn values_are_written_to_three_digits() {
        let written = "0 ns, 999 ns, 1 µs, 1.23 µs, 20 ms, 123 ms, 3,600 s";
        let values = [0.0, 999.0, 999.9, 1_234.0, 20e6, 123.4e6, 3_600e9];
        let values = values.map(|value| TIME.write(value));
        assert_eq!(values.join(", "), written);
        assert_eq!(SHARE.write(0.0123), "1.23%");
        assert_eq!(grouped(-1_234.5, 1), "−1,234.5");
        assert_eq!(grouped(-0.001, 1), "0.0");
    }

    #[test]
    fn steps_are_one_two_or_five() {
        let rough = [1.0, 1.1, 3.0, 6.0, 0.04];
        for (rough, step) in rough.into_iter().zip([1.0, 2.0, 5.0, 10.0, 0.05]) {
            assert!((round_step(rough) - step).abs() < 1e-12, "{rough}");
        }
    }
}
