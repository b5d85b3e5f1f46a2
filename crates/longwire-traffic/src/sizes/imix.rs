//! The simple Internet mix.

use std::fmt;

use longwire_engine::models::Entry;
use longwire_engine::spec::{Arguments, ModelInfo, SpecError};
use longwire_units::random::Stream;

use super::weighted::{ORDER, Weighted};
use super::{FCS, Fcs, SizeModel};

/// The registry line.
pub const ENTRY: Entry<Box<dyn SizeModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "imix",
    summary: "the simple Internet mix: packets of IP of 40, 576 and 1500 bytes as 7 to 4 to 1, \
              which are Ethernet frames of 64, 594 and 1518 bytes with frame check sequence \
              (mixes are named and put in order by RFC 6985; this one is older than it)",
    params: &[
        ORDER,
        FCS.default("with").help(
            "with, frames of 60, 590 and 1514 bytes, to which the device adds 4; without, frames \
             of 64, 594 and 1518 bytes, to which it adds 4 more",
        ),
    ],
};

/// Sizes with frame check sequence, and weights. The shortest one is padded to the
/// shortest frame of an Ethernet.
const SIMPLE: [(u64, u64); 3] = [(64, 7), (594, 4), (1_518, 1)];

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn SizeModel>, SpecError> {
    let fcs = Fcs::read(arguments)?;
    let weighted = Weighted::new(SIMPLE.to_vec(), fcs, arguments)?;
    Ok(Box::new(Imix(weighted)))
}

#[derive(Clone, Debug)]
struct Imix(Weighted);

impl SizeModel for Imix {
    fn draw(&self, number: u64, stream: &mut Stream) -> u32 {
        self.0.draw(number, stream)
    }

    fn each(&self, take: &mut dyn FnMut(u32, f64)) {
        self.0.each(take);
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("imix:")?;
        self.0.describe_rest(f)
    }
}
