//! Frames with a fixed size.

use std::fmt;

use longwire_engine::models::Entry;
use longwire_engine::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use longwire_units::parse_count;
use longwire_units::random::Stream;

use super::{FCS, Fcs, SizeModel};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn SizeModel>> = Entry { info: INFO, build };

const INFO: ModelInfo = ModelInfo {
    name: "fixed",
    summary: "all frames have the same size",
    params: &[
        Param::new("size", Unit::Count)
            .help("bytes from the destination MAC address to the end of the payload"),
        FCS,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn SizeModel>, SpecError> {
    let fcs = Fcs::read(arguments)?;
    let size = fcs.frame(arguments.read("size", parse_count)?, arguments)?;
    Ok(Box::new(Fixed { size, fcs }))
}

/// Frames of a constant size.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    size: u32,
    fcs: Fcs,
}

impl Fixed {
    /// Creates frames of `size` bytes, without FCS.
    pub fn new(size: u32) -> Fixed {
        let fcs = Fcs { counted: false };
        Fixed { size, fcs }
    }
}

impl SizeModel for Fixed {
    #[inline]
    fn draw(&self, _number: u64, _stream: &mut Stream) -> u32 {
        self.size
    }

    fn each(&self, take: &mut dyn FnMut(u32, f64)) {
        take(self.size, 1.0);
    }

    fn fixed(&self) -> Option<u32> {
        Some(self.size)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size + self.fcs.excess();
        write!(f, "fixed:size={size},fcs={}", self.fcs)
    }
}
