//! Sinusoidal delays, such as those of a satellite in orbit.

use core::f64::consts::PI;

use longwire_units::parse_real;

use super::DelayModel;
use crate::models::prelude::*;

pub(super) const ENTRY: Entry<Described<dyn DelayModel>> = Entry::new(
    "sinusoid",
    "mean + amplitude·sin(2π t/period + phase), t from the link's start; models a satellite at \
     varying distance",
    &[
        Param::new("mean", Unit::Time).help("mean delay"),
        Param::new("amplitude", Unit::Time)
            .help("maximum deviation from the mean; at most the mean"),
        Param::new("period", Unit::Time).help("duration of one cycle"),
        Param::with_default("phase", Unit::Real, "0")
            .within("-360", "360", "-360 to 360 degrees")
            .help("initial phase in degrees, -360 to 360; 90 starts at the maximum delay"),
    ],
    build,
);

fn build(arguments: &Arguments<'_>) -> Result<Described<dyn DelayModel>, SpecError> {
    let (mean, amplitude): (Nanos, Nanos) = (
        arguments.required("mean")?,
        arguments.required("amplitude")?,
    );
    let period = arguments.required("period")?;
    if amplitude > mean {
        return Err(arguments.invalid(format!(
            "amplitude={amplitude} is above mean={mean}; delays cannot be negative"
        )));
    }
    if period == Nanos::ZERO {
        return Err(arguments.invalid("period=0; the minimum is 1ns"));
    }
    Ok(arguments.described(Box::new(Sinusoid {
        mean,
        amplitude,
        period,
        phase: arguments.read("phase", parse_real)?,
        epoch: Nanos::ZERO,
    })))
}

#[derive(Clone, Debug)]
struct Sinusoid {
    mean: Nanos,
    amplitude: Nanos,
    period: Nanos,
    /// In degrees.
    phase: f64,
    epoch: Nanos,
}

impl DelayModel for Sinusoid {
    fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch;
    }

    fn draw(&mut self, frame: &FrameContext<'_>, _stream: &mut Stream) -> Nanos {
        // Whole periods are subtracted as integers, so that errors do not accumulate.
        let since = frame.at.saturating_sub(self.epoch).as_nanos();
        let part = (since % self.period.as_nanos()) as f64 / self.period.as_nanos() as f64;
        let angle = 2.0 * PI * (part + self.phase / 360.0);
        let delay =
            self.mean.as_nanos() as f64 + self.amplitude.as_nanos() as f64 * libm::sin(angle);
        // The cast rounds down. Values that rounding errors make negative become zero.
        Nanos::from_nanos((delay + 0.5) as u64)
    }

    fn least(&self) -> Nanos {
        // In `f64`, like `draw`: neither is exact for means above 2^53 ns.
        let least = self.mean.as_nanos() as f64 - self.amplitude.as_nanos() as f64;
        Nanos::from_nanos(least as u64)
    }

    fn mean(&self) -> Nanos {
        self.mean
    }
}
