//! Alternating periods of traffic and silence.

use std::fmt;

use longwire_engine::models::Entry;
use longwire_engine::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use longwire_units::random::Stream;
use longwire_units::{Nanos, UnitError, parse_real};

use super::{ArrivalModel, Arrivals, EvenClock, Load};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn ArrivalModel>> = Entry { info: INFO, build };

const INFO: ModelInfo = ModelInfo {
    name: "on-off",
    summary: "evenly spaced frames at rate·(on+off)/on during on periods, none during off \
              periods. The aggregate of many sources with Pareto periods of shape below 2 is \
              self-similar (Willinger, Taqqu, Sherman and Wilson, 1997)",
    params: &[
        Param::new("on", Unit::Time).help("mean duration of on periods"),
        Param::new("off", Unit::Time).help("mean duration of off periods"),
        Param::with_default("law", Unit::Choice(&LAWS), "exponential")
            .help("distribution of the durations"),
        Param::with_default("shape", Unit::Real, "1.5")
            .help("Pareto shape, above 1, at most 100; below 2 the variance is infinite"),
    ],
};

/// Names of the distributions, in the order of the constants.
const LAWS: [&str; 3] = ["exponential", "pareto", "constant"];
const PARETO: usize = 1;
const CONSTANT: usize = 2;

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn ArrivalModel>, SpecError> {
    let (on, off): (Nanos, Nanos) = (arguments.required("on")?, arguments.required("off")?);
    if on == Nanos::ZERO {
        return Err(arguments.invalid("on=0; the minimum is 1ns"));
    }
    let shape = arguments.read("shape", |text| match parse_real(text)? {
        shape if shape > 1.0 && shape <= 100.0 => Ok(shape),
        _ => Err(UnitError::OutOfRange {
            text: text.into(),
            range: "above 1, at most 100; up to 1, the mean is infinite",
        }),
    })?;
    Ok(Box::new(OnOff {
        on,
        off,
        law: arguments.choice("law")?,
        shape,
    }))
}

#[derive(Clone, Copy, Debug)]
struct OnOff {
    on: Nanos,
    off: Nanos,
    law: usize,
    shape: f64,
}

impl OnOff {
    /// Draws a period's duration.
    fn draw(&self, mean: Nanos, stream: &mut Stream) -> u64 {
        match self.law {
            CONSTANT => mean.as_nanos(),
            // scale·u^(-1/shape) has mean scale·shape/(shape-1).
            PARETO => {
                let scale = mean.as_nanos() as f64 * (self.shape - 1.0) / self.shape;
                let length = scale * libm::pow(stream.unit(), -1.0 / self.shape);
                (length + 0.5) as u64
            }
            _ => stream.exponential(mean).as_nanos(),
        }
    }
}

impl ArrivalModel for OnOff {
    fn begin(&self, load: Load) -> Box<dyn Arrivals> {
        Box::new(OnOffArrivals {
            model: *self,
            even: EvenClock::new(load.rate),
            on: 0,
            off: 0,
        })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (on, off, law) = (self.on, self.off, LAWS[self.law]);
        write!(f, "on-off:on={on},off={off},law={law},shape={}", self.shape)
    }
}

#[derive(Clone, Debug)]
struct OnOffArrivals {
    model: OnOff,
    /// Clock for arrivals, which stops during off periods.
    even: EvenClock,
    /// Total duration of on periods, including the current one, and of off periods.
    on: u64,
    off: u64,
}

impl Arrivals for OnOffArrivals {
    fn due(&mut self, len: u32, stream: &mut Stream) -> Nanos {
        let even = self.even.due(len);
        if even == Nanos::MAX {
            return even;
        }
        // The clock advances only during on periods, faster by the inverse of their share. Convert
        // absolute times, so that rounding errors do not accumulate.
        let (on, off) = (self.model.on.as_nanos(), self.model.off.as_nanos());
        let position = u128::from(even.as_nanos()) * u128::from(on);
        let position = (position / (u128::from(on) + u128::from(off))) as u64;
        let mut first = self.on == 0;
        while position >= self.on {
            if !first {
                let length = self.model.draw(self.model.off, stream);
                self.off = self.off.saturating_add(length);
            }
            first = false;
            let length = self.model.draw(self.model.on, stream);
            self.on = self.on.saturating_add(length.max(1));
            if self.on == u64::MAX {
                break;
            }
        }
        Nanos::from_nanos(position.saturating_add(self.off))
    }
}
