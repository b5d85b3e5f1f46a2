//! Sizes of generated frames.
//!
//! A size counts bytes from the destination MAC address to the end of the payload. With `fcs=with`,
//! it includes the FCS, as is usual in testers, so frames are 4 bytes shorter.

use std::fmt;

use longwire_engine::models::Kind;
use longwire_engine::spec::{Arguments, Param, SpecError, Unit};
use longwire_units::random::Stream;

pub mod fixed;
pub mod uniform;
mod weighted;

/// A distribution of frame sizes.
pub trait SizeModel: fmt::Debug + Send + Sync {
    /// Returns the size of frame `number`, from 0, without FCS.
    fn draw(&self, number: u64, stream: &mut Stream) -> u32;

    /// Calls `take` with every size and its share of frames; shares sum to 1.
    fn each(&self, take: &mut dyn FnMut(u32, f64));

    /// Returns the size if it is constant.
    fn fixed(&self) -> Option<u32> {
        None
    }

    /// Formats the model in command-line syntax.
    ///
    /// # Errors
    /// If writing to `f` fails.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl dyn SizeModel {
    /// Returns the minimum and maximum size.
    pub fn range(&self) -> (u32, u32) {
        let (mut least, mut greatest) = (u32::MAX, 0);
        self.each(&mut |size, _| {
            least = least.min(size);
            greatest = greatest.max(size);
        });
        (least, greatest)
    }

    /// Returns the mean size.
    pub fn mean(&self) -> f64 {
        let mut mean = 0.0;
        self.each(&mut |size, share| mean += f64::from(size) * share);
        mean
    }
}

impl fmt::Display for dyn SizeModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

/// Length of the frame check sequence (IEEE 802.3, 3.2.9).
pub const FCS_LEN: u32 = 4;

/// Range of sizes, from the length of an Ethernet header to a port's maximum frame length.
const SIZE_MIN: u64 = 14;
const SIZE_MAX: u64 = 65_535;

/// Parameter that selects whether sizes include the FCS.
const FCS: Param = Param::with_default("fcs", Unit::Choice(&["without", "with"]), "without")
    .help("whether sizes include the 4-byte FCS, as in RFC 2544");

/// Whether sizes include the FCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fcs {
    counted: bool,
}

impl Fcs {
    fn read(arguments: &Arguments<'_>) -> Result<Fcs, SpecError> {
        let counted = arguments.choice(FCS.name)? == 1;
        Ok(Fcs { counted })
    }

    /// Converts a written size to a frame size.
    fn frame(self, size: u64, arguments: &Arguments<'_>) -> Result<u32, SpecError> {
        let [least, most] = [SIZE_MIN, SIZE_MAX].map(|size| size + u64::from(self.excess()));
        if (least..=most).contains(&size) {
            return Ok(size as u32 - self.excess());
        }
        let message = format!("a size of {size} bytes is outside {least}..{most}");
        Err(arguments.invalid(message))
    }

    /// Returns the excess of a written size over the frame size, in bytes.
    fn excess(self) -> u32 {
        if self.counted { FCS_LEN } else { 0 }
    }
}

impl fmt::Display for Fcs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.counted { "with" } else { "without" })
    }
}

/// Registry of size models.
pub static KIND: Kind<Box<dyn SizeModel>> = Kind {
    name: "sizes",
    example: "1514",
    entries: &[
        fixed::ENTRY,
        weighted::IMIX,
        weighted::MIX,
        uniform::ENTRY,
        weighted::LIST,
    ],
};
