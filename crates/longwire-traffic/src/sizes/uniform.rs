//! Uniformly distributed sizes.

use std::fmt;

use longwire_engine::models::Entry;
use longwire_engine::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use longwire_units::parse_count;
use longwire_units::random::Stream;

use super::{FCS, Fcs, SizeModel};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn SizeModel>> = Entry { info: INFO, build };

const INFO: ModelInfo = ModelInfo {
    name: "uniform",
    summary: "uniformly distributed sizes from min to max, inclusive",
    params: &[
        Param::new("min", Unit::Count).help("minimum size in bytes"),
        Param::new("max", Unit::Count).help("maximum size in bytes"),
        FCS,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn SizeModel>, SpecError> {
    let fcs = Fcs::read(arguments)?;
    let bound = |key: &'static str| fcs.frame(arguments.read(key, parse_count)?, arguments);
    let (min, max) = (bound("min")?, bound("max")?);
    if min > max {
        return Err(arguments.invalid("min is above max"));
    }
    Ok(Box::new(UniformSizes { min, max, fcs }))
}

#[derive(Clone, Copy, Debug)]
struct UniformSizes {
    min: u32,
    max: u32,
    fcs: Fcs,
}

impl SizeModel for UniformSizes {
    fn draw(&self, _number: u64, stream: &mut Stream) -> u32 {
        self.min + stream.up_to(u64::from(self.max - self.min)) as u32
    }

    fn each(&self, take: &mut dyn FnMut(u32, f64)) {
        let share = 1.0 / f64::from(self.max - self.min + 1);
        (self.min..=self.max).for_each(|size| take(size, share));
    }

    fn fixed(&self) -> Option<u32> {
        (self.min == self.max).then_some(self.min)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let excess = self.fcs.excess();
        let (min, max) = (self.min + excess, self.max + excess);
        write!(f, "uniform:min={min},max={max},fcs={}", self.fcs)
    }
}
